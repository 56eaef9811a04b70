//! What the OpenAPI document says beside its operations: who made it, how to
//! prove who calls, and the problems that any operation can answer with, which
//! follow from its form and are therefore written here once.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Response,
    ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::model::problem::Problem;

const SCHEME: &str = "bearer";

const TAGS: [(&str, &str); 9] = [
    ("sessions", "Conversations with their settings, messages and events."),
    ("turns", "One input and everything that follows until the outcome."),
    ("approvals", "What waits for a person, and the answers."),
    ("grants", "Standing permissions that earlier answers gave."),
    ("keys", "API keys."),
    ("tools", "Tools, toolsets and presets."),
    ("models", "Models that can answer."),
    ("guard", "What the guard says about a command."),
    ("health", "Whether the server lives and takes work."),
];

/// The document before there are operations in it.
pub(super) fn about() -> OpenApi {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key, or a JSON Web Token of a configured issuer."))
        .build();
    let mut schemas = vec![(Problem::name().into_owned(), Problem::schema())];
    Problem::schemas(&mut schemas);
    let components = ComponentsBuilder::new()
        .security_scheme(SCHEME, SecurityScheme::Http(bearer))
        .schemas_from_iter(schemas)
        .build();
    let info = InfoBuilder::new()
        .title("hermes-server")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Hosts agents for many tenants: durable sessions, streamed turns, human approvals.",
        ))
        .license(Some(
            LicenseBuilder::new()
                .name("Apache-2.0")
                .identifier(Some("Apache-2.0"))
                .build(),
        ))
        .build();
    let tags = TAGS.map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build());
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        .security(Some([SecurityRequirement::new::<_, [&str; 0], &str>(SCHEME, [])]))
        .tags(Some(tags))
        .build()
}

/// Adds to every operation the problems that follow from its form.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        for operation in operations(item) {
            for (status, description) in problems(path, operation) {
                let responses = &mut operation.responses.responses;
                responses
                    .entry(status.to_owned())
                    .or_insert_with(|| RefOr::T(problem(description)));
            }
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let methods = [
        &mut item.get,
        &mut item.post,
        &mut item.put,
        &mut item.patch,
        &mut item.delete,
    ];
    methods.into_iter().flatten()
}

/// Statuses by what the layers and extractors around the operation can refuse.
fn problems(path: &str, operation: &Operation) -> Vec<(&'static str, &'static str)> {
    let open = operation.security.is_some();
    let has_body = operation.request_body.is_some();
    let all = [
        (
            true,
            "400",
            "Something in the request is not valid; `errors` says what.",
        ),
        (!open, "401", "No valid key or token was sent."),
        (
            true,
            "403",
            "The host or origin is not allowed, or the key or token lacks the scope.",
        ),
        (
            path.contains('{'),
            "404",
            "There is no such thing, or it is someone else's.",
        ),
        (has_body, "408", "The body took too long to arrive."),
        (has_body, "413", "The body is too large."),
        (has_body, "415", "The body is not JSON."),
        (true, "500", "A fault of the server."),
        (
            !open,
            "503",
            "The store is away, or the server is shutting down; `Retry-After` says when to try again.",
        ),
    ];
    let told = all.into_iter().filter(|(applies, ..)| *applies);
    told.map(|(_, status, description)| (status, description)).collect()
}

fn problem(description: &str) -> Response {
    let schema = Ref::from_schema_name(Problem::name());
    ResponseBuilder::new()
        .description(description)
        .content(
            "application/problem+json",
            ContentBuilder::new().schema(Some(schema)).build(),
        )
        .build()
}
