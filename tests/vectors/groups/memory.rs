//! `memory`: the two lists through the changes of a session.

use hermes_server::model::memory::{Limits, Memories, Target};
use hermes_server::tool::memory_entries::{Change, Refusal, SEPARATOR, after, block};
use serde_json::{Value, json};

use crate::case::{Case, count, strings};

pub fn judge(case: &Case) -> Result<(), String> {
    let limit = |name: &str| count(&case.input["limits"][name]);
    let limits = Limits {
        memory: limit("memory"),
        user: limit("user"),
    };
    let existing = strings(&case.input["existing"]);
    let mut memories = Memories {
        memory: existing.clone(),
        ..Memories::default()
    };
    let snapshot = block(Target::Memory, &existing, limits.memory).unwrap_or_default();
    let shown: Vec<&String> = existing.iter().filter(|entry| snapshot.contains(*entry)).collect();
    let mut last = Target::Memory;
    // A list has a file from the first time that it was stored.
    let mut stored = if existing.is_empty() {
        Vec::new()
    } else {
        vec![Target::Memory]
    };
    let mut results = Vec::new();
    for operation in case.input["operations"].as_array().unwrap() {
        let (target, result) = changed(&mut memories, limits, &arguments(operation));
        if result["success"] == true {
            stored.push(target);
        }
        results.push(result);
        last = target;
    }
    let entries = memories.of(last);
    let file = match stored.contains(&last) {
        true => json!(entries.join(SEPARATOR)),
        false => Value::Null,
    };
    let got = json!({"results": results, "snapshot_contains": shown, "file": file});
    let expected = spelled_out(&case.expect, &got["file"]);
    case.check_as(&expected, got, |_, _| crate::case::Relation::Unrelated)
}

fn changed(memories: &mut Memories, limits: Limits, arguments: &Value) -> (Target, Value) {
    let target = arguments["target"]
        .as_str()
        .and_then(Target::parse)
        .unwrap_or(Target::Memory);
    let before = memories.of(target).to_vec();
    let made = Change::read(arguments).and_then(|change| after(&before, &change.operations, limits.of(change.target)));
    match made {
        Ok(entries) => {
            memories.set(target, entries.clone());
            (target, json!({"success": true, "entries": entries}))
        }
        Err(refusal) => (
            target,
            json!({"success": false, "entries": before, "error": kind(&refusal)}),
        ),
    }
}

fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Empty(_) => "empty",
        Refusal::UnknownAction(_) => "unknown_action",
        Refusal::UnknownTarget(_) => "unknown_target",
        Refusal::NoMatch(_) => "no_match",
        Refusal::Ambiguous { .. } => "ambiguous",
        Refusal::OverLimit { .. } => "over_limit",
        Refusal::Threat(_) => "threat",
    }
}

/// The arguments of a call: a batch is told by its operations alone.
fn arguments(operation: &Value) -> Value {
    let mut arguments = repeated(operation);
    if arguments["action"] == "batch" {
        arguments.as_object_mut().unwrap().remove("action");
    }
    arguments
}

/// The value with described texts written out.
fn repeated(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.contains_key("repeat") => {
            json!(value["repeat"].as_str().unwrap().repeat(count(&value["times"])))
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), repeated(value)))
            .collect(),
        Value::Array(items) => items.iter().map(repeated).collect(),
        other => other.clone(),
    }
}

/// The recorded answer; a text of which only the length was recorded is the one
/// that came, if it is as long.
fn spelled_out(expect: &Value, file: &Value) -> Value {
    let mut expect = expect.clone();
    let length = expect["file"]["length"].as_u64();
    if length.is_some() && length == file.as_str().map(|text| text.chars().count() as u64) {
        expect["file"] = file.clone();
    }
    repeated(&expect)
}
