//! What kind of answer a client wants for a turn: a stream of events, its text,
//! or JSON. Only a client that names `text/event-stream` or `text/plain` gets a
//! stream; a wildcard means JSON.

use http::HeaderMap;
use http::header::ACCEPT;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::model::problem::ProblemCode;

use super::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Json,
    Stream,
    /// The same events as parts of a UI message.
    Ui,
    /// What the model says, while it says it.
    Text,
}

/// How a stream of events is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Protocol {
    Native,
    /// As the AI SDK reads it.
    Ui,
}

/// The parameter of `text/event-stream` that stands for [`Protocol::Ui`].
const UI: &str = "protocol=ui-message-stream";

impl Wanted {
    /// Whether the answer lasts as long as the turn.
    pub(super) fn follows(self) -> bool {
        matches!(self, Self::Stream | Self::Ui | Self::Text)
    }

    /// The same in the protocol that the query names, which is stronger.
    pub(super) fn in_protocol(self, named: Option<Protocol>) -> Self {
        match (named, self) {
            (Some(Protocol::Ui), Self::Stream | Self::Json) => Self::Ui,
            (Some(Protocol::Native), Self::Ui) => Self::Stream,
            (_, wanted) => wanted,
        }
    }
}

/// The kind with the higher quality; the one named first where they are equal.
pub(super) fn wanted(headers: &HeaderMap) -> Result<Wanted, Failure> {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let ranges: Vec<(Wanted, f32)> = lines.flat_map(|line| line.split(',')).filter_map(range).collect();
    if !headers.contains_key(ACCEPT) {
        return Ok(Wanted::Json);
    }
    let acceptable = ranges.into_iter().filter(|(_, quality)| 0.0 < *quality);
    // `max_by` would keep the last of equals.
    let best = acceptable.reduce(|best, next| if best.1 < next.1 { next } else { best });
    best.map(|(wanted, _)| wanted).ok_or_else(|| {
        Failure::new(
            ProblemCode::NotAcceptable,
            "the header `Accept` allows none of `application/json`, `text/event-stream` and `text/plain`",
        )
    })
}

/// One media range and its quality, if it is one of ours.
fn range(text: &str) -> Option<(Wanted, f32)> {
    let mut parts = text.split(';').map(str::trim);
    let wanted = match parts.next()?.to_ascii_lowercase().as_str() {
        "text/event-stream" if text.to_ascii_lowercase().contains(UI) => Wanted::Ui,
        "text/event-stream" => Wanted::Stream,
        "text/plain" => Wanted::Text,
        "application/json" | "application/*" | "*/*" => Wanted::Json,
        _ => return None,
    };
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    Some((
        wanted,
        quality.map_or(1.0, |quality| quality.trim().parse().unwrap_or(0.0)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(accept: &str) -> Option<Wanted> {
        wanted(&HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())])).ok()
    }

    #[test]
    fn a_stream_is_for_those_who_name_it() {
        assert_eq!(wanted(&HeaderMap::new()).unwrap(), Wanted::Json);
        for accept in [
            "*/*",
            "application/json",
            "application/*;q=0.1",
            "application/json, text/event-stream",
        ] {
            assert_eq!(chosen(accept), Some(Wanted::Json), "{accept}");
        }
        for accept in [
            "text/event-stream",
            "TEXT/Event-Stream; charset=utf-8",
            "text/event-stream, application/json",
            "application/json;q=0.5, text/event-stream;q=0.9",
            "text/html, text/event-stream",
        ] {
            assert_eq!(chosen(accept), Some(Wanted::Stream), "{accept}");
        }
    }

    #[test]
    fn text_is_for_those_who_name_it() {
        for accept in [
            "text/plain",
            "text/plain; charset=utf-8, */*;q=0.5",
            "text/event-stream;q=0.1, Text/Plain",
        ] {
            assert_eq!(chosen(accept), Some(Wanted::Text), "{accept}");
        }
    }

    #[test]
    fn parts_of_a_ui_message_are_for_those_who_name_their_protocol() {
        let accept = "application/json;q=0.1, text/event-stream; protocol=ui-message-stream";
        assert_eq!(chosen(accept), Some(Wanted::Ui));
        assert_eq!(Wanted::Json.in_protocol(Some(Protocol::Ui)), Wanted::Ui);
        assert_eq!(Wanted::Ui.in_protocol(Some(Protocol::Native)), Wanted::Stream);
        assert_eq!(Wanted::Text.in_protocol(Some(Protocol::Ui)), Wanted::Text);
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        for accept in [
            "text/html",
            "application/json;q=0",
            "text/event-stream;q=0",
            "",
            "text/event-stream;q=x",
        ] {
            assert_eq!(chosen(accept), None, "{accept}");
        }
    }
}
