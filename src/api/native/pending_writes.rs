//! What agents want to write for good and a person has to let in
//! (`skills.write_approval`, `memory.write_approval`).

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
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
use crate::model::id::PendingWriteId;
use crate::model::pending::{PendingKind, PendingWrite, WrittenPending};
use crate::model::principal::Scope;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_pending_writes))
        .routes(routes!(get_pending_write, reject_pending_write))
        .routes(routes!(approve_pending_write))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PendingFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
    kind: Option<PendingKind>,
}

/// List what agents want to write and nobody has let in yet, newest first.
#[utoipa::path(get, path = "/v1/pending-writes", tag = "approvals",
    params(PendingFilter),
    responses((status = 200, description = "A page of changes that wait.", body = Page<PendingWrite>)))]
pub(super) async fn list_pending_writes(
    State(state): State<ApiState>,
    caller: Caller,
    Query(filter): Query<PendingFilter>,
) -> Result<Json<Page<PendingWrite>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["pending_writes", filter.kind]))?;
    let before = list.after(filter.after.as_deref())?;
    let PendingFilter { limit, kind, .. } = filter;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.pending_writes(kind, before, limit.and_one()).await }));
    Ok(Json(list.cut(found.await?, limit, |pending| pending.id)))
}

/// Read a change that waits: all that would be written.
#[utoipa::path(get, path = "/v1/pending-writes/{id}", tag = "approvals",
    params(("id" = PendingWriteId, Path)),
    responses((status = 200, description = "The change.", body = PendingWrite)))]
pub(super) async fn get_pending_write(
    caller: Caller,
    InPath(id): InPath<PendingWriteId>,
) -> Result<Json<PendingWrite>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.pending_write(id).await }));
    found
        .await?
        .map(Json)
        .ok_or_else(|| Failure::not_found("pending write"))
}

/// Let a change in: it is made now.
///
/// One that cannot be made any more is refused with the reason, and waits on.
#[utoipa::path(post, path = "/v1/pending-writes/{id}/approve", tag = "approvals",
    params(("id" = PendingWriteId, Path)),
    responses((status = 200, description = "It was made, and waits no more.", body = WrittenPending)))]
pub(super) async fn approve_pending_write(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<PendingWriteId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::ApprovalsDecide)?;
    let once = payload.once(&caller.principal).await?;
    let (engine, scope) = (state.engine.clone(), caller.scope.once(once));
    let approved = state.finish_once(async move { engine.approve_write(&scope, id).await });
    Ok(approved
        .await?
        .answer(|written: WrittenPending| Json(written).into_response()))
}

/// Take a change away that nobody wants.
#[utoipa::path(delete, path = "/v1/pending-writes/{id}", tag = "approvals",
    params(("id" = PendingWriteId, Path)),
    responses((status = 204, description = "It waits no more.")))]
pub(super) async fn reject_pending_write(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<PendingWriteId>,
) -> Result<StatusCode, Failure> {
    caller.require(Scope::ApprovalsDecide)?;
    let (engine, scope) = (state.engine.clone(), caller.scope);
    let rejected = state.finish(async move { engine.reject_write(&scope, id).await });
    rejected.await?;
    Ok(StatusCode::NO_CONTENT)
}
