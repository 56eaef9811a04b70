//! The surface that clients of the original know: runs, sessions, what the server
//! can do and how it is. Names, events and answers are the original's; what they
//! tell is this server's.

#![allow(unused_qualifications, reason = "the macro that describes a route writes them")]

mod abilities;
mod capabilities;
mod describe;
mod health;
mod job_request;
mod job_shape;
mod jobs;
mod once;
mod run_answers;
mod run_events;
mod run_inputs;
mod run_status;
mod runs;
mod session_chat;
mod session_events;
mod session_past;
mod session_shape;
mod sessions;
mod titles;

pub(super) use describe::document;

use super::native::{models, skills, tools};
use super::surface::Surface;

/// What is served here and nowhere else.
pub(super) fn routes() -> Surface {
    Surface::new()
        .merge(health::routes())
        .merge(capabilities::routes())
        .merge(runs::routes())
        .merge(run_answers::routes())
        .merge(run_inputs::routes())
        .merge(sessions::routes())
        .merge(session_past::routes())
        .merge(session_chat::routes())
        .merge(jobs::routes())
}

/// All that clients of this surface use.
fn described() -> Surface {
    routes()
        .merge(super::openai::routes())
        .merge(super::ui_stream::routes())
        .merge(models::routes())
        .merge(tools::toolset_routes())
        .merge(skills::shared_routes())
}
