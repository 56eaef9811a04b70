//! `budget`: bounds of results, their previews and where they are stored.

use hermes_server::tool::budget::{
    Budget, Length, PREVIEW_CHARS, ResultLimit, STORED_TAG, file_name, preview, stored_text, unstored_text,
};
use serde_json::json;

use crate::case::{Case, count};

pub fn judge(case: &Case) -> Result<(), String> {
    match case.text("op") {
        "scale" => {
            let budget = match case.input["context_tokens"].as_u64() {
                Some(_) => Budget::for_window(count(&case.input["context_tokens"])),
                None => Budget::default(),
            };
            case.check(json!({"per_result": budget.per_result, "per_turn": budget.per_turn, "preview": PREVIEW_CHARS}))
        }
        "preview" => previewed(case),
        "file_name" => case.check(file_name(case.text("id"))),
        "persist" => persisted(case),
        "turn" => chosen(case),
        other => case.unknown(other),
    }
}

fn previewed(case: &Case) -> Result<(), String> {
    let parts = case.input["parts"].as_array().unwrap().iter();
    let text: String = parts
        .map(|part| part[0].as_str().unwrap().repeat(count(&part[1])))
        .collect();
    let max = case.input["max"]
        .as_u64()
        .map_or(PREVIEW_CHARS, |_| count(&case.input["max"]));
    let (shown, more) = preview(&text, max);
    case.check(json!({"length": shown.chars().count(), "more": more, "ends_with_newline": shown.ends_with('\n')}))
}

fn persisted(case: &Case) -> Result<(), String> {
    let text = "x".repeat(count(&case.input["chars"]));
    let limit = case.input["threshold"]
        .as_u64()
        .map(|_| count(&case.input["threshold"]));
    // One that is given for the call is no bound of the tool, and counts as it is.
    let threshold = limit.unwrap_or_else(|| Budget::default().threshold(ResultLimit::Default));
    let path = "/tmp/hermes-results/call.txt";
    let is_replaced = threshold < text.chars().count();
    let shown = match (is_replaced, case.input["sandbox"].as_bool().unwrap()) {
        (false, _) => text,
        (true, true) => stored_text(&text, path),
        (true, false) => unstored_text(&text),
    };
    case.check(json!({
        "replaced": is_replaced,
        "persisted_tag": shown.contains(STORED_TAG),
        "mentions_path": shown.contains(path),
    }))
}

fn chosen(case: &Case) -> Result<(), String> {
    let stored = case.input["already_stored"].as_array().unwrap();
    let sizes = case.input["sizes"].as_array().unwrap().iter().enumerate();
    let lengths: Vec<Length> = sizes
        .map(|(at, size)| Length {
            length: count(size),
            is_stored: stored.contains(&json!(at)),
        })
        .collect();
    let budget = Budget {
        per_turn: count(&case.input["budget"]),
        ..Budget::default()
    };
    case.check(budget.to_store(&lengths))
}
