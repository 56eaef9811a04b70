//! `fuzzy_replace`: a passage found and replaced, or why it was not.

use hermes_server::tool::edit::fuzzy::{NotReplaced, replace};
use serde_json::{Value, json};

use crate::case::{Case, Relation};

pub fn judge(case: &Case) -> Result<(), String> {
    let got = answer(case);
    // An alternative names the content alone.
    if case.check(got["content"].clone()).is_ok() {
        return Ok(());
    }
    case.check_by(got, |expected, got| {
        match (expected["error"].is_null(), got["error"].is_null()) {
            (true, false) => Relation::Stricter,
            (false, true) => Relation::Looser,
            _ => Relation::Unrelated,
        }
    })
}

fn answer(case: &Case) -> Value {
    let all = case.input["replace_all"] == true;
    match replace(
        case.text("content"),
        case.text("old_string"),
        case.text("new_string"),
        all,
    ) {
        Ok(done) => {
            json!({"content": done.content, "count": done.count, "strategy": done.strategy.name(), "error": null})
        }
        Err(error) => {
            let mut answer = json!({"content": case.text("content"), "count": 0, "strategy": null,
                "error": kind(&error)});
            if let NotReplaced::Ambiguous(matches) = error {
                answer["matches"] = json!(matches);
            }
            answer
        }
    }
}

fn kind(error: &NotReplaced) -> &'static str {
    match error {
        NotReplaced::Empty => "empty",
        NotReplaced::Identical => "identical",
        NotReplaced::Ambiguous(_) => "ambiguous",
        NotReplaced::NotFound => "not_found",
        NotReplaced::EscapeDrift(_) => "escape_drift",
    }
}
