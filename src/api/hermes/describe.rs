//! What the document of this surface says beside its operations.

use utoipa::openapi::OpenApi;

use crate::api::compat_describe::{self, About};

const ABOUT: About = About {
    title: "hermes-server, Hermes surface",
    description: "Runs, sessions and capabilities for clients of the Hermes API server, over the same sessions, turns \
        and approvals as the native surface. Every path also stands under `/p/{profile}`, for the tenant of that name.",
    tags: &[
        ("health", "Whether the server lives, and how it is."),
        ("capabilities", "What this server can do."),
        ("runs", "Turns that are followed, approved and stopped by their id."),
        ("hermes sessions", "Conversations in the original's form."),
        ("hermes jobs", "Prompts that run by themselves, in the original's form."),
        ("chat", "Chat completions."),
        ("responses", "Responses."),
        ("ui", "What the chat transport of the AI SDK calls."),
        ("models", "Models that can answer."),
        ("tools", "Toolsets."),
        ("skills", "Skills that agents see."),
    ],
};

/// The OpenAPI document of this surface.
pub(in crate::api) fn document() -> OpenApi {
    compat_describe::complete(super::described().document(compat_describe::about(&ABOUT)))
}
