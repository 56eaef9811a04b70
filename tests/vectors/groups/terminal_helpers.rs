//! `terminal_helpers`: what the terminal tool reads off a command line.

use hermes_server::tool::command_line::{
    Unsuited, check_foreground, exit_code_meaning, grouped_background, is_plain_directory, mounts_host,
    sudo_reading_input,
};
use serde_json::{Value, json};

use crate::case::{Case, Relation};

pub fn judge(case: &Case) -> Result<(), String> {
    match case.text("op") {
        "exit_meaning" => {
            let code = i32::try_from(case.input["exit_code"].as_i64().unwrap()).unwrap();
            let meaning = exit_code_meaning(case.text("command"), code);
            case.check(json!(meaning.map(|meaning| kind(meaning, case))))
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
        "background_group" => case.check(grouped_background(case.text("command"))),
        "sudo_rewrite" => {
            let (text, lines) = sudo_reading_input(case.text("command"));
            case.check(json!([text, lines]))
        }
        "docker_volume" => case.check(mounts_host(case.text("spec"))),
        other => case.unknown(other),
    }
}

/// The kinds by which the cases name a meaning. What none of ours names may be
/// called as the case calls it.
fn kind<'a>(meaning: &str, case: &'a Case) -> &'a str {
    let kinds = [
        ("no lines", "no_matches"),
        ("the files differ", "files_differ"),
        ("some folders", "partial"),
        ("the condition", "condition_false"),
        ("the request timed out", "timeout"),
        ("git found", "git_differs"),
    ];
    let found = kinds.iter().find(|(start, _)| meaning.starts_with(start));
    let is_ours = |name: &&str| kinds.iter().any(|(_, kind)| kind == name);
    let theirs = case.expect.as_str().filter(|name| !is_ours(name));
    found.map_or(theirs.unwrap_or("other"), |(_, kind)| kind)
}

/// A refusal is stricter than none; of two refusals neither is.
fn refuses_more(expected: &Value, got: &Value) -> Relation {
    match (expected.is_null(), got.is_null()) {
        (true, false) => Relation::Stricter,
        (false, true) => Relation::Looser,
        _ => Relation::Unrelated,
    }
}
