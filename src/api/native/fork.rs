//! What is done with a session as a whole: another one goes on from a point of
//! it, it is put away, it is taken back.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::caller::Caller;
use crate::api::conditions::{self, ConditionHeaders};
use crate::api::failure::Failure;
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::model::id::{MessageId, SessionId, TurnId};
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::model::session::{Metadata, Session};
use crate::turn::requests::{ForkPoint, ForkSession};

use super::bounds;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(fork_session))
        .routes(routes!(archive_session))
        .routes(routes!(unarchive_session))
}

/// From where the fork goes on: with neither point, from the end of the last
/// turn that is over.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ForkRequest {
    /// The last message that is taken over; not between a call and its result.
    after_message: Option<MessageId>,
    /// The last turn that is taken over; it has to be over.
    after_turn: Option<TurnId>,
    /// In place of the title that is taken over.
    title: Option<String>,
    /// Of the fork; that of the other session stays its own.
    #[schema(max_length = 256)]
    external_id: Option<String>,
    /// In place of the metadata that is taken over.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Metadata>,
}

impl ForkRequest {
    fn checked(self, caller: &Caller) -> Result<ForkSession, Failure> {
        bounds::session_texts(&self.title, &self.external_id, &None, &None)?;
        if let Some(metadata) = &self.metadata {
            bounds::metadata(metadata)?;
        }
        let point = match (self.after_message, self.after_turn) {
            (None, None) => ForkPoint::End,
            (Some(message), None) => ForkPoint::AfterMessage(message),
            (None, Some(turn)) => ForkPoint::AfterTurn(turn),
            (Some(_), Some(_)) => {
                let detail = "give `after_message` or `after_turn`, not both";
                return Err(Failure::field("/after_turn", detail));
            }
        };
        Ok(ForkSession {
            user_id: caller.principal.user.clone(),
            point,
            external_id: self.external_id,
            title: self.title,
            metadata: self.metadata,
            may_settle: caller.principal.scopes.allow(Scope::ApprovalsDecide),
        })
    }
}

/// Fork a session.
///
/// The fork has the settings, the messages up to the point and the turns that
/// they belong to, under ids of its own; `parent` says where it comes from. What
/// was rolled back is left out. It begins with an empty workspace, since files
/// are as of now and not as of the point; with the task list only where nothing
/// is cut off; and without any grant or approval.
#[utoipa::path(post, path = "/v1/sessions/{id}/fork", tag = "sessions", params(("id" = SessionId, Path)),
    request_body = ForkRequest,
    responses(
        (status = 201, description = "The fork.", body = Session,
            headers(("Location" = String, description = "Path of the fork."))),
        (status = 409, description = "The turn is not over, or the `external_id` is in use.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn fork_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let (request, once): (ForkRequest, _) = payload.json_once(&caller.principal).await?;
    let fork = request.checked(&caller)?;
    let engine = state.engine.clone();
    let scope = caller.scope.once(once);
    let forked = state.finish_once(async move { engine.fork_session(&scope, id, fork).await });
    Ok(forked.await?.answer(made))
}

/// A new session with where it is.
pub(super) fn made(session: Session) -> Response {
    let location = [(LOCATION, format!("/v1/sessions/{}", session.id))];
    (StatusCode::CREATED, location, Json(session)).into_response()
}

/// Archive a session: lists leave it out unless asked. Everything else goes on.
///
/// `If-Match` compares what clients set, here and when it is taken back.
#[utoipa::path(post, path = "/v1/sessions/{id}/archive", tag = "sessions",
    params(("id" = SessionId, Path), ConditionHeaders),
    responses((status = 200, description = "The session, archived now or before.", body = Session)))]
pub(super) async fn archive_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    keep(state, caller.only_if(&headers)?, id, payload, true).await
}

/// Take a session back from the archive.
#[utoipa::path(post, path = "/v1/sessions/{id}/unarchive", tag = "sessions",
    params(("id" = SessionId, Path), ConditionHeaders),
    responses((status = 200, description = "The session, which lists show.", body = Session)))]
pub(super) async fn unarchive_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    keep(state, caller.only_if(&headers)?, id, payload, false).await
}

async fn keep(
    state: ApiState,
    caller: Caller,
    id: SessionId,
    payload: Payload,
    archived: bool,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    let once = payload.once(&caller.principal).await?;
    let engine = state.engine.clone();
    let scope = caller.scope.once(once);
    let kept = state.finish_once(async move { engine.archive_session(&scope, id, archived).await });
    Ok(kept.await?.answer(conditions::tagged))
}
