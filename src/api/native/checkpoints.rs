//! How a session's workspace was before calls that could take something away:
//! listed, and put back.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::checkpoint::{Checkpoint, Restored};
use crate::model::id::{CheckpointId, SessionId};
use crate::model::principal::Scope;
use crate::model::problem::Problem;

use super::files::is_here;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_checkpoints))
        .routes(routes!(restore_checkpoint))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CheckpointPage {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

/// List how the session's workspace was, newest first.
///
/// Where the configuration wants it (`checkpoints.enabled`), there is one for each
/// answer of the model with calls that could take files away, made just before the
/// first of them ran. A session that does delegated work has those of its root.
#[utoipa::path(get, path = "/v1/sessions/{id}/checkpoints", tag = "files",
    params(("id" = SessionId, Path), CheckpointPage),
    responses((status = 200, description = "A page of checkpoints.", body = Page<Checkpoint>)))]
pub(super) async fn list_checkpoints(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    Query(page): Query<CheckpointPage>,
) -> Result<Json<Page<Checkpoint>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["checkpoints", id]))?;
    let before: Option<CheckpointId> = list.after(page.after.as_deref())?;
    let home = is_here(&state, &caller, id).await?.home();
    let all = state.engine.host().checkpoints().list(caller.principal.tenant, home);
    let mut found = all.await.map_err(Failure::internal)?;
    found.retain(|checkpoint| before.is_none_or(|before| checkpoint.id < before));
    found.truncate(page.limit.and_one() as usize);
    Ok(Json(list.cut(found, page.limit, |checkpoint| checkpoint.id)))
}

/// Make the session's workspace what it was at a checkpoint.
///
/// What came since is taken away, what was changed or removed is put back, links
/// as links. What is there now becomes a checkpoint first, so that this can be
/// undone; what that one cannot hold is left as it is, and named in the answer. The
/// transcript stays; the model is told before its next answer. Processes in the
/// background go on, and may write meanwhile.
#[utoipa::path(post, path = "/v1/sessions/{id}/checkpoints/{checkpoint_id}/restore", tag = "files",
    params(("id" = SessionId, Path), ("checkpoint_id" = CheckpointId, Path)),
    responses(
        (status = 200, description = "What was done.", body = Restored),
        (status = 409, description = "A turn of the session runs or waits, there is nothing in the checkpoint, or \
            it could not be undone.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn restore_checkpoint(
    State(state): State<ApiState>,
    caller: Caller,
    InPath((session, id)): InPath<(SessionId, CheckpointId)>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let once = payload.once(&caller.principal).await?;
    let (engine, user) = (state.engine.clone(), caller.principal.user.clone());
    let scope = caller.scope.once(once);
    let restored = state.finish_once(async move { engine.restore_checkpoint(&scope, session, id, user).await });
    Ok(restored
        .await?
        .answer(|restored: Restored| Json(restored).into_response()))
}
