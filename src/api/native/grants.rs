//! Standing permissions: what was granted, what ran under it, and how it is
//! taken back. A grant is made by the answer to an approval, or here, ahead of
//! any question.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::model::grant::{Grant, GrantLimits, GrantScope, GrantUse};
use crate::model::id::{GrantId, SessionId};
use crate::model::principal::Scope;
use crate::model::problem::ProblemCode;
use crate::store;
use crate::turn::requests::{EngineError, earlier};

/// More rules than one command is found by.
const MAX_KEYS: usize = 50;
/// The longest key of a rule has 60 characters.
const MAX_KEY_CHARS: usize = 200;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_grants, create_grant))
        .routes(routes!(get_grant, revoke_grant))
        .routes(routes!(list_grant_uses))
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

/// A permission that is given before anything was asked.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewGrant {
    /// The tool whose calls it covers.
    #[schema(example = "terminal")]
    tool: String,
    /// Keys of the rules it covers, as findings and `POST /v1/guard/check` name
    /// them. A call is covered when all its findings are.
    #[schema(min_items = 1, max_items = 50)]
    keys: Vec<String>,
    /// The session it is for; without one it is for all sessions of the caller,
    /// from now on.
    session_id: Option<SessionId>,
    #[serde(default)]
    #[schema(required = false)]
    limits: GrantLimits,
}

/// Give a grant.
///
/// It is for the calls of one session, or for those of all sessions of the
/// caller, and settles nothing that is pending already.
#[utoipa::path(post, path = "/v1/grants", tag = "grants",
    request_body = NewGrant,
    responses((status = 201, description = "The grant.", body = Grant)))]
pub(super) async fn create_grant(
    State(state): State<ApiState>,
    caller: Caller,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::GrantsWrite)?;
    let (new, once): (NewGrant, _) = payload.json_once(&caller.principal).await?;
    check(&new, &state, &caller)?;
    let scope = match new.session_id {
        Some(_) => GrantScope::Session,
        None => GrantScope::Always,
    };
    let grant = Grant {
        id: GrantId::new(state.clock()),
        scope,
        session_id: new.session_id,
        tool: new.tool,
        backend: super::bounds::BACKEND.to_owned(),
        keys: new.keys,
        exact: None,
        limits: new.limits,
        approval_id: None,
        created_by: caller.principal.user.clone(),
        created_at: state.clock().now(),
        revoked_at: None,
        uses: 0,
        last_used_at: None,
    };
    let scope = caller.scope.once(once);
    let made = state.finish_once(async move { add(&scope, grant).await });
    Ok(made.await?.answer(|grant: Grant| {
        let location = [(LOCATION, format!("/v1/grants/{}", grant.id))];
        (StatusCode::CREATED, location, Json(grant)).into_response()
    }))
}

async fn add(scope: &store::Scope, grant: Grant) -> Result<Grant, EngineError> {
    let added = scope.write("grant.created", move |mut rows| {
        Box::pin(async move {
            if let Some(earlier) = earlier(&mut rows).await? {
                return Ok(Err(earlier));
            }
            // A grant of a session is its owner's; its end waits for this.
            let owner = match grant.session_id {
                Some(session) => match rows.lock_session(session).await? {
                    Some(session) => session.user_id,
                    None => return Ok(Err(EngineError::NotFound("session"))),
                },
                None => grant.created_by.clone(),
            };
            rows.add_grant(&owner, &grant).await?;
            rows.remember(&grant).await?;
            Ok(Ok(grant))
        })
    });
    added.await?
}

fn check(new: &NewGrant, state: &ApiState, caller: &Caller) -> Result<(), Failure> {
    let registry = state.engine.registry(caller.principal.tenant);
    let Some(tool) = registry.get(&new.tool) else {
        return Err(Failure::field(
            "/tool",
            "there is no such tool; `GET /v1/tools` lists them",
        ));
    };
    if new.keys.is_empty() || MAX_KEYS < new.keys.len() {
        return Err(Failure::field(
            "/keys",
            format!("expected 1 to {MAX_KEYS} keys of rules"),
        ));
    }
    for (place, key) in new.keys.iter().enumerate() {
        if !(1..=MAX_KEY_CHARS).contains(&key.chars().count()) {
            let pointer = format!("/keys/{place}");
            return Err(Failure::field(
                &pointer,
                format!("expected 1 to {MAX_KEY_CHARS} characters"),
            ));
        }
    }
    if new.session_id.is_none() && !state.engine.settings().allow_permanent {
        let detail = "this server gives no grants beyond a session (`approvals.allow_permanent`); name a `session_id`";
        return Err(Failure::new(ProblemCode::ChoiceNotOffered, detail));
    }
    match new.limits.fault(&tool.parameters(), state.clock().now()) {
        Some((pointer, detail)) => Err(Failure::field(&format!("/limits{pointer}"), detail)),
        None => Ok(()),
    }
}

/// Read a grant.
#[utoipa::path(get, path = "/v1/grants/{id}", tag = "grants",
    params(("id" = GrantId, Path)),
    responses((status = 200, description = "The grant.", body = Grant)))]
pub(super) async fn get_grant(caller: Caller, InPath(id): InPath<GrantId>) -> Result<Json<Grant>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.grant(id).await }));
    found.await?.map(Json).ok_or_else(|| Failure::not_found("grant"))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct UsePage {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

/// List the calls that ran under a grant, newest first.
#[utoipa::path(get, path = "/v1/grants/{id}/uses", tag = "grants",
    params(("id" = GrantId, Path), UsePage),
    responses((status = 200, description = "A page of uses.", body = Page<GrantUse>)))]
pub(super) async fn list_grant_uses(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<GrantId>,
    Query(page): Query<UsePage>,
) -> Result<Json<Page<GrantUse>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["grant_uses", id]))?;
    let before = list.after(page.after.as_deref())?;
    let limit = page.limit;
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            if rows.grant(id).await?.is_none() {
                return Ok(None);
            }
            rows.grant_uses(id, before, limit.and_one()).await.map(Some)
        })
    });
    let found = found.await?.ok_or_else(|| Failure::not_found("grant"))?;
    Ok(Json(list.cut(found, limit, |used| used.tool_call_id)))
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
