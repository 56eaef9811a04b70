//! How long what a client sets may be. The store would take more; lists, logs
//! and prompts would not carry it.

use crate::api::failure::Failure;
use crate::model::budget::{MAX_CEILING, SessionBudget};
use crate::model::client_tool::{self, ClientTool};
use crate::model::message::Part;
use crate::model::session::{EnvironmentSpec, Metadata, ToolsetSelection};
use crate::model::turn::TurnLimits;

/// Where commands run.
pub(super) const BACKEND: &str = "local";
const MAX_TITLE_CHARS: usize = 256;
/// Long enough for the ids that front ends bring.
const MAX_EXTERNAL_ID_CHARS: usize = 256;
const MAX_MODEL_CHARS: usize = 256;
/// As long as a long chapter; more is no instruction any more.
const MAX_INSTRUCTIONS_CHARS: usize = 256 * 1024;
/// What popular APIs allow for 16 pairs of 512 characters, with room to spare.
const MAX_METADATA_BYTES: usize = 16 * 1024;
/// More than there are toolsets.
const MAX_TOOLSETS: usize = 200;

pub(super) fn session_texts(
    title: &Option<String>,
    external_id: &Option<String>,
    model: &Option<String>,
    instructions: &Option<String>,
) -> Result<(), Failure> {
    at_most("/title", title, MAX_TITLE_CHARS)?;
    name("/external_id", external_id, MAX_EXTERNAL_ID_CHARS)?;
    name("/model", model, MAX_MODEL_CHARS)?;
    self::instructions(instructions)
}

pub(in crate::api) fn instructions(text: &Option<String>) -> Result<(), Failure> {
    at_most("/instructions", text, MAX_INSTRUCTIONS_CHARS)
}

/// Text that names something cannot be empty.
pub(super) fn name(pointer: &str, text: &Option<String>, max: usize) -> Result<(), Failure> {
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Failure::field(pointer, "it is empty; leave it out, or give a name"));
    }
    at_most(pointer, text, max)
}

pub(in crate::api) fn model(text: &Option<String>) -> Result<(), Failure> {
    name("/model", text, MAX_MODEL_CHARS)
}

fn at_most(pointer: &str, text: &Option<String>, max: usize) -> Result<(), Failure> {
    // A character has at most four bytes: short texts need no counting.
    let count = text.as_ref().map_or(0, |text| text.chars().count());
    if max < count {
        return Err(Failure::field(
            pointer,
            format!("it has {count} characters; at most {max} are allowed"),
        ));
    }
    Ok(())
}

pub(in crate::api) fn metadata(metadata: &Metadata) -> Result<(), Failure> {
    let bytes = serde_json::to_vec(metadata).map_or(usize::MAX, |text| text.len());
    if MAX_METADATA_BYTES < bytes {
        let detail = format!("it has {bytes} bytes as JSON; at most {MAX_METADATA_BYTES} are allowed");
        return Err(Failure::field("/metadata", detail));
    }
    Ok(())
}

/// Names may stand twice, so how many there are says nothing of how many count:
/// a selection is worked out again and kept for as long as it is used.
pub(super) fn toolsets(selection: &ToolsetSelection) -> Result<(), Failure> {
    let enabled = selection.enabled.as_deref().unwrap_or_default();
    for (pointer, names) in [
        ("/toolsets/enabled", enabled),
        ("/toolsets/disabled", &selection.disabled),
    ] {
        if MAX_TOOLSETS < names.len() {
            let detail = format!("it has {} names; at most {MAX_TOOLSETS} are allowed", names.len());
            return Err(Failure::field(pointer, detail));
        }
    }
    Ok(())
}

/// Tools that the client carries out.
pub(in crate::api) fn tools(tools: &[ClientTool]) -> Result<(), Failure> {
    match client_tool::fault(tools) {
        Some((pointer, detail)) => Err(Failure::field(&format!("/tools{pointer}"), detail)),
        None => Ok(()),
    }
}

/// A session is never moved to another backend than the one it names.
pub(super) fn environment(spec: &EnvironmentSpec) -> Result<(), Failure> {
    if spec.backend == BACKEND {
        return Ok(());
    }
    let detail = format!("this server offers the backend `{BACKEND}` only");
    Err(Failure::field("/environment/backend", detail))
}

