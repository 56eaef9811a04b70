//! What a message of a client holds: a text, or parts of several dialects. What
//! the model cannot be given is refused with the place and the code that clients
//! of the original know.

use serde_json::Value;

use crate::api::failure::Failure;
use crate::model::message::{ImageUrl, Part};

/// More parts than these are not read, as in the original.
const MAX_PARTS: usize = 1_000;

/// The parts of a message's content; texts that stand alone are one.
pub(in crate::api) fn parts(content: &Value, pointer: &str) -> Result<Vec<Part>, Failure> {
    let parts = match content {
        Value::String(text) => vec![Part::text(text.as_str())],
        Value::Array(items) => {
            let items = items.iter().take(MAX_PARTS).enumerate();
            let read = items.map(|(place, item)| part(item, &format!("{pointer}/{place}")));
            let read: Vec<Option<Part>> = read.collect::<Result<_, _>>()?;
            read.into_iter().flatten().collect()
        }
        Value::Null => Vec::new(),
        Value::Object(_) => part(content, pointer)?.into_iter().collect(),
        Value::Bool(_) | Value::Number(_) => {
            return Err(invalid(
                pointer,
                "expected a text or a list of parts",
                "invalid_content_part",
            ));
        }
    };
    let only_texts = parts.iter().all(|part| matches!(part, Part::Text { .. }));
    if only_texts && 1 < parts.len() {
        return Ok(vec![Part::text(crate::model::message::text_of(&parts))]);
    }
    Ok(parts)
}

/// The text of a content, without anything else it may hold.
pub(in crate::api) fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts = items.iter().take(MAX_PARTS).filter_map(|item| match item {
                Value::String(text) => Some(text.as_str()),
                item => item["text"].as_str(),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other["text"].as_str().unwrap_or_default().to_owned(),
    }
}

fn part(item: &Value, pointer: &str) -> Result<Option<Part>, Failure> {
    let fields = match item {
        Value::String(text) => return Ok(Some(Part::text(text.as_str()))),
        Value::Object(fields) => fields,
        // Skipped, as in the original.
        _ => return Ok(None),
    };
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "text" | "input_text" | "output_text" => match fields.get("text").and_then(Value::as_str) {
            Some(text) => Ok(Some(Part::text(text))),
            None => Err(invalid(pointer, "a part of text has a `text`", "invalid_content_part")),
        },
        "image_url" | "input_image" => image(fields.get("image_url"), pointer).map(Some),
        other => Err(invalid(
            pointer,
            &format!("content of type `{other}` cannot be given to the model; send texts and images"),
            "unsupported_content_type",
        )),
    }
}

fn image(given: Option<&Value>, pointer: &str) -> Result<Part, Failure> {
    let url = match given {
        Some(Value::String(url)) => Some(url.as_str()),
        Some(Value::Object(fields)) => {
            if fields
                .get("detail")
                .is_some_and(|detail| detail.as_str().is_none_or(str::is_empty))
            {
                return Err(invalid(pointer, "`detail` is a word", "invalid_content_part"));
            }
            fields.get("url").and_then(Value::as_str)
        }
        _ => None,
    };
    let Some(url) = url else {
        return Err(invalid(pointer, "an image has an `image_url`", "invalid_image_url"));
    };
    if url.starts_with("data:") && !(url.starts_with("data:image/") && url.contains(',')) {
        let detail = "only images can be sent as `data:`";
        return Err(invalid(pointer, detail, "unsupported_content_type"));
    }
    if !["https://", "http://", "data:image/"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
    {
        let detail = "an image is named by a URL with `https:`, `http:` or `data:image/`";
        return Err(invalid(pointer, detail, "invalid_image_url"));
    }
    Ok(Part::ImageUrl {
        image_url: ImageUrl { url: url.to_owned() },
    })
}

fn invalid(pointer: &str, detail: &str, code: &'static str) -> Failure {
    Failure::field(pointer, detail).known_as(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_of_any_dialect_become_one() {
        let content = json!(["a", {"type": "input_text", "text": "b"}, 5, {"type": "text", "text": "c"}]);
        assert_eq!(parts(&content, "/input").unwrap(), [Part::text("a\nb\nc")]);
        assert_eq!(text(&content), "a\nb\nc");
    }

    #[test]
    fn images_of_both_dialects_are_kept_in_their_place() {
        let content = json!([
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "https://a.example/x.png", "detail": "low"}},
            {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
        ]);
        let read = parts(&content, "/input").unwrap();
        assert_eq!((read.len(), &read[0]), (3, &Part::text("see")));
    }

    #[test]
    fn what_cannot_be_given_to_the_model_is_refused_by_place() {
        for (content, code) in [
            (json!([{"type": "file", "file": {}}]), "unsupported_content_type"),
            (
                json!([{"type": "image_url", "image_url": "data:text/html,x"}]),
                "unsupported_content_type",
            ),
            (
                json!([{"type": "image_url", "image_url": "file:///etc/passwd"}]),
                "invalid_image_url",
            ),
            (json!([{"type": "image_url"}]), "invalid_image_url"),
            (json!([{"type": "text"}]), "invalid_content_part"),
        ] {
            let failure = parts(&content, "/messages/0/content").unwrap_err();
            assert_eq!(failure.problem().errors[0].pointer, "/messages/0/content/0");
            let body = crate::api::compat::envelope::error(failure.problem(), failure.wire_code());
            assert_eq!(body["error"]["code"], code, "{content}");
        }
    }
}
