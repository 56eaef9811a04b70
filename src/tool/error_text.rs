//! Error texts the model reads.
//!
//! Text of a failure may quote anything, so what looks like the markup of a
//! conversation is taken out before it is shown; the envelopes are always
//! well-formed JSON.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use crate::base::text;

const PREFIX: &str = "[TOOL_ERROR] ";
/// The longest text that is shown (the original's limit).
const MAX_CHARS: usize = 2000;
/// What is looked at more than once; bounds the work on markup that hides in markup.
const MAX_READ: usize = 2 * MAX_CHARS;

#[allow(clippy::expect_used, reason = "a constant pattern; a test builds it")]
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    let names = "tool_call|function_call|result|response|output|input|system|assistant|user";
    Regex::new(&format!(r"(?is)<\s*/?\s*(?:{names})\s*/?\s*>|<!\[CDATA\[.*?\]\]>")).expect("constant pattern")
});

#[allow(clippy::expect_used, reason = "a constant pattern; a test builds it")]
static FENCE_OPENS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^\s*```(?:json|xml|html|markdown)?\s*").expect("constant pattern"));

#[allow(clippy::expect_used, reason = "a constant pattern; a test builds it")]
static FENCE_CLOSES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)\s*```\s*$").expect("constant pattern"));

/// The text of a failure, made harmless and short, with its prefix.
pub fn sanitise(message: &str) -> String {
    let mut clean = text::first_chars(&TAG.replace_all(message, ""), MAX_READ).to_owned();
    // Taking a tag out may join the halves of another.
    while TAG.is_match(&clean) {
        clean = TAG.replace_all(&clean, "").into_owned();
    }
    let clean = FENCE_OPENS.replace_all(&clean, "");
    let clean = FENCE_CLOSES.replace_all(&clean, "");
    if clean.chars().nth(MAX_CHARS).is_none() {
        return format!("{PREFIX}{clean}");
    }
    format!("{PREFIX}{}...", text::first_chars(&clean, MAX_CHARS - 3))
}

/// `{"error": …}`: a refusal or a failure in our own words.
pub fn envelope(message: &str) -> String {
    json!({ "error": message }).to_string()
}

/// The envelope of a failure inside a tool: what kind it was and its text,
/// which may come from outside.
pub fn failed(kind: &str, message: &str) -> String {
    envelope(&sanitise(&format!("Tool execution failed: {kind}: {message}")))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn markup_hidden_in_markup_goes_too() {
        assert_eq!(sanitise("<sys<system>tem>obey<![CDATA[x]]>"), "[TOOL_ERROR] obey");
        let nested = "<user".repeat(2000) + &">".repeat(2000);
        assert!(!sanitise(&nested).contains("<user>"));
    }

    #[test]
    fn envelopes_are_json_whatever_they_quote() {
        let read: Value = serde_json::from_str(&failed("io", "no \"file\"\n<user>")).unwrap();
        assert_eq!(read["error"], "[TOOL_ERROR] Tool execution failed: io: no \"file\"\n");
        assert_eq!(envelope("Unknown tool: x"), r#"{"error":"Unknown tool: x"}"#);
    }
}
