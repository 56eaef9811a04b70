//! Toolset `todo`: the task list of a session.

#[allow(
    clippy::module_inception,
    reason = "one file for each tool, in the folder of its toolset"
)]
mod todo;
