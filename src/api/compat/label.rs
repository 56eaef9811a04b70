//! What a call is about, in one line for people: the argument that matters most,
//! without secrets.

use serde_json::Value;

use crate::base::text::first_chars;
use crate::guard::redact::{Mode, redact};
use crate::model::call::ToolCall;

/// As long as a line of a chat is.
const MAX_CHARS: usize = 80;
/// Arguments that say what a call is about, the first that is there.
const TELLING: [&str; 12] = [
    "command",
    "path",
    "file_path",
    "query",
    "pattern",
    "url",
    "urls",
    "code",
    "goal",
    "question",
    "name",
    "action",
];

/// One line, or nothing where no argument tells.
pub(in crate::api) fn preview(arguments: &Value) -> Option<String> {
    let fields = arguments.as_object()?;
    let telling = TELLING.iter().find_map(|name| fields.get(*name));
    let value = telling.or_else(|| fields.values().find(|value| value.is_string()))?;
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.first()?.as_str()?.to_owned(),
        _ => return None,
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = redact(&line, Mode::Egress);
    let short = first_chars(&line, MAX_CHARS);
    let cut = if short.len() < line.len() { "…" } else { "" };
    (!short.is_empty()).then(|| format!("{short}{cut}"))
}

/// Shown to nobody: a tool's own business.
pub(in crate::api) fn is_hidden(tool: &str) -> bool {
    tool.starts_with('_')
}

/// Whether a call is one of the model's that is shown; those of its programs are
/// no part of what it said.
pub(in crate::api) fn is_item(call: &ToolCall) -> bool {
    call.parent_call_id.is_none() && !is_hidden(&call.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_told_in_one_line_without_secrets() {
        assert_eq!(
            preview(&json!({"timeout": 5, "command": "ls\n  -la"})).as_deref(),
            Some("ls -la")
        );
        assert_eq!(preview(&json!({"other": "x"})).as_deref(), Some("x"));
        assert_eq!(preview(&json!({"n": 5})), None);
        assert_eq!(preview(&json!([])), None);
        let long = preview(&json!({"path": "p".repeat(200)})).unwrap();
        assert_eq!(long.chars().count(), 81);
        let secret = preview(
            &json!({"command": "curl -H 'Authorization: Bearer sk-proj-abcdefghijklmnopqrstuvwxyz0123456789'"}),
        );
        assert!(!secret.unwrap().contains("abcdefghijklmnopqrstuvwxyz"));
    }
}
