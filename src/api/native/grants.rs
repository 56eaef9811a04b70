//! Standing permissions: what was granted, and how it is taken back. A grant is
//! made by the answer to an approval and in no other way.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::model::grant::Grant;
use crate::model::id::{GrantId, SessionId};
use crate::model::principal::Scope;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_grants))
        .routes(routes!(revoke_grant))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GrantFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
    session_id: Option<SessionId>,
}

/// List grants, newest first, revoked ones too.
#[utoipa::path(get, path = "/v1/grants", tag = "grants",
    params(GrantFilter),
    responses((status = 200, description = "A page of grants.", body = Page<Grant>)))]
pub(super) async fn list_grants(
    State(state): State<ApiState>,
    caller: Caller,
    Query(filter): Query<GrantFilter>,
) -> Result<Json<Page<Grant>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["grants", filter.session_id]))?;
    let before = list.after(filter.after.as_deref())?;
    let (session, limit) = (filter.session_id, filter.limit);
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.grants(session, before, limit.and_one()).await }));
    Ok(Json(list.cut(found.await?, limit, |grant| grant.id)))
}

/// Revoke a grant.
///
/// It counts from the next call on. To revoke it again changes nothing.
#[utoipa::path(delete, path = "/v1/grants/{id}", tag = "grants",
    params(("id" = GrantId, Path)),
    responses((status = 204, description = "The grant is no longer in force.")))]
pub(super) async fn revoke_grant(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<GrantId>,
) -> Result<StatusCode, Failure> {
    caller.require(Scope::GrantsWrite)?;
    let now = state.clock().now();
    let revoked = caller.scope.write("grant.revoked", move |mut rows| {
        Box::pin(async move { rows.revoke_grant(id, now).await })
    });
    match revoked.await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Failure::not_found("grant")),
    }
}