/// A message says or shows something.
pub(in crate::api) fn said(pointer: &str, parts: &[Part], max_chars: usize) -> Result<(), Failure> {
    let said = |part: &Part| match part {
        Part::Text { text } => !text.trim().is_empty(),
        Part::ImageUrl { .. } => true,
    };
    if !parts.iter().any(said) {
        return Err(Failure::field(
            pointer,
            "it says nothing; send a text or a list of parts",
        ));
    }
    let chars: usize = parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.chars().count(),
            Part::ImageUrl { .. } => 0,
        })
        .sum();
    if max_chars < chars {
        let detail = format!(
            "{chars} characters; expected at most {max_chars} (`server.max_input_chars`): shorten it, or let an \
             operator raise the limit"
        );
        return Err(Failure::field(pointer, detail));
    }
    images(pointer, parts)
}

/// Images are named by addresses that a model server can use.
pub(super) fn images(pointer: &str, parts: &[Part]) -> Result<(), Failure> {
    for (place, part) in parts.iter().enumerate() {
        let Part::ImageUrl { image_url } = part else { continue };
        if !["https://", "data:image/"]
            .iter()
            .any(|scheme| image_url.url.starts_with(scheme))
        {
            let pointer = format!("{pointer}/{place}/image_url/url");
            return Err(Failure::field(
                &pointer,
                "an image is named by a URL with `https:` or `data:image/`",
            ));
        }
    }
    Ok(())
}

pub(super) fn limits(limits: &TurnLimits) -> Result<(), Failure> {
    let zero = |detail: &str, pointer| Err(Failure::field(pointer, detail));
    match limits {
        TurnLimits { max_steps: Some(0), .. } => zero("expected 1 or more", "/limits/max_steps"),
        TurnLimits {
            timeout_seconds: Some(0),
            ..
        } => zero("expected 1 or more", "/limits/timeout_seconds"),
        TurnLimits { max_tokens, .. } if !ceiling(*max_tokens) => outside("/limits/max_tokens"),
        TurnLimits { max_cost_nanos, .. } if !ceiling(*max_cost_nanos) => outside("/limits/max_cost_nanos"),
        _ => Ok(()),
    }
}

pub(super) fn budget(budget: &SessionBudget) -> Result<(), Failure> {
    match *budget {
        SessionBudget { max_tokens, .. } if !ceiling(max_tokens) => outside("/budget/max_tokens"),
        SessionBudget { max_cost_nanos, .. } if !ceiling(max_cost_nanos) => outside("/budget/max_cost_nanos"),
        SessionBudget { .. } => Ok(()),
    }
}

fn ceiling(limit: Option<u64>) -> bool {
    limit.is_none_or(|limit| (1..=MAX_CEILING).contains(&limit))
}

fn outside(pointer: &str) -> Result<(), Failure> {
    Err(Failure::field(pointer, format!("expected 1 to {MAX_CEILING}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::ImageUrl;

    fn image(url: &str) -> Part {
        Part::ImageUrl {
            image_url: ImageUrl { url: url.to_owned() },
        }
    }

    #[test]
    fn texts_end_at_their_bounds() {
        let long = |count| Some("한".repeat(count));
        assert!(session_texts(&long(256), &long(256), &None, &None).is_ok());
        assert!(session_texts(&long(257), &None, &None, &None).is_err());
        assert!(session_texts(&None, &long(257), &None, &None).is_err());
        assert!(session_texts(&None, &Some("  ".to_owned()), &None, &None).is_err());
        assert!(session_texts(&Some(String::new()), &None, &None, &None).is_ok());
    }

    #[test]
    fn a_selection_of_toolsets_is_short() {
        let selection = |enabled, disabled| ToolsetSelection {
            enabled: Some(vec!["terminal".to_owned(); enabled]),
            disabled: vec!["terminal".to_owned(); disabled],
        };
        assert!(toolsets(&ToolsetSelection::default()).is_ok() && toolsets(&selection(200, 200)).is_ok());
        assert!(toolsets(&selection(201, 0)).is_err() && toolsets(&selection(0, 201)).is_err());
    }

    #[test]
    fn a_turn_begins_with_something() {
        assert!(said("/input", &[], 20).is_err() && said("/input", &[Part::text(" \n")], 20).is_err());
        assert!(
            said("/input", &[Part::text("hi")], 20).is_ok()
                && said("/input", &[image("https://a.example/x.png")], 20).is_ok()
        );
        for url in ["http://a.example/x.png", "file:///etc/passwd", "data:text/html,x", ""] {
            let failure = said("/input", &[Part::text("hi"), image(url)], 20).unwrap_err();
            assert_eq!(failure.problem().errors[0].pointer, "/input/1/image_url/url", "{url}");
        }
    }
}
