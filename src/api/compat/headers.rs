//! The headers by which clients of the drop-in surfaces say which conversation
//! they mean and what they want of it.

use http::{HeaderMap, HeaderName};

use crate::api::failure::Failure;
use crate::model::turn::OnDisconnect;

pub(in crate::api) const SESSION_ID: HeaderName = HeaderName::from_static("x-hermes-session-id");
pub(in crate::api) const SESSION_KEY: HeaderName = HeaderName::from_static("x-hermes-session-key");
pub(in crate::api) const COMPLETED: HeaderName = HeaderName::from_static("x-hermes-completed");
pub(in crate::api) const PARTIAL: HeaderName = HeaderName::from_static("x-hermes-partial");
pub(in crate::api) const ERROR: HeaderName = HeaderName::from_static("x-hermes-error");
/// `cancel` or `continue`: what becomes of the turn when this client leaves.
pub(in crate::api) const ON_DISCONNECT: HeaderName = HeaderName::from_static("x-hermes-on-disconnect");
/// `true`: approvals come as named events in a chat stream.
pub(in crate::api) const APPROVAL_EVENTS: HeaderName = HeaderName::from_static("x-hermes-approval-events");

/// What the original takes.
const MAX_CHARS: usize = 256;

/// The session that the client names.
pub(in crate::api) fn session_id(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(name) = text(headers, &SESSION_ID)? else {
        return Ok(None);
    };
    check_name("X-Hermes-Session-Id", &name).map(|()| Some(name))
}

/// A name that reaches neither a file nor a line of a log.
pub(in crate::api) fn check_name(place: &str, name: &str) -> Result<(), Failure> {
    let wrong = |detail: &str| Err(Failure::field(place, detail).known_as("invalid_session_id"));
    if name.is_empty() || MAX_CHARS < name.chars().count() {
        return wrong("a session id has 1 to 256 characters");
    }
    let mut bytes = name.bytes();
    let drive = bytes.next().is_some_and(|first| first.is_ascii_alphabetic()) && bytes.next() == Some(b':');
    if drive || name.contains("..") || name.contains(['/', '\\', '\r', '\n', '\0']) {
        return wrong("a session id holds no path and no line break");
    }
    Ok(())
}

/// The memory that the client means; it comes back on the answer.
pub(in crate::api) fn session_key(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let key = text(headers, &SESSION_KEY)?;
    match &key {
        Some(key) if key.is_empty() || MAX_CHARS < key.chars().count() => Err(Failure::field(
            "X-Hermes-Session-Key",
            "a session key has 1 to 256 characters",
        )),
        _ => Ok(key),
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, Failure> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(_) => Err(Failure::field(name.as_str(), "it is not UTF-8")),
    }
}

pub(in crate::api) fn on_disconnect(headers: &HeaderMap) -> Result<Option<OnDisconnect>, Failure> {
    match text(headers, &ON_DISCONNECT)?.as_deref() {
        None => Ok(None),
        Some("cancel") => Ok(Some(OnDisconnect::Cancel)),
        Some("continue") => Ok(Some(OnDisconnect::Continue)),
        Some(_) => Err(Failure::field(
            "X-Hermes-On-Disconnect",
            "expected `cancel` or `continue`",
        )),
    }
}

pub(in crate::api) fn wants_approval_events(headers: &HeaderMap) -> bool {
    let value = headers.get(APPROVAL_EVENTS).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Result<Option<String>, Failure> {
        session_id(&HeaderMap::from_iter([(SESSION_ID, value.parse().unwrap())]))
    }

    #[test]
    fn a_session_id_is_a_name_and_no_path() {
        assert_eq!(read(" chat-1 ").unwrap().as_deref(), Some("chat-1"));
        assert_eq!(session_id(&HeaderMap::new()).unwrap(), None);
        let long = "x".repeat(257);
        for wrong in ["", "  ", "a/b", "a\\b", "..", "c:x", long.as_str()] {
            let failure = read(wrong).unwrap_err();
            assert_eq!(failure.problem().status, 400, "{wrong}");
        }
    }
}
