//! What waits for a person: the list, one approval, and the answer to one. The
//! engine decides which answer wins; a refusal carries the approval as it stands.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::model::approval::{Approval, ApprovalStatus, Choice};
use crate::model::grant::GrantLimits;
use crate::model::id::{ApprovalId, SessionId};
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::model::tenant_event::Counts;
use crate::turn::requests::AnswerRequest;

/// A reason is read by a person and by the model; longer texts are messages.
const MAX_REASON_CHARS: usize = 4_000;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_approvals))
        .routes(routes!(get_approval))
        .routes(routes!(decide_approval))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ApprovalFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
    status: Option<ApprovalStatus>,
    session_id: Option<SessionId>,
}

/// An answer to an approval.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionRequest {
    /// One of the approval's `choices`.
    choice: Choice,
    /// The approval's `digest` as it was shown; refused when it no longer fits.
    digest: Option<String>,
    /// Reaches the model.
    #[schema(max_length = 4000)]
    reason: Option<String>,
    /// With `deny`: end the turn as well.
    #[serde(default)]
    stop_turn: bool,
    /// With `once`: what the call gets instead of its arguments, all of them.
    /// They are read and judged like those of the model, which is told.
    #[schema(value_type = Option<Object>)]
    arguments: Option<serde_json::Map<String, serde_json::Value>>,
    /// With `session` or `always`: what the grant is held to. The call that is
    /// asked about runs whatever they say.
    grant: Option<GrantLimits>,
}

/// A page of approvals, and how many of all wait.
#[derive(Serialize, ToSchema)]
pub(super) struct ApprovalPage {
    #[serde(flatten)]
    page: Page<Approval>,
    /// Of the session where one is given, whatever else is asked for.
    counts: Counts,
}

/// List approvals, newest first.
#[utoipa::path(get, path = "/v1/approvals", tag = "approvals",
    params(ApprovalFilter),
    responses((status = 200, description = "A page of approvals.", body = ApprovalPage)))]
pub(super) async fn list_approvals(
    State(state): State<ApiState>,
    caller: Caller,
    Query(filter): Query<ApprovalFilter>,
) -> Result<Json<ApprovalPage>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["approvals", filter.status, filter.session_id]))?;
    let before = list.after(filter.after.as_deref())?;
    let ApprovalFilter {
        limit,
        status,
        session_id,
        ..
    } = filter;
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            let approvals = rows.approvals(session_id, status, before, limit.and_one()).await?;
            let pending = rows.count_pending(session_id).await?;
            Ok((approvals, Counts { pending }))
        })
    });
    let (approvals, counts) = found.await?;
    let page = list.cut(approvals, limit, |approval| approval.id);
    Ok(Json(ApprovalPage { page, counts }))
}

/// Read an approval.
#[utoipa::path(get, path = "/v1/approvals/{id}", tag = "approvals",
    params(("id" = ApprovalId, Path)),
    responses((status = 200, description = "The approval.", body = Approval)))]
pub(super) async fn get_approval(caller: Caller, InPath(id): InPath<ApprovalId>) -> Result<Json<Approval>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.approval(id).await }));
    found.await?.map(Json).ok_or_else(|| Failure::not_found("approval"))
}

/// Answer an approval.
///
/// The first answer wins. The same answer by the same user again is no error;
/// any other gets the approval as it was settled in `context`. A refused answer
/// leaves it pending.
#[utoipa::path(post, path = "/v1/approvals/{id}/decision", tag = "approvals",
    params(("id" = ApprovalId, Path)), request_body = DecisionRequest,
    responses(
        (status = 200, description = "The approval with its decision.", body = Approval),
        (status = 409, description = "It was settled already, has expired, no longer fits the digest, or its turn is \
            being cancelled; `context` has the approval as it stands.",
            body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The edited arguments do not fit the tool (`edit_invalid`, with pointers), or \
            no approval could allow them (`edit_not_allowed`).",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn decide_approval(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<ApprovalId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::ApprovalsDecide)?;
    let (request, once): (DecisionRequest, _) = payload.json_once(&caller.principal).await?;
    check_reason(request.reason.as_deref(), "/reason")?;
    let answer = AnswerRequest {
        choice: request.choice,
        digest: request.digest,
        reason: request.reason,
        stop_turn: request.stop_turn,
        arguments: request.arguments,
        grant: request.grant,
        by: caller.principal.user.clone(),
    };
    let engine = state.engine.clone();
    let scope = caller.scope.once(once);
    let decided = state.finish_once(async move { engine.decide(&scope, id, answer).await });
    Ok(decided.await?.answer(|approval| Json(approval).into_response()))
}

pub(super) fn check_reason(reason: Option<&str>, pointer: &str) -> Result<(), Failure> {
    if reason.is_some_and(|reason| MAX_REASON_CHARS < reason.chars().count()) {
        let detail = format!("it is longer than {MAX_REASON_CHARS} characters");
        return Err(Failure::field(pointer, detail));
    }
    Ok(())
}
