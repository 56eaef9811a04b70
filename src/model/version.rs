//! Which version of a thing a client has seen: the entity tag of a session and
//! of a turn. It is made from what is shown, so that another tag is another
//! representation, whoever changed it.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::policy::NamedPolicy;
use super::session::Session;
use super::turn::Turn;

/// What of a session changes while its turns run; the rest is what clients set.
const BY_ITSELF: [&str; 6] = [
    "status",
    "required_actions",
    "head_seq",
    "active_turn_id",
    "usage",
    "updated_at",
];

/// 64 bits of a hash, in hex: nothing is gained by making two that are equal.
const DIGITS: usize = 16;

/// A version. A session's has two parts, `settings-whole`: every event is a new
/// whole, but only a client makes new settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    settings: Option<String>,
    whole: String,
}

/// What a precondition of a change looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Settings,
    Whole,
}

impl Version {
    pub fn of_session(session: &Session) -> Self {
        let mut settings = shown(session);
        if let Some(fields) = settings.as_object_mut() {
            fields.retain(|name, _| !BY_ITSELF.contains(&name.as_str()));
        }
        Self {
            settings: Some(hash(&settings)),
            whole: hash(&shown(session)),
        }
    }

    pub fn of_turn(turn: &Turn) -> Self {
        Self {
            settings: None,
            whole: hash(&shown(turn)),
        }
    }

    pub fn of_policy(policy: &NamedPolicy) -> Self {
        Self {
            settings: None,
            whole: hash(&shown(policy)),
        }
    }

    /// A thing that has no parts, by what is shown of it.
    pub fn of_whole(thing: &impl Serialize) -> Self {
        Self {
            settings: None,
            whole: hash(&shown(thing)),
        }
    }

    /// The text between the quotes of an entity tag.
    pub fn opaque(&self) -> String {
        match &self.settings {
            Some(settings) => format!("{settings}-{}", self.whole),
            None => self.whole.clone(),
        }
    }

    /// The entity tag, as it stands in a header. A strong one.
    pub fn tag(&self) -> String {
        format!("\"{}\"", self.opaque())
    }

    /// Whether a tag names this version as far as the part goes.
    pub(super) fn is_named_by(&self, opaque: &str, part: Part) -> bool {
        match (part, &self.settings) {
            (Part::Settings, Some(settings)) => opaque.split_once('-').is_some_and(|(seen, _)| seen == settings),
            _ => opaque == self.opaque(),
        }
    }
}

/// Sessions and turns are made of texts, numbers and JSON values and always
/// serialise.
fn shown(thing: &impl Serialize) -> Value {
    serde_json::to_value(thing).unwrap_or_default()
}

fn hash(shown: &Value) -> String {
    let hash = Sha256::digest(shown.to_string().as_bytes());
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.chars().take(DIGITS).collect()
}
