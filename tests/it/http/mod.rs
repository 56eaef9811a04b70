//! The HTTP side, over real connections: who may call, what is refused and how,
//! and the ways to get a turn's outcome.

mod access;
mod bodies;
mod busy;
mod conditions;
mod cursors;
mod limits;
mod once;
mod sessions;
mod turns;
