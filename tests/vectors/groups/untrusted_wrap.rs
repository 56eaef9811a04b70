//! `untrusted_wrap`: results from outside, marked as data.

use hermes_server::tool::untrusted::wrap;
use serde_json::{Value, json};

use crate::case::Case;

const TAG: &str = "untrusted_tool_result";

pub fn judge(case: &Case) -> Result<(), String> {
    let content = &case.input["content"];
    let got = wrap(case.text("tool"), content.clone());
    case.check(match &got {
        Value::String(text) => described(text),
        Value::Array(parts) => {
            let parts = parts.iter().map(|part| match part["text"].as_str() {
                Some(text) => described(text),
                None => json!({"unchanged": content.as_array().unwrap().contains(part)}),
            });
            json!({"parts": parts.collect::<Vec<_>>()})
        }
        other => json!({"unchanged": other == content}),
    })
}

/// A text as the cases describe it: one paragraph of explanation, a blank line,
/// and the body.
fn described(text: &str) -> Value {
    let (open, close) = (format!("<{TAG}"), format!("</{TAG}>"));
    let is_wrapped = text.starts_with(&open);
    let body = text
        .split_once("\n\n")
        .filter(|_| is_wrapped)
        .map_or(text, |(_, rest)| {
            rest.strip_suffix(&close)
                .map_or(rest, |rest| rest.strip_suffix('\n').unwrap_or(rest))
        });
    json!({
        "wrapped": is_wrapped,
        "source": text.split('"').nth(1).filter(|_| is_wrapped),
        "open_tags": text.matches(&open).count(),
        "close_tags": text.matches(&close).count(),
        "body": body,
    })
}
