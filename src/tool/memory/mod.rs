//! Toolset `memory`: what is remembered of a user from session to session.

#[allow(
    clippy::module_inception,
    reason = "one file for each tool, in the folder of its toolset"
)]
mod memory;
