//! Which browser pages may call. A page of this server's own origin may, the
//! listed origins may and get CORS headers, every other one is refused before
//! anything is done. There is no wildcard.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LOCATION, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION, ORIGIN, RETRY_AFTER,
};
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method};
use tower_http::cors::CorsLayer;
use url::Url;

use crate::model::problem::ProblemCode;

use super::compat::headers;
use super::failure::Failure;
use super::state::ApiState;
use super::{hosts, once, rate, request_id};

/// The listed origins.
#[derive(Clone, Debug, Default)]
pub struct Origins(Vec<HeaderValue>);

/// How long a browser may keep the answer to a preflight.
const PREFLIGHT_AGE: Duration = Duration::from_secs(600);

impl Origins {
    pub fn new(allowed: &[String]) -> Self {
        Self(allowed.iter().filter_map(|origin| origin.parse().ok()).collect())
    }

    /// Whether pages of no other origin may call.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Answers preflights of listed origins and marks the answers to them.
    pub fn cors(&self) -> CorsLayer {
        CorsLayer::new()
            .allow_origin(self.0.clone())
            .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
            .allow_headers([
                ACCEPT,
                AUTHORIZATION,
                CONTENT_TYPE,
                IF_MATCH,
                IF_NONE_MATCH,
                request_id::HEADER,
                HeaderName::from_static("last-event-id"),
                HeaderName::from_static("idempotency-key"),
                headers::SESSION_ID,
                headers::SESSION_KEY,
                headers::ON_DISCONNECT,
                headers::APPROVAL_EVENTS,
            ])
            .expose_headers([
                LOCATION,
                CONTENT_LOCATION,
                ETAG,
                RETRY_AFTER,
                request_id::HEADER,
                once::REPLAYED,
                headers::SESSION_ID,
                headers::SESSION_KEY,
                headers::COMPLETED,
                headers::PARTIAL,
                headers::ERROR,
                rate::POLICY,
                rate::RATE,
            ])
            .max_age(PREFLIGHT_AGE)
    }

    fn allow(&self, origin: &HeaderValue, called: Option<&Authority>) -> bool {
        let is_own = || {
            let (origin, called) = (origin.to_str().ok()?, called?);
            is_same(origin, called).then_some(())
        };
        self.0.contains(origin) || is_own().is_some()
    }
}

/// Whether a page of `origin` was served under the name that is called now.
/// The scheme is the origin's: what stands before a proxy cannot be seen here.
pub(super) fn is_same(origin: &str, called: &Authority) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    if !matches!(origin.scheme(), "http" | "https") {
        return false;
    }
    let Ok(called) = Url::parse(&format!("{}://{called}", origin.scheme())) else {
        return false;
    };
    origin.origin() == called.origin()
}

/// Refuses requests of pages from elsewhere.
pub async fn layer(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let called = hosts::authority(request.headers(), request.uri());
    let mut origins = request.headers().get_all(ORIGIN).iter();
    if origins.all(|origin| state.origins.allow(origin, called.as_ref())) {
        next.run(request).await
    } else {
        Failure::new(
            ProblemCode::OriginNotAllowed,
            "pages of this origin may not call; add it to `server.allowed_origins`",
        )
        .into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_listed_origins_may_call() {
        let origins = Origins::new(&["https://app.example.com".to_owned()]);
        let called = Authority::from_static("127.0.0.1:8642");
        let allow = |origin: &'static str| origins.allow(&HeaderValue::from_static(origin), Some(&called));
        assert!(allow("https://app.example.com") && allow("http://127.0.0.1:8642"));
        for origin in [
            "null",
            "*",
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://app.example.com.evil.example",
            "http://127.0.0.1:3000",
            "http://localhost:8642",
            "file://127.0.0.1:8642",
            "",
        ] {
            assert!(!allow(origin), "{origin}");
        }
    }

    #[test]
    fn a_default_port_may_be_left_out() {
        assert!(is_same("https://a.example", &Authority::from_static("a.example:443")));
        assert!(is_same("http://a.example", &Authority::from_static("A.example")));
        assert!(!is_same("https://a.example", &Authority::from_static("a.example:80")));
    }
}
