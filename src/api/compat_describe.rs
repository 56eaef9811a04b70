//! What the documents of the drop-in surfaces say beside their operations: how to
//! prove who calls, and the errors that any of them answers with, in the form
//! that their clients read.

use serde::Serialize;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Response,
    ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use super::compat::envelope::Envelope;

const SCHEME: &str = "bearer";

/// What is a surface's own.
pub(super) struct About {
    pub title: &'static str,
    pub description: &'static str,
    pub tags: &'static [(&'static str, &'static str)],
}

/// An error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(super) struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ErrorDetail {
    message: String,
    /// `invalid_request_error`, `rate_limit_error` or `server_error`.
    #[serde(rename = "type")]
    kind: String,
    /// The part of the request that is wrong, as `messages[0].content`.
    param: Option<String>,
    code: Option<String>,
}

/// An error of a route of jobs.
#[derive(Serialize, ToSchema)]
#[schema(as = BareError)]
pub(super) struct BareErrorBody {
    error: String,
}

pub(super) fn about(about: &About) -> OpenApi {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key, or a JSON Web Token of a configured issuer."))
        .build();
    let mut schemas = vec![
        (ErrorBody::name().into_owned(), ErrorBody::schema()),
        (BareErrorBody::name().into_owned(), BareErrorBody::schema()),
    ];
    ErrorBody::schemas(&mut schemas);
    let components = ComponentsBuilder::new()
        .security_scheme(SCHEME, SecurityScheme::Http(bearer))
        .schemas_from_iter(schemas)
        .build();
    let licence = LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0"));
    let info = InfoBuilder::new()
        .title(about.title)
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(about.description))
        .license(Some(licence.build()))
        .build();
    let tags = about
        .tags
        .iter()
        .map(|(name, about)| TagBuilder::new().name(*name).description(Some(*about)).build());
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        .tags(Some(tags.collect::<Vec<_>>()))
        .build()
}

/// Adds to every operation what follows from its form.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        if let Some(post) = &mut item.post {
            let responses = &mut post.responses.responses;
            let text = "The `Idempotency-Key` was sent before with another body.";
            responses.insert("422".to_owned(), RefOr::T(error(path, text)));
        }
        let operations = [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            if let Some(summary) = &mut operation.summary {
                *summary = summary.replace('\n', " ");
            }
            tell(path, operation);
        }
    }
    document
}

fn tell(path: &str, operation: &mut Operation) {
    let is_open = operation.security.is_some();
    operation
        .security
        .get_or_insert_with(|| vec![SecurityRequirement::new(SCHEME, [""; 0])]);
    let errors = [
        (true, "400", "Something in the request is not valid."),
        (!is_open, "401", "No valid key or token was sent."),
        (
            true,
            "403",
            "The host or origin is not allowed, or the key lacks the scope.",
        ),
        (
            path.contains('{') || operation.request_body.is_some(),
            "404",
            "There is no such thing, or it is someone else's.",
        ),
        (!is_open, "409", "It cannot be done as things stand; `code` says why."),
        (operation.request_body.is_some(), "413", "The body is too large."),
        (
            !is_open,
            "429",
            "Too much at once; `Retry-After` says when there is room.",
        ),
        (true, "500", "A fault of the server."),
        (
            path == "/v1/chat/completions",
            "502",
            "The model server failed, and there is no text to show.",
        ),
        (!is_open, "503", "The store is away, or the server is shutting down."),
    ];
    for (_, status, description) in errors.into_iter().filter(|(applies, ..)| *applies) {
        let responses = &mut operation.responses.responses;
        responses
            .entry(status.to_owned())
            .or_insert_with(|| RefOr::T(error(path, description)));
    }
}

fn error(path: &str, description: &str) -> Response {
    let name = match Envelope::of(path) {
        Envelope::Bare => BareErrorBody::name(),
        _ => ErrorBody::name(),
    };
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(name)));
    ResponseBuilder::new()
        .description(description)
        .content(Envelope::of(path).kind(), content.build())
        .build()
}
