//! What the OpenAPI document says beside its operations: who made it, how to
//! prove who calls, and the problems that any operation can answer with, which
//! follow from its form and are therefore written here once.

mod conditions;
mod events;
mod lists;
mod once;
mod rates;
mod sealed;

use std::fmt::Write;

use utoipa::openapi::path::{Operation, Parameter, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Response,
    ResponseBuilder, Schema, ServerBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::api::once::NAME;
use crate::model::principal::Scope;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::transfer::TransferLine;

use super::page::Limit;
use super::viewer::PARAMETER;

const SCHEME: &str = "bearer";
/// Streams can be opened with a token in the query as well.
const TOKEN_SCHEME: &str = "stream_token";

/// What belongs together, with the scope that reading takes and the one that
/// everything else takes. Handlers check; a test holds them to this table.
struct Tag {
    name: &'static str,
    about: &'static str,
    reading: Scope,
    writing: Scope,
}

const fn tag(name: &'static str, about: &'static str, writing: Scope) -> Tag {
    Tag {
        name,
        about,
        reading: Scope::SessionsRead,
        writing,
    }
}

const TAGS: [Tag; 18] = [
    tag(
        "sessions",
        "Conversations with their settings, messages and events.",
        Scope::SessionsWrite,
    ),
    tag(
        "turns",
        "One input and everything that follows until the outcome.",
        Scope::TurnsWrite,
    ),
    tag(
        "approvals",
        "What waits for a person, and the answers.",
        Scope::ApprovalsDecide,
    ),
    tag(
        "questions",
        "What the model asks a person, and the answers.",
        Scope::TurnsWrite,
    ),
    tag("files", "Files of a session's workspace.", Scope::SessionsWrite),
    tag(
        "processes",
        "Commands that a session runs in the background.",
        Scope::TurnsWrite,
    ),
    tag(
        "grants",
        "Standing permissions, given by answers or ahead of questions.",
        Scope::GrantsWrite,
    ),
    tag(
        "jobs",
        "Prompts that run by themselves, and their runs.",
        Scope::TurnsWrite,
    ),
    tag("usage", "What models took and cost.", Scope::SessionsRead),
    Tag {
        reading: Scope::KeysWrite,
        ..tag("keys", "API keys.", Scope::KeysWrite)
    },
    Tag {
        reading: Scope::AuditRead,
        ..tag("audit", "Who did what; only ever appended to.", Scope::AuditRead)
    },
    // Asking for a token changes nothing.
    tag(
        "streams",
        "Streams of a tenant's lists, and tokens that open streams.",
        Scope::SessionsRead,
    ),
    tag("tools", "Tools, toolsets and presets.", Scope::SessionsRead),
<<<<<<< HEAD
    tag("skills", "What a tenant's agents know how to do.", Scope::SessionsWrite),
=======
>>>>>>> c5f3c4215f437d75164fabbcb3972c3e910c37c6
    Tag {
        reading: Scope::Admin,
        ..tag("plugins", "Folders of declared tools.", Scope::Admin)
    },
<<<<<<< HEAD
=======
    tag("skills", "What a tenant's agents know how to do.", Scope::SessionsWrite),
>>>>>>> c5f3c4215f437d75164fabbcb3972c3e910c37c6
    tag("models", "Models that can answer.", Scope::SessionsRead),
    tag("policies", "Rules that a tenant adds to the guard's own.", Scope::Admin),
    // A judgement is a question, though it is asked with POST.
    tag("guard", "What the guard says about a command.", Scope::SessionsRead),
];

/// Open to everyone.
const OPEN_TAGS: [(&str, &str); 2] = [
    ("health", "Whether the server lives and takes work."),
    ("documents", "This document."),
];

/// The document before there are operations in it.
pub(super) fn about() -> OpenApi {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "An API key, or a JSON Web Token of a configured issuer. The names beside an operation's requirement are \
             the scopes it takes; `admin` stands for all of them.",
        ))
        .build();
    let token = ApiKeyValue::with_description(
        PARAMETER,
        "A stream token: it opens the one stream that it was made for, for browsers, whose `EventSource` sends no headers.",
    );
    // Parameters name this schema, but only bodies bring theirs along.
    let limit = (Limit::name().into_owned(), Limit::schema());
    let mut schemas = vec![limit, (Problem::name().into_owned(), Problem::schema())];
    Problem::schemas(&mut schemas);
    // A line is described, though a body of lines is no value.
    schemas.push((TransferLine::name().into_owned(), TransferLine::schema()));
    TransferLine::schemas(&mut schemas);
    for (name, schema) in &mut schemas {
        if *name == ProblemCode::name() {
            tell_codes(schema);
        }
    }
    let components = ComponentsBuilder::new()
        .security_scheme(SCHEME, SecurityScheme::Http(bearer))
        .security_scheme(TOKEN_SCHEME, SecurityScheme::ApiKey(ApiKey::Query(token)))
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
    let here = ServerBuilder::new()
        .url("/")
        .description(Some("The server that this document comes from."))
        .build();
    let tags = TAGS.iter().map(|tag| (tag.name, tag.about)).chain(OPEN_TAGS);
    let tags = tags.map(|(name, about)| TagBuilder::new().name(name).description(Some(about)).build());
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([here]))
        .components(Some(components))
        .tags(Some(tags.collect::<Vec<_>>()))
        .build()
}

