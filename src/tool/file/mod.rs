//! Toolset `file`: the files of a session's workspace.
//!
//! Every file is opened through the session's [`crate::environment::Workspace`],
//! which no path leaves; the refusals here are a second line that judges by
//! name.

mod binary;
mod display;
mod extract;
mod landing;
mod lint;
mod page;
mod patch;
mod read_file;
mod search;
mod search_files;
mod similar;
mod syntax;
mod target;
mod warning;
mod write_file;
pub(in crate::tool) mod writers;
