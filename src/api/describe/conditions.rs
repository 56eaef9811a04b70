//! What every operation that heeds `If-Match` and `If-None-Match` says of them.

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, ResponseBuilder};

pub(super) const PROBLEM: (&str, &str) = (
    "412",
    "The condition of `If-Match` or `If-None-Match` does not hold; `context.etag` and the header `ETag` have the \
     present tag.",
);

/// Whether the operation is described with the headers.
pub(super) fn heeds(operation: &Operation) -> bool {
    let is_header = |one: &RefOr<Parameter>| matches!(one, RefOr::T(one) if one.name == "If-Match");
    operation.parameters.iter().flatten().any(is_header)
}

/// Adds the tag to what it answers and, to a read, that it may answer nothing.
pub(super) fn tell(operation: &mut Operation, is_reading: bool) {
    let responses = &mut operation.responses.responses;
    for (status, response) in responses.iter_mut() {
        // 204 has nothing that a tag could name.
        if let RefOr::T(response) = response
            && status.starts_with('2')
            && status != "204"
        {
            response.headers.insert("ETag".to_owned(), RefOr::T(tag()));
        }
    }
    if is_reading {
        let unchanged = ResponseBuilder::new()
            .description("It is what `If-None-Match` names.")
            .header("ETag", tag())
            .build();
        responses.insert("304".to_owned(), RefOr::T(unchanged));
    }
}

pub(super) fn tag() -> Header {
    HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .description(Some(
            "Names the version that is answered; for `If-Match` and `If-None-Match`.",
        ))
        .build()
}