/// Adds what each code means to the list of codes.
fn tell_codes(schema: &mut RefOr<Schema>) {
    let RefOr::T(Schema::Object(codes)) = schema else {
        return;
    };
    let names = codes.enum_values.iter().flatten();
    let known = names.filter_map(|name| {
        Some((
            name.as_str()?,
            serde_json::from_value::<ProblemCode>(name.clone()).ok()?,
        ))
    });
    let mut text = String::from("Every code a client can meet, with the status that goes with it.\n");
    for (name, code) in known {
        // Writing to a String cannot fail.
        let _written = write!(text, "\n- `{name}` ({}): {}.", code.status(), code.title());
    }
    codes.description = Some(text);
}

/// Adds to every operation what follows from its form: the scope that it takes
/// and the problems that it can answer with.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        if let Some(operation) = item.post.as_mut().filter(|operation| has_effect(operation)) {
            once::tell(operation);
        }
        for (is_reading, operation) in operations(item) {
            if let Some(summary) = &mut operation.summary {
                *summary = summary.replace('\n', " ");
            }
            if conditions::heeds(operation) {
                conditions::tell(operation, is_reading);
            }
            if operation.security.is_none() {
                let mut ways = vec![requirement(is_reading, operation)];
                if is_reading && is_stream(operation) {
                    ways.push(SecurityRequirement::new(TOKEN_SCHEME, [""; 0]));
                }
                operation.security = Some(ways);
            }
            for (status, description) in problems(path, operation) {
                let responses = &mut operation.responses.responses;
                responses
                    .entry(status.to_owned())
                    .or_insert_with(|| RefOr::T(problem(description)));
            }
            if !is_open(operation) {
                rates::tell(operation);
            }
        }
    }
    if let Some(components) = &mut document.components {
        lists::by_name(&mut components.schemas);
        events::as_unions(&mut components.schemas);
        sealed::as_wholes(&mut components.schemas);
    }
    document
}

/// A credential, and the scope that the operation's tag names.
fn requirement(is_reading: bool, operation: &Operation) -> SecurityRequirement {
    let named = |tag: &&Tag| operation.tags.iter().flatten().any(|name| name == tag.name);
    let scope = TAGS.iter().find(named).map(|tag| match is_reading {
        true => tag.reading.name(),
        false => tag.writing.name(),
    });
    SecurityRequirement::new(SCHEME, scope)
}

/// Whether the operation answers with nothing but a stream.
fn is_stream(operation: &Operation) -> bool {
    let name = operation.operation_id.as_deref();
    name.is_some_and(|name| name.starts_with("stream_"))
}

/// Whether a POST changes anything: what takes no more than reading is a
/// question, and to load again comes to the same.
fn has_effect(operation: &Operation) -> bool {
    let name = operation.operation_id.as_deref().unwrap_or_default();
    let named = |tag: &&Tag| operation.tags.iter().flatten().any(|name| name == tag.name);
    TAGS.iter()
        .find(named)
        .is_some_and(|tag| tag.writing != Scope::SessionsRead && !name.starts_with("reload_"))
}

/// Each with whether it only reads.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (bool, &mut Operation)> {
    let methods = [
        (true, &mut item.get),
        (false, &mut item.post),
        (false, &mut item.put),
        (false, &mut item.patch),
        (false, &mut item.delete),
    ];
    let present = methods.into_iter();
    present.filter_map(|(is_reading, operation)| Some((is_reading, operation.as_mut()?)))
}

/// Whether the operation asks nobody who they are.
fn is_open(operation: &Operation) -> bool {
    let open = SecurityRequirement::default();
    operation
        .security
        .iter()
        .flatten()
        .any(|requirement| *requirement == open)
}

/// Statuses by what the layers and extractors around the operation can refuse.
fn problems(path: &str, operation: &Operation) -> Vec<(&'static str, &'static str)> {
    let open = is_open(operation);
    let is_key = |one: &RefOr<Parameter>| matches!(one, RefOr::T(one) if one.name == NAME);
    let has_key = operation.parameters.iter().flatten().any(is_key);
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
        (
            conditions::heeds(operation),
            conditions::PROBLEM.0,
            conditions::PROBLEM.1,
        ),
        (has_body, "413", "The body is too large."),
        (has_body, "415", "The body is not JSON."),
        (!open, rates::PROBLEM.0, rates::PROBLEM.1),
        (true, "500", "A fault of the server."),
        (
            !open,
            "503",
            "The store or the keys of a token's issuer are away, or the server is shutting down; `Retry-After` says when \
             to try again.",
        ),
    ];
    let told = all.into_iter().filter(|(applies, ..)| *applies);
    let told = told.map(|(_, status, description)| (status, description));
    told.chain(once::PROBLEMS.into_iter().filter(|_| has_key)).collect()
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
