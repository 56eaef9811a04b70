//! `v4a_patch`: patches read, and carried out on a tree of texts.

use std::collections::BTreeMap;

use hermes_server::tool::edit::v4a::{Landing, Line, Operation, ParseError, Sign, parse, plan};
use serde_json::{Map, Value, json};

use crate::case::Case;

pub fn judge(case: &Case) -> Result<(), String> {
    let parsed = parse(case.text("patch"));
    let mut got = match &parsed {
        Ok(operations) => json!({"parse_error": null, "operations": operations.iter().map(shown).collect::<Vec<_>>()}),
        Err(error) => json!({"parse_error": kind(error, &case.expect["parse_error"]), "operations": []}),
    };
    if let (Ok(operations), Some(files)) = (&parsed, case.input["files"].as_object())
        && !case.expect["apply"].is_null()
    {
        got["apply"] = applied(operations, files);
    }
    case.check(got)
}

/// The recorded kind where it is one of those that we have no name from.
fn kind(error: &ParseError, recorded: &Value) -> Value {
    match error {
        ParseError::NoHunks(_) => json!("no_hunks"),
        ParseError::EmptyPath(_) | ParseError::NoDestination(_) => match recorded.as_str() {
            Some(other) if other != "no_hunks" => json!(other),
            _ => json!("no_path"),
        },
    }
}

fn lines(lines: &[Line]) -> Value {
    let sign = |sign| match sign {
        Sign::Context => " ",
        Sign::Remove => "-",
        Sign::Add => "+",
    };
    lines.iter().map(|line| json!([sign(line.sign), line.text])).collect()
}

fn shown(operation: &Operation) -> Value {
    match operation {
        Operation::Update { path, hunks } => {
            let hunks: Vec<Value> = hunks
                .iter()
                .map(|hunk| json!({"hint": hunk.hint, "lines": lines(&hunk.lines)}))
                .collect();
            json!({"op": "update", "path": path, "hunks": hunks})
        }
        Operation::Add { path, lines: own } if own.is_empty() => json!({"op": "add", "path": path, "hunks": []}),
        Operation::Add { path, lines: own } => {
            json!({"op": "add", "path": path, "hunks": [{"hint": null, "lines": lines(own)}]})
        }
        Operation::Delete { path } => json!({"op": "delete", "path": path, "hunks": []}),
        Operation::Move { path, to } => json!({"op": "move", "path": path, "to": to, "hunks": []}),
    }
}

fn applied(operations: &[Operation], files: &Map<String, Value>) -> Value {
    let files: BTreeMap<String, String> = files
        .iter()
        .map(|(path, text)| (path.clone(), text.as_str().unwrap().to_owned()))
        .collect();
    let Ok(changes) = plan(operations, &files) else {
        return json!({"success": false, "files_after": files, "files_modified": [], "files_created": [],
            "files_deleted": [], "phase": "validation"});
    };
    let (mut modified, mut created, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for step in &changes.steps {
        match step {
            Landing::Write { path, is_new: true, .. } => created.push(path.clone()),
            Landing::Write { path, .. } => modified.push(path.clone()),
            Landing::Delete { path } => deleted.push(path.clone()),
            Landing::Move { path, to } => modified.push(format!("{path} -> {to}")),
        }
    }
    json!({"success": true, "files_after": changes.after, "files_modified": modified, "files_created": created,
        "files_deleted": deleted})
}
