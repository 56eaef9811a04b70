//! Toolset `session_search`: what was said in earlier sessions of the user.
//! The four ways to ask are a file each; none of them leaves the user's rows.

mod browse;
mod discover;
mod read;
mod request;
mod scroll;
#[allow(
    clippy::module_inception,
    reason = "one file for each tool, in the folder of its toolset"
)]
mod session_search;
mod shown;
