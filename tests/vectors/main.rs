//! Recorded answers, judged against the public functions of the library.
//!
//! Every `*.json` of the directory in `HERMES_VECTORS_DIR` (without it the
//! project's `tests/data/vectors`) is a group of cases; [`groups::TABLE`] says
//! which function answers a group. `exceptions.txt` beside the data lists the
//! cases that fail on purpose, each with its reason.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "the lints spare test functions but not the helpers beside them"
)]
#![allow(unreachable_pub, reason = "nothing is outside of a test binary")]

mod bench;
mod case;
mod exceptions;
mod groups;
mod report;

use std::path::{Path, PathBuf};

use exceptions::Exceptions;

/// The project's own copy.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/vectors");

#[test]
fn recorded_cases_are_answered_as_recorded_except_for_those_listed() {
    let given = std::env::var_os("HERMES_VECTORS_DIR").filter(|given| !given.is_empty());
    let directory = given.map_or_else(|| PathBuf::from(OWN), PathBuf::from);
    let same = |a: &Path, b: &Path| a.canonicalize().ok() == b.canonicalize().ok();
    let exceptions = Exceptions::beside(&directory, Path::new(OWN));
    let report = report::judge(&directory, groups::TABLE, exceptions, same(&directory, Path::new(OWN)));
    // The test runner may be in the middle of a line of its own.
    println!("\n{}", report.text);
    assert!(report.wrong.is_empty(), "\n{}", report.wrong.join("\n"));
}
