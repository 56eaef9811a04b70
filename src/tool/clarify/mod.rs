//! Toolset `clarify`: asking the user.

#[allow(
    clippy::module_inception,
    reason = "one file for each tool, in the folder of its toolset"
)]
mod clarify;
