//! Toolset `terminal`: commands in a session's workspace.

mod background;
pub(super) mod output;
pub(super) mod process;
mod request;
#[allow(
    clippy::module_inception,
    reason = "one file for each tool, in the folder of its toolset"
)]
mod terminal;
