//! Ids in a path. Text that is not an id of the right kind cannot name anything,
//! so it gets the same 404 as an id that names nothing.

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;

use crate::base::Id;
use crate::base::id::Kind;
use crate::base::text::without_nul;

use super::failure::Failure;
use super::state::ApiState;

/// The ids of the path, in the order in which they stand there.
pub struct InPath<T>(pub T);

/// What [`InPath`] can be made of: one id or two.
pub trait FromSegments: Sized {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure>;
}

impl<K: Kind> FromSegments for Id<K> {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        id(segments.first())
    }
}

impl<K: Kind, L: Kind> FromSegments for (Id<K>, Id<L>) {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        Ok((id(segments.first())?, id(segments.get(1))?))
    }
}

impl<T: FromSegments> FromRequestParts<ApiState> for InPath<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Failure> {
        let Ok(params) = RawPathParams::from_request_parts(parts, state).await else {
            return Err(Failure::not_found("thing"));
        };
        // As in bodies: one of the stores cannot even compare with U+0000.
        let texts: Vec<String> = params
            .iter()
            .map(|(_, segment)| without_nul(segment.to_owned()))
            .collect();
        let segments: Vec<&str> = texts.iter().map(String::as_str).collect();
        T::from_segments(&segments).map(Self)
    }
}

fn id<K: Kind>(segment: Option<&&str>) -> Result<Id<K>, Failure> {
    let id = segment.and_then(|segment| segment.parse().ok());
    id.ok_or_else(|| Failure::not_found(word(K::PREFIX)))
}

/// What people call the things that have ids.
fn word(prefix: &str) -> &str {
    match prefix {
        "ses" => "session",
        "apr" => "approval",
        "msg" => "message",
        "proc" => "process",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{SessionId, TurnId};

    #[test]
    fn a_malformed_id_is_as_unknown_as_an_unknown_one() {
        let (session, turn) = (SessionId::from_bits(1), TurnId::from_bits(2));
        let segments = [session.to_string(), turn.to_string()];
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        assert!(<(SessionId, TurnId)>::from_segments(&segments).is_ok_and(|ids| ids == (session, turn)));
        let wrong = <(SessionId, TurnId)>::from_segments(&[segments[0], segments[0]]).unwrap_err();
        assert_eq!(wrong.problem(), Failure::not_found("turn").problem());
        let wrong = SessionId::from_segments(&["../etc"]).unwrap_err();
        assert_eq!(wrong.problem(), Failure::not_found("session").problem());
    }
}
