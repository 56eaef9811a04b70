//! Which function answers which group: one file and one row for each.

mod approval;
mod approval_bypass;
mod approval_mode;
mod args_repair;
mod budget;
mod checkpoint_trigger;
mod coercion;
mod cron_prompt;
mod error_sanitise;
mod file_access;
mod fuzzy_replace;
mod guard_flow;
mod guardrail;
mod memory;
mod name_repair;
mod parallel_segments;
mod path_security;
mod redaction;
mod schedule;
mod smart;
mod terminal_helpers;
mod threat_scan;
mod tirith;
mod todo;
mod toolset_resolution;
mod untrusted_wrap;
mod url_safety;
mod v4a_patch;

use crate::report::Judge;

pub const TABLE: &[(&str, Judge)] = &[
    ("approval-bypass", approval_bypass::judge),
    ("approval_dangerous", approval::judge),
    ("approval_hardline", approval::judge),
    ("approval_later_history", approval::judge),
    ("approval_mode", approval_mode::judge),
    ("args_repair", args_repair::judge),
    ("budget", budget::judge),
    ("checkpoint_trigger", checkpoint_trigger::judge),
    ("coercion", coercion::judge),
    ("cron_prompt", cron_prompt::judge),
    ("error_sanitise", error_sanitise::judge),
    ("file_access", file_access::judge),
    ("fuzzy_replace", fuzzy_replace::judge),
    ("guardrail", guardrail::judge),
    ("memory", memory::judge),
    ("guard_flow", guard_flow::judge),
    ("name_repair", name_repair::judge),
    ("parallel_segments", parallel_segments::judge),
    ("path_security", path_security::judge),
    ("redaction", redaction::judge),
    ("schedule", schedule::judge),
    ("smart_answer", smart::judge_answer),
    ("smart_strip", smart::judge_strip),
    ("terminal_helpers", terminal_helpers::judge),
    ("threat_scan", threat_scan::judge),
    ("tirith", tirith::judge),
    ("todo", todo::judge),
    ("toolset_resolution", toolset_resolution::judge),
    ("untrusted_wrap", untrusted_wrap::judge),
    ("v4a_patch", v4a_patch::judge),
    ("url_safety", url_safety::judge),
];
