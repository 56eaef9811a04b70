//! Integration tests: one binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "the lints spare test functions but not the helpers beside them"
)]
#![allow(unreachable_pub, reason = "nothing is outside of a test binary")]

mod answers;
mod api_rest;
mod audit;
mod background;
mod bad_input;
mod binary;
mod budgets;
mod busy;
mod cases;
mod code;
mod context_files;
mod crash;
mod decisions;
mod engine;
mod extend;
mod failures;
mod file_tools;
mod files;
mod floors;
mod harness;
mod http;
mod image;
mod isolation;
mod jobs;
mod known_secrets;
mod leases;
mod limits;
mod long_commands;
mod memory;
mod migrations;
mod openapi;
mod parked;
mod pending_writes;
mod policies;
mod promises;
mod races;
mod recovery;
mod resume;
mod sandbox;
mod scanner;
mod session_files;
mod session_search;
mod sessions;
mod shutdown;
mod skills;
mod smart;
mod steer;
mod streams;
mod surfaces;
mod tools;
mod trips;
mod unconfined;
