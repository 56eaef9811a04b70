//! Which function answers which group: one file and one row for each.

mod approval;
mod approval_bypass;
mod args_repair;
mod budget;
mod coercion;
mod error_sanitise;
mod file_access;
mod fuzzy_replace;
mod guardrail;
mod memory;
mod name_repair;
mod parallel_segments;
mod redaction;
mod terminal_helpers;
mod threat_scan;
mod todo;
mod toolset_resolution;
mod untrusted_wrap;
mod v4a_patch;

use crate::report::Judge;

pub const TABLE: &[(&str, Judge)] = &[
    ("approval-bypass", approval_bypass::judge),
    ("approval_dangerous", approval::judge),
    ("approval_hardline", approval::judge),
    ("approval_later_history", approval::judge),
    ("args_repair", args_repair::judge),
    ("budget", budget::judge),
    ("coercion", coercion::judge),
    ("error_sanitise", error_sanitise::judge),
    ("file_access", file_access::judge),
    ("fuzzy_replace", fuzzy_replace::judge),
    ("guardrail", guardrail::judge),
    ("memory", memory::judge),
    ("name_repair", name_repair::judge),
    ("parallel_segments", parallel_segments::judge),
    ("redaction", redaction::judge),
    ("terminal_helpers", terminal_helpers::judge),
    ("threat_scan", threat_scan::judge),
    ("todo", todo::judge),
    ("toolset_resolution", toolset_resolution::judge),
    ("untrusted_wrap", untrusted_wrap::judge),
    ("v4a_patch", v4a_patch::judge),
];
