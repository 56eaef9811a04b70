//! One turn from its input to its outcome.
//!
//! `next` says from what is recorded what comes next; `step` decides what a
//! change of the record writes; both are pure. `engine` and `run` perform the
//! effects and commit. A successor that loads the record decides as its
//! predecessor would have: recovery is nothing special.

pub mod admission;
mod budgets;
mod calls;
mod change;
mod commit;
mod consult;
mod context;
pub mod delegation;
pub mod engine;
mod followed;
mod hooked;
mod kin;
mod model_call;
mod nested;
pub mod next;
mod overflow;
mod owner;
mod policies;
mod prompt;
pub mod requests;
mod review;
mod run;
mod said;
mod scripted;
pub mod segments;
pub mod state;
pub mod step;
mod unclear;
mod watch;
pub mod world;
