//! The body of a request, still unread: a handler reads it after it has found
//! that the caller may do what it asks. Size and time are bounded however the
//! body arrives.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::model::problem::ProblemCode;

use super::failure::Failure;
use super::json;
use super::state::ApiState;

pub struct Payload {
    headers: HeaderMap,
    body: Body,
    state: ApiState,
}

impl FromRequest<ApiState> for Payload {
    type Rejection = Infallible;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Infallible> {
        let (parts, body) = request.into_parts();
        Ok(Self {
            headers: parts.headers,
            body,
            state: state.clone(),
        })
    }
}

impl Payload {
    /// The body as JSON of the type; see [`json::parse`].
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Failure> {
        if !is_json(&self.headers) {
            return Err(Failure::new(
                ProblemCode::UnsupportedMediaType,
                "the body must be JSON; send the header `Content-Type: application/json`",
            ));
        }
        json::parse(&self.bytes().await?)
    }

    async fn bytes(self) -> Result<Bytes, Failure> {
        let limits = self.state.body;
        let stated = self
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|text| text.to_str().ok()?.parse().ok());
        if stated.is_some_and(|stated: u64| u64::try_from(limits.max_bytes).is_ok_and(|max| max < stated)) {
            return Err(too_large(limits.max_bytes));
        }
        let whole = Limited::new(self.body, limits.max_bytes).collect();
        tokio::select! {
            whole = whole => match whole {
                Ok(whole) => Ok(whole.to_bytes()),
                Err(error) if error.is::<LengthLimitError>() => Err(too_large(limits.max_bytes)),
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

fn too_large(max: usize) -> Failure {
    Failure::new(
        ProblemCode::PayloadTooLarge,
        format!("the body is larger than {max} bytes, which `server.max_body_bytes` sets"),
    )
}

/// `application/json` or a `+json` type, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok());
    let essence = given.and_then(|given| given.split(';').next()).unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
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
