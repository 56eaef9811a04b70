//! What every operation with an effect says about `Idempotency-Key`.

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Required};

use crate::api::once::{MAX_CHARS, NAME};

/// The problems that come with the header.
pub(super) const PROBLEMS: [(&str, &str); 2] = [
    (
        "409",
        "A request with the same `Idempotency-Key` is still being carried out.",
    ),
    ("422", "The `Idempotency-Key` was sent before with another body."),
];

pub(super) fn tell(operation: &mut Operation) {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_CHARS))
        .pattern(Some("^[!-~]+$"));
    let parameter = ParameterBuilder::new()
        .name(NAME)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "Makes it safe to send the request again: within 24 hours, the same key by the same user and API key at \
             the same path gets what came of the first, and nothing is done twice.",
        ))
        .schema(Some(text))
        .build();
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter));
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.starts_with('2')
        {
            let header = HeaderBuilder::new()
                .schema(Some(
                    ObjectBuilder::new()
                        .schema_type(Type::String)
                        .enum_values(Some(["true"])),
                ))
                .description(Some("The request was sent before; this came of it then."))
                .build();
            response
                .headers
                .insert("Idempotency-Replayed".to_owned(), RefOr::T(header));
        }
    }
}
