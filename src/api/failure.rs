//! The only error a handler returns. It travels outwards inside the response;
//! the layer of the surface writes the body ([`as_problem`] for the native one)
//! and logs the cause of a 5xx once, with the request's id. What a cause says is
//! never shown.

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use crate::model::problem::{Problem, ProblemCode};
use crate::store::StoreError;
use crate::turn::requests::EngineError;

use super::compat::envelope::Envelope;
use super::{conditions, request_id};

/// Boxed, so that results of handlers stay small.
#[derive(Clone, Debug)]
pub struct Failure(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    problem: Problem,
    cause: Option<Arc<dyn Error + Send + Sync>>,
    /// The code that drop-in surfaces know it by, where it is not the problem's.
    known_as: Option<&'static str>,
}

/// Seconds until a refused request may come again, where time heals. A peer or
/// a successor behind the same address needs a little longer.
fn retry_after(code: ProblemCode) -> Option<u64> {
    match code {
        ProblemCode::StoreUnavailable
        | ProblemCode::IssuerUnavailable
        | ProblemCode::KeyTurnLimit
        | ProblemCode::TenantTurnLimit
        | ProblemCode::ServerTurnLimit
        | ProblemCode::QueueFull
        | ProblemCode::IdempotencyInFlight => Some(1),
        ProblemCode::Draining => Some(5),
        _ => None,
    }
}

impl Failure {
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    /// Absent and foreign things are told apart nowhere.
    pub fn not_found(what: &str) -> Self {
        Self::new(
            ProblemCode::NotFound,
            format!("there is no such {what}, or it is not yours to see"),
        )
    }

    /// The request names something that cannot be used; `pointer` is a JSON
    /// pointer into the body, or the name of a parameter or header.
    pub fn field(pointer: &str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let place = if pointer.is_empty() { "the body" } else { pointer };
        let whole = format!("`{place}`: {detail}");
        Problem::new(ProblemCode::InvalidRequest, whole)
            .with_field(pointer, detail)
            .into()
    }

    pub fn invalid_cursor(parameter: &str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Problem::new(ProblemCode::InvalidCursor, format!("`{parameter}`: {detail}"))
            .with_field(parameter, detail)
            .into()
    }

    /// A bug of ours: the client learns nothing but the request's id.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let problem = Problem::new(
            ProblemCode::Internal,
            "the server failed to answer; its log has the cause under this request id",
        );
        Self::from(problem).with_cause(cause)
    }

    pub fn draining() -> Self {
        Self::new(
            ProblemCode::Draining,
            "the server is shutting down and takes no new work; try again",
        )
    }

    fn with_cause(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.cause = Some(Arc::from(cause.into()));
        self
    }

    /// The same, with the code that clients of a drop-in surface look for.
    pub fn known_as(mut self, code: &'static str) -> Self {
        self.0.known_as = Some(code);
        self
    }

    #[cfg(test)]
    pub(super) fn wire_code(&self) -> Option<&'static str> {
        self.0.known_as
    }

    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Writes the cause of a failure that is ours to the log.
    fn log(&self, request_id: &str) {
        let Some(cause) = &self.0.cause else { return };
        let (code, cause) = (self.0.problem.code, chain(cause.as_ref()));
        if code == ProblemCode::Internal {
            tracing::error!(request_id, cause, "a request failed");
        } else {
            tracing::warn!(request_id, ?code, cause, "a request could not be served");
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(Box::new(Inner {
            problem,
            cause: None,
            known_as: None,
        }))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::new(
                ProblemCode::StoreUnavailable,
                "the store cannot be reached at the moment; nothing was changed, try again",
            )
            .with_cause(error),
            StoreError::Unclear(_) => Self::new(
                ProblemCode::StoreUnavailable,
                "the store did not confirm the change: it may have been made or not; look before you try again",
            )
            .with_cause(error),
            StoreError::InFlight => Self::new(
                ProblemCode::IdempotencyInFlight,
                "a request with this `Idempotency-Key` is still being carried out; try again in a moment",
            ),
            other => Self::internal(other),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NotFound(what) => Self::not_found(what),
            EngineError::Refused(problem) => problem.into(),
            EngineError::Store(error) => error.into(),
            // Whoever sends a key asks for the replay; see `once`.
            EngineError::Replayed(_) => Self::internal(error),
        }
    }
}

/// Carries the failure outwards; the surface's own layer writes the body.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = retry_after(self.0.problem.code) {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if [ProblemCode::PayloadTooLarge, ProblemCode::RequestTimeout].contains(&self.0.problem.code) {
            // The rest of the body is not read, so nothing can follow it.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if self.0.problem.code == ProblemCode::PreconditionFailed {
            let context = self.0.problem.context.as_ref();
            let present = context.and_then(|context| context.get("etag")?.as_str());
            headers.extend(present.map(conditions::etag).unwrap_or_default());
        }
        if self.0.problem.code == ProblemCode::Unauthenticated {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Failures become `application/problem+json`, or what the clients of the path's
/// surface read.
pub async fn as_problem(request: Request, next: Next) -> Response {
    let request_id = request_id::of(request.extensions());
    let envelope = Envelope::of(request.uri().path());
    let mut response = next.run(request).await;
    let Some(failure) = response.extensions_mut().remove::<Failure>() else {
        return response;
    };
    failure.log(&request_id);
    let mut problem = failure.0.problem;
    problem.request_id = Some(request_id);
    // A problem is made of texts and JSON values and always serialises.
    let body = serde_json::to_vec(&envelope.body(&problem, failure.0.known_as)).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(envelope.kind()));
    // Of the empty body that the route gave.
    headers.remove(CONTENT_LENGTH);
    *response.body_mut() = Body::from(body);
    response
}

/// An error and what caused it, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        // Some errors repeat their cause in their own text.
        if !text.contains(&said) {
            // Writing to a String cannot fail.
            let _written = write!(text, ": {said}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_nobody_confirmed_is_not_called_undone() {
        let lost = || Arc::new(std::io::Error::other("the line went dead at 10.0.0.1"));
        let unclear = Failure::from(StoreError::Unclear(lost()));
        let away = Failure::from(StoreError::Unavailable(lost()));
        for failure in [&unclear, &away] {
            assert_eq!(failure.problem().code, ProblemCode::StoreUnavailable);
            assert!(!failure.problem().detail.contains("10.0.0.1"));
        }
        assert!(away.problem().detail.contains("nothing was changed"));
        assert!(unclear.problem().detail.contains("may have been made or not"));
    }
}
