//! One JSON object of a chat-completions answer: a chunk of a stream, a whole
//! answer, or an error. The types are lenient where servers differ; what the
//! fields mean together is `assembly`'s business.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Everything this client looks at; unknown fields pass.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk {
    #[serde(default)]
    pub id: Value,
    #[serde(default, deserialize_with = "or_default")]
    pub choices: Vec<Choice>,
    #[serde(default)]
    pub usage: Value,
    #[serde(default)]
    pub error: Value,
    /// `error` on servers that put the error's fields at the top.
    #[serde(default)]
    pub object: Value,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    #[serde(default, deserialize_with = "or_default")]
    pub delta: Option<Piece>,
    /// The same in an answer that is not streamed.
    #[serde(default, deserialize_with = "or_default")]
    pub message: Option<Piece>,
    #[serde(default)]
    pub finish_reason: Value,
}

/// A part of the assistant's message, or all of it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Piece {
    #[serde(default)]
    pub content: Value,
    #[serde(default)]
    pub refusal: Value,
    #[serde(default)]
    reasoning_content: Value,
    #[serde(default)]
    reasoning: Value,
    #[serde(default)]
    reasoning_details: Value,
    #[serde(default, deserialize_with = "or_default")]
    pub tool_calls: Vec<CallPiece>,
    /// The older form of a single call.
    #[serde(default, deserialize_with = "or_default")]
    pub function_call: Option<Function>,
}

/// A part of one tool call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CallPiece {
    #[serde(default)]
    pub index: Value,
    #[serde(default)]
    pub id: Value,
    #[serde(default, deserialize_with = "or_default")]
    pub function: Function,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function {
    #[serde(default)]
    pub name: Value,
    #[serde(default)]
    pub arguments: Value,
}

/// `null` counts as absent.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Chunk {
    pub(super) fn parse(data: &str) -> serde_json::Result<Self> {
        serde_json::from_str(data).or_else(|error| match mend_surrogates(data) {
            Cow::Borrowed(_) => Err(error),
            Cow::Owned(mended) => serde_json::from_str(&mended),
        })
    }
}

impl Piece {
    /// The reasoning in this piece. Several servers send it under two names at
    /// once; the first that holds text counts.
    pub(super) fn reasoning(&self) -> String {
        [&self.reasoning_content, &self.reasoning, &self.reasoning_details]
            .into_iter()
            .map(|field| joined(field, Kind::Any))
            .chain(std::iter::once(joined(&self.content, Kind::Reasoning)))
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }

    /// The text in this piece; a refusal is text.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match (&self.content, &self.refusal) {
            (Value::String(text), Value::Null) => Cow::Borrowed(text),
            (content, refusal) => Cow::Owned(joined(content, Kind::Text) + &joined(refusal, Kind::Any)),
        }
    }
}

/// Which parts of a list of content parts are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    Any,
}

/// The text of a string, of a part, or of a list of parts, one level of nesting
/// deep (`{"type": "thinking", "thinking": [{"type": "text", …}]}`).
fn joined(value: &Value, kind: Kind) -> String {
    match value {
        Value::String(text) if kind != Kind::Reasoning => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| part_text(part, kind)).collect(),
        Value::Object(_) => part_text(value, kind),
        _ => String::new(),
    }
}

fn part_text(part: &Value, kind: Kind) -> String {
    let name = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_reasoning = name.contains("thinking") || name.contains("reasoning");
    if (kind == Kind::Text && is_reasoning) || (kind == Kind::Reasoning && !is_reasoning) {
        return String::new();
    }
    let texts = ["text", "summary", "thinking"].iter().map(|field| part.get(field));
    match texts.flatten().find(|text| !text.is_null()) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(inner)) => inner.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

/// Replaces `\u` escapes of half a surrogate pair by U+FFFD. Servers that cut a
/// character between two chunks write such halves, and JSON readers refuse them.
fn mend_surrogates(data: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut rest = data;
    let mut is_whole = true;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        mended.push_str(before);
        let half = |text: &str| {
            text.strip_prefix("\\u")
                .and_then(|hex| u32::from_str_radix(hex.get(..4)?, 16).ok())
        };
        // An escape is two bytes, or six with four digits.
        let (taken, replacement) = match half(escape) {
            Some(0xd800..=0xdbff) => match escape.get(6..).and_then(half) {
                Some(0xdc00..=0xdfff) => (12, None),
                _ => (6, Some("\\ufffd")),
            },
            Some(0xdc00..=0xdfff) => (6, Some("\\ufffd")),
            Some(_) => (6, None),
            None => (2, None),
        };
        is_whole &= replacement.is_none();
        let (escape, after) = escape.split_at_checked(taken).unwrap_or((escape, ""));
        mended.push_str(replacement.unwrap_or(escape));
        rest = after;
    }
    if is_whole {
        return Cow::Borrowed(data);
    }
    mended.push_str(rest);
    Cow::Owned(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(json: &str) -> Piece {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn reasoning_is_found_under_every_name() {
        for json in [
            r#"{"reasoning_content": "hm"}"#,
            r#"{"reasoning": "hm", "content": ""}"#,
            r#"{"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}"#,
            r#"{"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}, {"type": "reasoning.encrypted", "data": "x"}]}"#,
            r#"{"reasoning_content": null, "reasoning": {"text": "hm"}}"#,
            r#"{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}"#,
        ] {
            let piece = piece(json);
            assert_eq!(
                (piece.reasoning().as_str(), piece.text().as_ref()),
                ("hm", ""),
                "{json}"
            );
        }
    }

    #[test]
    fn text_is_found_in_every_form() {
        for json in [
            r#"{"content": "hi"}"#,
            r#"{"content": [{"type": "text", "text": "h"}, {"type": "thinking", "text": "no"}, {"type": "text", "text": "i"}]}"#,
            r#"{"content": null, "refusal": "hi", "tool_calls": null}"#,
            r#"{"content": {"text": "hi"}}"#,
        ] {
            assert_eq!(piece(json).text(), "hi", "{json}");
        }
    }

    #[test]
    fn half_characters_do_not_lose_the_chunk() {
        let text = |data: &str| {
            Chunk::parse(data).unwrap().choices[0]
                .delta
                .as_ref()
                .unwrap()
                .text()
                .into_owned()
        };
        let chunk = |content: &str| format!(r#"{{"choices": [{{"delta": {{"content": "{content}"}}}}]}}"#);
        assert_eq!(text(&chunk(r"a\ud83d\ude00b")), "a😀b");
        assert_eq!(text(&chunk(r"a\ud83d")), "a\u{fffd}");
        assert_eq!(
            text(&chunk(r"\ude00b\\ud83d \ud83d\ud83d\ude00")),
            "\u{fffd}b\\ud83d \u{fffd}😀"
        );
        assert!(Chunk::parse(r#"{"id": "\ud8"#).is_err());
        assert!(Chunk::parse(r#"{"id": "\"#).is_err());
    }
}
