//! Headers that keep a browser from doing more with an answer than reading it.
//! A page of ours that needs more says so itself: what is set already stays.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderName, HeaderValue};

const HEADERS: [(HeaderName, &str); 5] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (X_FRAME_OPTIONS, "DENY"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    // Answers are one caller's alone.
    (CACHE_CONTROL, "no-store"),
];

pub(super) async fn layer(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}
