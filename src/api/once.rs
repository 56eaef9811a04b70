//! Requests that can be sent twice: the header `Idempotency-Key` and what a
//! request under it answers. The store knows whether it was carried out; the
//! answer of a replay is written anew from what came of the first.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::de::DeserializeOwned;
use tracing::Instrument;

use crate::model::principal::Principal;
use crate::store::Once;
use crate::turn::requests::EngineError;

use super::auth::api_key;
use super::failure::Failure;
use super::state::ApiState;

pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
pub const NAME: &str = "Idempotency-Key";
pub const MAX_CHARS: usize = 255;

/// The key of a request, if it was sent with one.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let mut given = headers.get_all(NAME).iter();
    let Some(only) = given.next() else { return Ok(None) };
    let bytes = only.as_bytes();
    let fits = (1..=MAX_CHARS).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
    match only.to_str() {
        Ok(key) if fits && given.next().is_none() => Ok(Some(key)),
        _ => Err(Failure::field(
            NAME,
            format!("expected one header of 1 to {MAX_CHARS} visible ASCII characters"),
        )),
    }
}

/// The key in its scope: one caller, one route. Ids hold no space, so that the
/// parts of a caller cannot be shifted.
pub(super) fn once(principal: &Principal, path: &str, key: &str, body: &[u8]) -> Once {
    let api_key = principal.key.map_or("-".to_owned(), |key| key.to_string());
    Once {
        caller: format!("{api_key} {}", principal.user),
        route: format!("POST {path}"),
        key: key.to_owned(),
        body_hash: api_key::digest(body),
    }
}

/// What came of a request, now or when it was sent first.
pub(super) struct Done<T> {
    pub value: T,
    pub replayed: bool,
}

impl<T> Done<T> {
    /// The answer, marked if it is a replay.
    pub(super) fn answer(self, write: impl FnOnce(T) -> Response) -> Response {
        let replayed = self.replayed;
        marked(write(self.value), replayed)
    }
}

pub(super) fn marked(answer: impl IntoResponse, replayed: bool) -> Response {
    let mut answer = answer.into_response();
    if replayed {
        answer.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    answer
}

impl ApiState {
    /// As [`ApiState::finish`], for a request that may be a replay.
    pub(super) async fn finish_once<T, F>(&self, work: F) -> Result<Done<T>, Failure>
    where
        F: Future<Output = Result<T, EngineError>> + Send + 'static,
        T: DeserializeOwned + Send + 'static,
    {
        let done = self.tasks.spawn(work.in_current_span()).await;
        match done.map_err(Failure::internal)? {
            Ok(value) => Ok(Done { value, replayed: false }),
            Err(EngineError::Replayed(answer)) => Ok(Done {
                value: serde_json::from_str(&answer).map_err(Failure::internal)?,
                replayed: true,
            }),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Option<String>, Failure> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(NAME, value.parse().unwrap());
        }
        key(&headers).map(|key| key.map(str::to_owned))
    }

    #[test]
    fn a_key_is_visible_ascii_and_stands_alone() {
        let longest = "k".repeat(MAX_CHARS);
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&[&longest]).unwrap(), Some(longest.clone()));
        for wrong in [&[""][..], &["a b"], &["ä"], &[&format!("{longest}k")], &["a", "a"]] {
            let failure = read(wrong).unwrap_err();
            assert_eq!(
                (failure.problem().status, failure.problem().errors[0].pointer.as_str()),
                (400, NAME),
                "{wrong:?}"
            );
        }
    }
}
