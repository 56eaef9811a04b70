//! Stream tokens: what a page in a browser opens a stream with. Made by a caller
//! that may watch, for its own page, one stream and one minute.

use std::time::Duration;

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::auth::stream_token::{self, Pass, Subject};
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::path::InPath;
use crate::api::state::ApiState;
use crate::base::Timestamp;
use crate::model::id::SessionId;
use crate::model::principal::Scope;

/// Long enough to open a stream with, too short to be worth finding.
const LIFE: Duration = Duration::from_secs(60);

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(create_session_stream_token))
        .routes(routes!(create_stream_token))
}

/// A token that opens streams, as `?token=`.
#[derive(Serialize, ToSchema)]
pub(super) struct StreamToken {
    token: String,
    /// From then on it opens no stream; one that is open goes on.
    expires_at: Timestamp,
}

/// Make a token for the streams of a session and of its turns.
///
/// It is for `EventSource`, which sends no headers: within 60 seconds
/// `GET …/stream?token=` opens a stream in the caller's name. It opens nothing
/// else, and ends with the key or token that it was made with. An open stream
/// outlives it; to come back takes a new one.
#[utoipa::path(post, path = "/v1/sessions/{id}/stream-tokens", tag = "streams",
    params(("id" = SessionId, Path)),
    responses((status = 201, description = "The token.", body = StreamToken)))]
pub(super) async fn create_session_stream_token(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
) -> Result<(StatusCode, Json<StreamToken>), Failure> {
    caller.require(Scope::SessionsRead)?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.session_record(id).await }));
    found.await?.ok_or_else(|| Failure::not_found("session"))?;
    made(&state, caller, Subject::Session(id))
}

/// Make a token for the inbox and the stream of the tenant's lists; otherwise as
/// the token of a session.
#[utoipa::path(post, path = "/v1/stream-tokens", tag = "streams",
    responses((status = 201, description = "The token.", body = StreamToken)))]
pub(super) async fn create_stream_token(
    State(state): State<ApiState>,
    caller: Caller,
) -> Result<(StatusCode, Json<StreamToken>), Failure> {
    caller.require(Scope::SessionsRead)?;
    made(&state, caller, Subject::Tenant)
}

fn made(state: &ApiState, caller: Caller, subject: Subject) -> Result<(StatusCode, Json<StreamToken>), Failure> {
    let pass = Pass {
        subject,
        tenant: caller.principal.tenant,
        whole_tenant: caller.principal.sees_whole_tenant(),
        user: caller.principal.user,
        key: caller.principal.key,
        until: caller.until,
        expires_at: state.clock().now().after(LIFE),
    };
    let token = stream_token::write(state.store.cursor_key(), &pass)?;
    let made = StreamToken {
        token: token.expose().to_owned(),
        expires_at: pass.expires_at,
    };
    Ok((StatusCode::CREATED, Json(made)))
}
