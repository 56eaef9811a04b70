//! `todo`: the task list through the steps of a session.

use hermes_server::base::text::last_chars;
use hermes_server::tool::todo_list::{NotAList, TodoList};
use serde_json::{Map, Value, json};

use crate::case::{Case, count};

pub fn judge(case: &Case) -> Result<(), String> {
    let mut list = TodoList::default();
    let mut results = Vec::new();
    for step in case.input["steps"].as_array().unwrap() {
        match list.after(&arguments(step)) {
            Ok(changed) => {
                list = changed.unwrap_or(list);
                results.push(written(&list));
            }
            Err(NotAList) => results.push(json!({"error": true})),
        }
    }
    // The first line of the note says what it is.
    let lines = list.note().map_or(0, |note| note.lines().count() - 1);
    case.check(json!({"results": results, "reinjected_lines": lines}))
}

/// The arguments of a step, generated contents written out.
fn arguments(step: &Value) -> Map<String, Value> {
    let mut step = step.clone();
    for item in step["todos"].as_array_mut().into_iter().flatten() {
        if let Some(unit) = item["content"]["repeat"].as_str() {
            item["content"] = json!(unit.repeat(count(&item["content"]["times"])));
        }
    }
    step.as_object().unwrap().clone()
}

/// The result as the cases write it: long contents by length and end.
fn written(list: &TodoList) -> Value {
    let mut result = list.result();
    for item in result["todos"].as_array_mut().unwrap() {
        let content = item["content"].as_str().unwrap();
        if 100 < content.chars().count() {
            item["content"] = json!({"length": content.chars().count(), "tail": last_chars(content, 20)});
        }
    }
    result
}
