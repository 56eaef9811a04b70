//! `smart_answer` and `smart_strip`: what a reviewing model's answer means, and
//! what it is shown of a command.

use hermes_server::guard::smart::{Answer, answer, without_comments};

use crate::case::{Case, Relation};

pub fn judge_answer(case: &Case) -> Result<(), String> {
    case.check(match answer(case.text("reviewer_text")) {
        Answer::Approve => "approve",
        Answer::Deny => "deny",
        Answer::Escalate => "escalate",
    })
}

/// Text that is kept goes on where the recorded answer was cut.
pub fn judge_strip(case: &Case) -> Result<(), String> {
    case.check_by(without_comments(case.text("command")), |expected, got| {
        let (expected, got) = (expected.as_str().unwrap(), got.as_str().unwrap());
        if got.starts_with(expected) {
            Relation::KeepsText
        } else {
            Relation::Unrelated
        }
    })
}
