//! Policies: rules that a tenant adds to the guard's own, read and written as a
//! whole under a name. They hold from the next judgement on, in running turns
//! too.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use crate::api::caller::Caller;
use crate::api::conditions::{self, ConditionHeaders};
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::{FromSegments, InPath};
use crate::api::payload::Payload;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::guard::policy::Policy;
use crate::model::policy::{NamedPolicy, is_name};
use crate::model::principal::Scope;
use crate::model::version::{Part, Version};
use crate::store::{Rows, StoreError};
use crate::turn::requests::EngineError;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_policies))
        .routes(routes!(get_policy, put_policy, delete_policy))
}

/// The name of a policy.
pub(super) struct Name(String);

impl FromSegments for Name {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        let name = segments.first().copied().unwrap_or_default();
        match is_name(name) {
            true => Ok(Self(name.to_owned())),
            false => Err(Failure::not_found("policy")),
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PolicyPage {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

/// List the policies that were written, by name.
#[utoipa::path(get, path = "/v1/policies", tag = "policies",
    params(PolicyPage),
    responses((status = 200, description = "A page of policies.", body = Page<NamedPolicy>)))]
pub(super) async fn list_policies(
    State(state): State<ApiState>,
    caller: Caller,
    Query(page): Query<PolicyPage>,
) -> Result<Json<Page<NamedPolicy>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["policies"]))?;
    let after: Option<String> = list.after(page.after.as_deref())?;
    let limit = page.limit;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.policies(after.as_deref(), limit.and_one()).await }));
    Ok(Json(list.cut(found.await?, limit, |policy| policy.name.clone())))
}

/// Read a policy. One that nobody wrote yet is empty and changes nothing.
#[utoipa::path(get, path = "/v1/policies/{name}", tag = "policies",
    params(("name" = String, Path, description = "`default`, or the name that sessions give in `approvals.policy`."),
        ConditionHeaders),
    responses((status = 200, description = "The policy.", body = NamedPolicy)))]
pub(super) async fn get_policy(
    caller: Caller,
    InPath(Name(name)): InPath<Name>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let condition = conditions::of(&headers)?;
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { found(&mut rows, &name).await }));
    conditions::read(read.await?, &condition)
}

async fn found(rows: &mut Rows<'_>, name: &str) -> Result<NamedPolicy, StoreError> {
    let found = rows.policy(name).await?;
    Ok(found.unwrap_or_else(|| NamedPolicy::empty(name)))
}

/// Write a policy as a whole.
///
/// It holds from the next judgement of a command on, in turns that run as well;
/// what was allowed by an answer and did not start yet is judged again.
#[utoipa::path(put, path = "/v1/policies/{name}", tag = "policies",
    params(("name" = String, Path, description = "`default`, or the name that sessions give in `approvals.policy`."),
        ConditionHeaders),
    request_body = Policy,
    responses((status = 200, description = "The policy as it is now.", body = NamedPolicy)))]
pub(super) async fn put_policy(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(Name(name)): InPath<Name>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::Admin)?;
    let condition = conditions::of(&headers)?;
    let policy: Policy = payload.json().await?;
    // Hundreds of patterns take longer than other requests should wait.
    let checked = tokio::task::spawn_blocking(move || policy.compile().map(|_| policy)).await;
    let policy = match checked.map_err(Failure::internal)? {
        Ok(policy) => policy,
        Err(fault) => return Err(Failure::field(&fault.pointer, fault.detail)),
    };
    let now = state.clock().now();
    let by = caller.principal.user.clone();
    let scope = caller.scope.only_if(condition);
    let written = scope.write("policy.changed", move |mut rows| {
        Box::pin(async move {
            let before = found(&mut rows, &name).await?;
            let forbidden = rows.precondition().forbids(&Version::of_policy(&before), Part::Whole);
            if let Some(problem) = forbidden {
                return Ok(Err(EngineError::Refused(problem)));
            }
            let changed = differing(&before.policy, &policy);
            let after = NamedPolicy {
                name,
                policy,
                created_at: before.created_at.or(Some(now)),
                updated_at: Some(now),
                updated_by: Some(by),
            };
            rows.put_policy(&after, changed).await?;
            Ok(Ok(after))
        })
    });
    Ok(conditions::tagged(written.await??))
}

/// Take a policy away.
///
/// It holds no more from the next judgement on. Sessions that name it ask about
/// every command until one is written under that name again.
#[utoipa::path(delete, path = "/v1/policies/{name}", tag = "policies",
    params(("name" = String, Path, description = "`default`, or the name that sessions give in `approvals.policy`."),
        ConditionHeaders),
    responses((status = 204, description = "The policy is gone.")))]
pub(super) async fn delete_policy(
    caller: Caller,
    InPath(Name(name)): InPath<Name>,
    headers: HeaderMap,
) -> Result<StatusCode, Failure> {
    caller.require(Scope::Admin)?;
    let condition = conditions::of(&headers)?;
    let by = caller.principal.user.clone();
    let scope = caller.scope.only_if(condition);
    let deleted = scope.write("policy.deleted", move |mut rows| {
        Box::pin(async move {
            let Some(before) = rows.policy(&name).await? else {
                return Ok(Err(EngineError::NotFound("policy")));
            };
            let forbidden = rows.precondition().forbids(&Version::of_policy(&before), Part::Whole);
            if let Some(problem) = forbidden {
                return Ok(Err(EngineError::Refused(problem)));
            }
            rows.delete_policy(&name, &by).await?;
            Ok(Ok(()))
        })
    });
    deleted.await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Names of the fields in which two policies differ.
fn differing(before: &Policy, after: &Policy) -> Vec<String> {
    let (before, after) = (json!(before), json!(after));
    let names = ["mode", "default", "allow", "ask", "deny", "families_off"];
    let differs = |name: &&str| before.get(name).unwrap_or(&Value::Null) != after.get(name).unwrap_or(&Value::Null);
    names.into_iter().filter(differs).map(str::to_owned).collect()
}
