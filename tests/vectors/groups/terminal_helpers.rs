//! `terminal_helpers`: what the terminal tool reads off a command line.

use hermes_server::tool::command_line::{Unsuited, check_foreground, exit_code_meaning, is_plain_directory};
use serde_json::{Value, json};

use crate::case::{Case, Relation};

pub fn judge(case: &Case) -> Result<(), String> {
    match case.text("op") {
        "exit_meaning" => {
            let code = i32::try_from(case.input["exit_code"].as_i64().unwrap()).unwrap();
            case.check(json!(exit_code_meaning(case.text("command"), code).map(kind)))
        }
        "workdir" => case.check(is_plain_directory(case.text("path"))),
        "foreground_check" => {
            let unsuited = check_foreground(case.text("command")).err();
            let kind = unsuited.map(|unsuited| match unsuited {
                Unsuited::Detaches => "wrapper",
                Unsuited::Ampersand => "ampersand",
                Unsuited::Endless => "server",
            });
            case.check_by(json!(kind), refuses_more)
        }
        other => case.unknown(other),
    }
}

/// The kinds by which the cases name a meaning.
fn kind(meaning: &str) -> &'static str {
    let kinds = [
        ("no lines", "no_matches"),
        ("the files differ", "files_differ"),
        ("some folders", "partial"),
        ("the condition", "condition_false"),
        ("the request timed out", "timeout"),
        ("git found", "git_differs"),
    ];
    let found = kinds.iter().find(|(start, _)| meaning.starts_with(start));
    found.map_or("other", |(_, kind)| kind)
}

/// A refusal is stricter than none; of two refusals neither is.
fn refuses_more(expected: &Value, got: &Value) -> Relation {
    match (expected.is_null(), got.is_null()) {
        (true, false) => Relation::Stricter,
        (false, true) => Relation::Looser,
        _ => Relation::Unrelated,
    }
}
