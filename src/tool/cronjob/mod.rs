//! Toolset `cronjob`: jobs that run by themselves.

#[allow(
    clippy::module_inception,
    reason = "one file for each tool, in the folder of its toolset"
)]
mod cronjob;
