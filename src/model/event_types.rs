//! Which types of events a reader wants to see: names, or patterns such as
//! `turn.*`, as a comma list. A name that no event has is refused, so that a slip
//! is not a silent stream.

use utoipa::PartialSchema;
use utoipa::openapi::{RefOr, Schema};

use super::event::EventType;

/// Frames of items in flight.
pub const LIVE: [&str; 4] = [
    "message.started",
    "message.delta",
    "reasoning.delta",
    "tool_call.output_delta",
];
/// Frames of the stream itself: they always come, and may be named.
const STREAM: [&str; 4] = ["stream.hello", "stream.ready", "stream.reset", "heartbeat"];
/// Told by streams of a tenant alone: the session's own log goes with it.
pub const SESSION_DELETED: &str = "session.deleted";

/// The types that pass; all where nothing was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Types(Option<Vec<String>>);

/// A type that does not exist, and those that do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no type of this stream; allowed, separated by commas: {}, and patterns such as `approval.*`", allowed.join(", "))]
pub struct UnknownType {
    given: String,
    allowed: Vec<String>,
}

impl Types {
    /// Those of a session's stream.
    pub fn of_session(text: &str) -> Result<Self, UnknownType> {
        let live = LIVE.iter().map(|name| (*name).to_owned());
        Self::chosen(text, durable().into_iter().chain(live).collect())
    }

    /// Those of a tenant's streams.
    pub fn of_tenant(text: &str) -> Result<Self, UnknownType> {
        let mut known = durable();
        known.retain(|name| is_of_tenant(name));
        known.push(SESSION_DELETED.to_owned());
        Self::chosen(text, known)
    }

    fn chosen(text: &str, known: Vec<String>) -> Result<Self, UnknownType> {
        let mut chosen = Vec::new();
        for given in text.split(',').map(str::trim) {
            let meant = known.iter().filter(|name| matches(given, name));
            let before = chosen.len();
            chosen.extend(meant.cloned());
            if chosen.len() == before && !STREAM.iter().any(|name| matches(given, name)) {
                let given = given.chars().take(100).collect();
                return Err(UnknownType { given, allowed: known });
            }
        }
        Ok(Self(Some(chosen)))
    }

    pub fn pass(&self, name: &str) -> bool {
        let listed = |chosen: &Vec<String>| chosen.iter().any(|chosen| chosen == name);
        self.0.as_ref().is_none_or(listed) || STREAM.contains(&name)
    }

    /// Whether any frame of items in flight passes.
    pub fn pass_live(&self) -> bool {
        LIVE.iter().any(|name| self.pass(name))
    }
}

/// What streams of a tenant tell: what its lists of sessions and approvals show.
pub fn is_of_tenant(name: &str) -> bool {
    name.starts_with("session.") || name.starts_with("approval.")
}

/// Whether a name is the one given, or begins as a pattern says.
fn matches(given: &str, name: &str) -> bool {
    match given.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => given == name,
    }
}

/// The names of all durable types, as their schema lists them.
fn durable() -> Vec<String> {
    let RefOr::T(Schema::Object(schema)) = EventType::schema() else {
        return Vec::new();
    };
    let names = schema.enum_values.into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns_choose_and_nothing_chosen_is_everything() {
        let types = Types::of_session("turn.*, message.delta,heartbeat").unwrap();
        for name in [
            "turn.started",
            "turn.rolled_back",
            "message.delta",
            "stream.hello",
            "heartbeat",
        ] {
            assert!(types.pass(name), "{name}");
        }
        for name in ["message.completed", "session.status", "turn", "message.started"] {
            assert!(!types.pass(name), "{name}");
        }
        assert!(types.pass_live() && !Types::of_session("turn.*").unwrap().pass_live());
        assert!(Types::default().pass("anything") && Types::default().pass_live());
        assert!(Types::of_session("*").unwrap().pass("tool_call.output_delta"));
    }

    #[test]
    fn what_no_event_is_called_is_refused_with_what_there_is() {
        for text in [
            "",
            "turn",
            "turn.started,,",
            "Turn.started",
            "turns.*",
            "*.started",
            "approval.requested;x",
        ] {
            let error = Types::of_session(text).unwrap_err().to_string();
            assert!(
                error.contains("turn.started, ") && error.contains("message.delta"),
                "{text}: {error}"
            );
        }
        let error = Types::of_tenant("turn.*").unwrap_err().to_string();
        assert!(
            error.contains("session.deleted") && !error.contains("turn.started"),
            "{error}"
        );
        assert!(Types::of_tenant("approval.*").unwrap().pass("approval.expired"));
    }
}
