//! What a client asks to hold before its request is carried out: the headers
//! `If-Match` and `If-None-Match` of RFC 9110, section 13, once they are read.

use serde_json::json;

use super::problem::{Problem, ProblemCode};
use super::version::{Part, Version};

/// An entity tag as a client sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityTag {
    pub weak: bool,
    /// The text between the quotes.
    pub opaque: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// `*`: whatever there is.
    Any,
    OneOf(Vec<EntityTag>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    pub if_match: Option<Tags>,
    pub if_none_match: Option<Tags>,
}

/// What becomes of a conditional read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    Whole,
    /// The client has it already.
    NotModified,
    Failed(Problem),
}

impl Precondition {
    pub fn is_empty(&self) -> bool {
        self.if_match.is_none() && self.if_none_match.is_none()
    }

    /// What a change of the thing that is at `current` is refused with, if so.
    pub fn forbids(&self, current: &Version, part: Part) -> Option<Problem> {
        let matches = self.if_match.as_ref().is_none_or(|tags| tags.strongly(current, part));
        let is_new = !self.if_none_match.as_ref().is_some_and(|tags| tags.weakly(current));
        (!matches || !is_new).then(|| failed(current))
    }

    /// What making a thing that is not there is refused with, if so.
    pub fn forbids_new(&self) -> Option<Problem> {
        self.if_match.as_ref().map(|_| {
            let detail = "there is nothing yet that `If-Match` could speak of";
            Problem::new(ProblemCode::PreconditionFailed, detail)
        })
    }

    pub fn reading(&self, current: &Version) -> Reading {
        if self
            .if_match
            .as_ref()
            .is_some_and(|tags| !tags.strongly(current, Part::Whole))
        {
            return Reading::Failed(failed(current));
        }
        match &self.if_none_match {
            Some(tags) if tags.weakly(current) => Reading::NotModified,
            _ => Reading::Whole,
        }
    }
}

impl Tags {
    /// Strong comparison: a weak tag promises too little to change by it.
    fn strongly(&self, current: &Version, part: Part) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(tags) => tags
                .iter()
                .any(|tag| !tag.weak && current.is_named_by(&tag.opaque, part)),
        }
    }

    fn weakly(&self, current: &Version) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(tags) => tags.iter().any(|tag| current.is_named_by(&tag.opaque, Part::Whole)),
        }
    }
}

fn failed(current: &Version) -> Problem {
    let detail = "it is not, or no longer, the version that `If-Match` or `If-None-Match` speaks of: read it again and \
                  decide on what it says now";
    Problem::new(ProblemCode::PreconditionFailed, detail).with_context(json!({"etag": current.tag()}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::turn::{Turn, TurnOptions, TurnStatus, Usage};

    fn turn(status: TurnStatus) -> Version {
        Version::of_turn(&Turn {
            id: crate::model::id::TurnId::from_bits(1),
            session_id: crate::model::id::SessionId::from_bits(1),
            user_id: "ada".to_owned(),
            status,
            pending_steers: 0,
            stop_reason: None,
            input: Vec::new(),
            options: TurnOptions::default(),
            usage: Usage::default(),
            error: None,
            created_at: crate::base::Timestamp(0),
            started_at: None,
            finished_at: None,
        })
    }

    fn tag(version: &Version, weak: bool) -> Option<Tags> {
        let opaque = version.opaque();
        Some(Tags::OneOf(vec![EntityTag { weak, opaque }]))
    }

    fn matching(if_match: Option<Tags>) -> Precondition {
        Precondition {
            if_match,
            ..Precondition::default()
        }
    }

    fn not_matching(if_none_match: Option<Tags>) -> Precondition {
        Precondition {
            if_none_match,
            ..Precondition::default()
        }
    }

    #[test]
    fn a_change_takes_the_strong_tag_of_the_present_version() {
        let (old, now) = (turn(TurnStatus::Queued), turn(TurnStatus::Running));
        assert_ne!(old.tag(), now.tag());
        let forbids = |precondition: Precondition| precondition.forbids(&now, Part::Whole).is_some();
        assert!(!forbids(Precondition::default()));
        assert!(!forbids(matching(Some(Tags::Any))) && !forbids(matching(tag(&now, false))));
        assert!(forbids(matching(tag(&old, false))) && forbids(matching(tag(&now, true))));
        assert!(forbids(not_matching(Some(Tags::Any))) && forbids(not_matching(tag(&now, true))));
        assert!(!forbids(not_matching(tag(&old, false))));
    }

    #[test]
    fn a_read_compares_weakly_and_if_match_comes_first() {
        let (old, now) = (turn(TurnStatus::Queued), turn(TurnStatus::Running));
        let reading = |precondition: Precondition| precondition.reading(&now);
        assert_eq!(reading(not_matching(tag(&now, true))), Reading::NotModified);
        assert_eq!(reading(not_matching(tag(&now, false))), Reading::NotModified);
        assert_eq!(reading(not_matching(Some(Tags::Any))), Reading::NotModified);
        assert_eq!(reading(not_matching(tag(&old, false))), Reading::Whole);
        assert_eq!(reading(matching(tag(&now, false))), Reading::Whole);
        let both = Precondition {
            if_match: tag(&old, false),
            if_none_match: tag(&now, false),
        };
        let Reading::Failed(problem) = reading(both) else {
            panic!("`If-Match` comes first");
        };
        assert_eq!(
            (problem.status, problem.context.unwrap()["etag"].as_str()),
            (412, Some(now.tag().as_str()))
        );
    }
}
