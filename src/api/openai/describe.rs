//! What the document of this surface says beside its operations.

use utoipa::openapi::OpenApi;

use crate::api::compat_describe::{self, About};

const ABOUT: About = About {
    title: "hermes-server, OpenAI surface",
    description: "Chat completions and responses for clients of OpenAI, over the same sessions, turns and approvals as \
        the native surface.",
    tags: &[
        ("chat", "Chat completions."),
        ("responses", "Responses: made, streamed, read later, cancelled."),
        ("models", "Models that can answer."),
    ],
};

/// The OpenAPI document of this surface.
pub(in crate::api) fn document() -> OpenApi {
    compat_describe::complete(super::described().document(compat_describe::about(&ABOUT)))
}
