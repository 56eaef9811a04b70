//! One line that tells people what a call is about: the text of its primary
//! argument, secrets masked. For display only; nothing is decided by it.

use serde_json::Value;

use crate::base::text::first_chars;
use crate::guard::redact::{Mode, redact};

/// What stands for a call, the most telling first.
const PRIMARY: [&str; 17] = [
    "command", "path", "query", "pattern", "url", "urls", "goal", "tasks", "question", "code", "patch", "content",
    "name", "action", "prompt", "text", "data",
];
const SHOWN_CHARS: usize = 120;
/// Looked at for secrets: one that begins in what is shown may end behind it.
const READ_CHARS: usize = 2_000;

/// Empty for a call without arguments that tell anything.
pub fn preview(arguments: &Value) -> String {
    let told = PRIMARY.iter().find_map(|name| text(arguments.get(*name)?));
    let Some(told) = told else { return String::new() };
    let masked = redact(first_chars(&told, READ_CHARS), Mode::Code);
    let line = masked.split_whitespace().collect::<Vec<_>>().join(" ");
    match first_chars(&line, SHOWN_CHARS) {
        whole if whole.len() == line.len() => line,
        start => format!("{start}…"),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().filter_map(part).collect();
            Some(texts.join("; ")).filter(|text| !text.is_empty())
        }
        _ => None,
    }
}

fn part(item: &Value) -> Option<String> {
    item.as_str().or_else(|| item.get("goal")?.as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_one_line_of_what_it_is_about() {
        for (arguments, shown) in [
            (json!({"timeout": 5, "command": "ls\n  -l"}), "ls -l"),
            (json!({"path": "src/a.py", "content": "x = 1"}), "src/a.py"),
            (json!({"tasks": [{"goal": "one"}, {"goal": "two"}]}), "one; two"),
            (json!({"action": "list"}), "list"),
            (json!({"todos": []}), ""),
            (json!(null), ""),
        ] {
            assert_eq!(preview(&arguments), shown, "{arguments}");
        }
        let long = preview(&json!({"command": "x".repeat(5_000)}));
        assert_eq!(long.chars().count(), SHOWN_CHARS + 1);
    }

    #[test]
    fn secrets_are_masked_also_at_the_end_of_the_line() {
        let token = format!("ghp_{}", "a1B2c3D4".repeat(5));
        for before in ["echo ".to_owned(), format!("{} ", "x".repeat(100))] {
            let shown = preview(&json!({"command": format!("{before}{token}")}));
            assert!(!shown.contains(token.get(..20).unwrap()), "{shown}");
        }
    }
}
