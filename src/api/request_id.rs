//! The id of a request, in and out: a caller's own `X-Request-Id` is kept where
//! it can be logged safely, else the request gets one of ours. Every response
//! carries it, and every log line of the request's span.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Extensions, HeaderName, HeaderValue};
use tracing::Instrument;

use crate::model::id::RequestId;

use super::state::ApiState;

pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longer ids are replaced.
const MAX_BYTES: usize = 128;

#[derive(Clone)]
struct Current(HeaderValue);

/// The id of the request whose extensions these are.
pub(super) fn of(extensions: &Extensions) -> String {
    let id = extensions.get::<Current>().and_then(|id| id.0.to_str().ok());
    id.unwrap_or_default().to_owned()
}

/// Outermost of all layers. Opens the request's span, which holds ids and
/// nothing a person wrote.
pub(super) async fn layer(State(state): State<ApiState>, mut request: Request, next: Next) -> Response {
    let id = kept(request.headers().get(HEADER)).unwrap_or_else(|| fresh(&state));
    let span = tracing::info_span!(
        "request",
        request_id = id.to_str().unwrap_or_default(),
        method = %request.method(),
        path = request.uri().path(),
        tenant = tracing::field::Empty,
    );
    request.extensions_mut().insert(Current(id.clone()));
    let mut response = next.run(request).instrument(span.clone()).await;
    tracing::debug!(parent: &span, status = response.status().as_u16(), "answered");
    response.headers_mut().insert(HEADER, id);
    response
}

fn kept(given: Option<&HeaderValue>) -> Option<HeaderValue> {
    let visible = |text: &[u8]| !text.is_empty() && text.len() <= MAX_BYTES && text.iter().all(u8::is_ascii_graphic);
    given.filter(|given| visible(given.as_bytes())).cloned()
}

fn fresh(state: &ApiState) -> HeaderValue {
    let id = RequestId::new(state.clock()).to_string();
    HeaderValue::from_str(&id).unwrap_or_else(|_| HeaderValue::from_static("req_unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_that_can_be_logged_is_kept() {
        let kept = |text: &str| kept(Some(&HeaderValue::from_str(text).unwrap())).is_some();
        assert!(kept("abc-123") && kept(&"x".repeat(128)));
        assert!(!kept("") && !kept("a b") && !kept("a\tb") && !kept("é") && !kept(&"x".repeat(129)));
    }
}
