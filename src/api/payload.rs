//! The body of a request, still unread: a handler reads it after it has found
//! that the caller may do what it asks. Size and time are bounded however the
//! body arrives.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::model::principal::Principal;
use crate::model::problem::ProblemCode;
use crate::store::Once;

use super::failure::Failure;
use super::json;
use super::once;
use super::state::ApiState;

pub struct Payload {
    path: String,
    headers: HeaderMap,
    body: Body,
    state: ApiState,
}

impl FromRequest<ApiState> for Payload {
    type Rejection = Infallible;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Infallible> {
        let (parts, body) = request.into_parts();
        Ok(Self {
            path: parts.uri.path().to_owned(),
            headers: parts.headers,
            body,
            state: state.clone(),
        })
    }
}

impl Payload {
    /// The body as JSON of the type; see [`json::parse`].
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Failure> {
        self.check_kind()?;
        json::parse(&self.bytes().await?)
    }

    /// As [`Payload::json`], with the key under which the request was sent.
    pub async fn json_once<T: DeserializeOwned>(self, principal: &Principal) -> Result<(T, Option<Once>), Failure> {
        self.check_kind()?;
        let (path, key) = (self.path.clone(), once::key(&self.headers)?.map(str::to_owned));
        let bytes = self.bytes().await?;
        let once = key.map(|key| once::once(principal, &path, &key, &bytes));
        Ok((json::parse(&bytes)?, once))
    }

    /// The body of a request of a drop-in surface, with the key under which it was
    /// sent: whatever media type is named, and an empty body is an object without
    /// fields.
    pub async fn loose_once<T: DeserializeOwned>(self, principal: &Principal) -> Result<(T, Option<Once>), Failure> {
        let (path, key) = (self.path.clone(), once::key(&self.headers)?.map(str::to_owned));
        let bytes = self.bytes().await?;
        let once = key.map(|key| once::once(principal, &path, &key, &bytes));
        let read = match bytes.trim_ascii().is_empty() {
            true => json::parse(b"{}"),
            false => json::parse(&bytes),
        };
        Ok((read?, once))
    }

    /// The body as it came, which is JSON Lines, with the key under which the
    /// request was sent.
    pub async fn lines_once(self, principal: &Principal) -> Result<(Bytes, Option<Once>), Failure> {
        if !is_lines(&self.headers) {
            return Err(Failure::new(
                ProblemCode::UnsupportedMediaType,
                format!("the body must be JSON Lines; send the header `Content-Type: {NDJSON}`"),
            ));
        }
        let (path, key) = (self.path.clone(), once::key(&self.headers)?.map(str::to_owned));
        let bytes = self.bytes().await?;
        let once = key.map(|key| once::once(principal, &path, &key, &bytes));
        Ok((bytes, once))
    }

    /// The body as it came, whatever it is.
    pub async fn raw(self) -> Result<Bytes, Failure> {
        self.bytes().await
    }

    /// Only the key under which the request was sent; the body says nothing,
    /// but it has to be the same again.
    pub async fn once(self, principal: &Principal) -> Result<Option<Once>, Failure> {
        let Some(key) = once::key(&self.headers)?.map(str::to_owned) else {
            return Ok(None);
        };
        let path = self.path.clone();
        let bytes = self.bytes().await?;
        Ok(Some(once::once(principal, &path, &key, &bytes)))
    }

    fn check_kind(&self) -> Result<(), Failure> {
        if is_json(&self.headers) {
            return Ok(());
        }
        Err(Failure::new(
            ProblemCode::UnsupportedMediaType,
            "the body must be JSON; send the header `Content-Type: application/json`",
        ))
    }

    async fn bytes(self) -> Result<Bytes, Failure> {
        let limits = self.state.body;
        let stated = self
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|text| text.to_str().ok()?.parse().ok());
        // A client that waits to be asked for its body need not send it.
        let unread = limits.max_bytes.saturating_add(MOST_DISCARDED);
        let unread = if self.headers.contains_key(EXPECT) {
            limits.max_bytes
        } else {
            unread
        };
        if stated.is_some_and(|stated: usize| unread < stated) {
            return Err(too_large(limits.max_bytes));
        }
        tokio::select! {
            whole = whole(self.body, limits.max_bytes) => match whole {
                Ok(Some(whole)) => Ok(whole),
                Ok(None) => Err(too_large(limits.max_bytes)),
                // The client left or broke the framing; it will hardly read this.
                Err(_) => Err(Failure::field("", "it did not arrive whole")),
            },
            () = self.state.clock().sleep(limits.timeout) => Err(Failure::new(
                ProblemCode::RequestTimeout,
                format!("the body did not arrive within {} s", limits.timeout.as_secs()),
            )),
        }
    }
}

/// What is read and dropped of a body that is too large. An answer that comes
/// while the client still sends is lost to it when the connection closes.
const MOST_DISCARDED: usize = 4 * 1024 * 1024;

/// The body, unless it has more than `max` bytes.
async fn whole(mut body: Body, max: usize) -> Result<Option<Bytes>, axum::Error> {
    let (mut whole, mut seen) = (BytesMut::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen <= max {
            whole.extend_from_slice(&data);
        } else {
            whole = BytesMut::new();
        }
        if max.saturating_add(MOST_DISCARDED) < seen {
            return Ok(None);
        }
    }
    Ok((seen <= max).then(|| whole.freeze()))
}

fn too_large(max: usize) -> Failure {
    Failure::new(
        ProblemCode::PayloadTooLarge,
        format!("the body is larger than {max} bytes, which `server.max_body_bytes` sets"),
    )
}

/// The usual name of JSON Lines.
pub const NDJSON: &str = "application/x-ndjson";

/// A body that is a file, as the document knows it.
pub enum FileBytes {}

impl PartialSchema for FileBytes {
    fn schema() -> RefOr<Schema> {
        JsonLines::schema()
    }
}

impl ToSchema for FileBytes {}

/// A body of lines as the document knows it: a file, since lines together are
/// not a value that a schema could describe.
pub enum JsonLines {}

impl PartialSchema for JsonLines {
    fn schema() -> RefOr<Schema> {
        let file = ObjectBuilder::new().schema_type(Type::String);
        file.format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary))).into()
    }
}

impl ToSchema for JsonLines {}

fn is_lines(headers: &HeaderMap) -> bool {
    [NDJSON, "application/ndjson", "application/jsonl"].contains(&essence(headers).as_str())
}

/// The media type without parameters.
fn essence(headers: &HeaderMap) -> String {
    let given = headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok());
    let essence = given.and_then(|given| given.split(';').next()).unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// `application/json` or a `+json` type, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let essence = essence(headers);
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_by_its_media_type() {
        let json = |given: &str| is_json(&HeaderMap::from_iter([(CONTENT_TYPE, given.parse().unwrap())]));
        for given in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/merge-patch+json",
        ] {
            assert!(json(given), "{given}");
        }
        for given in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "text/json",
            "json",
            "",
        ] {
            assert!(!json(given), "{given}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
