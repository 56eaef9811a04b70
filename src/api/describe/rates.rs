//! What every operation that takes a credential says about rates.

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Response};

pub(super) const PROBLEM: (&str, &str) = (
    "429",
    "The key, the tenant or the server gets requests faster than `limits` allows; `code` says which.",
);

/// Adds the header fields to what it answers.
pub(super) fn tell(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if status == PROBLEM.0 {
            let text = "Seconds until the request may come again.";
            add(response, "Retry-After", header(Type::Integer, text));
        }
        if status.starts_with('2') || status == PROBLEM.0 {
            let text = "Where rates are limited: each as `\"key\";q=REQUESTS;w=SECONDS`, `\"tenant\"` likewise.";
            add(response, "RateLimit-Policy", header(Type::String, text));
            let text = "Where rates are limited: what is left of each, as `\"key\";r=REQUESTS;t=SECONDS`.";
            add(response, "RateLimit", header(Type::String, text));
        }
    }
}

fn add(response: &mut Response, name: &str, header: Header) {
    response.headers.insert(name.to_owned(), RefOr::T(header));
}

fn header(kind: Type, text: &str) -> Header {
    HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(kind)))
        .description(Some(text))
        .build()
}
