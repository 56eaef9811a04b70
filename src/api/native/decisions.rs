//! Many answers at once, to approvals of one session. Each is an answer like
//! any other; here they travel together.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::approvals::check_reason;
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::model::approval::{Approval, Choice};
use crate::model::grant::GrantLimits;
use crate::model::id::{ApprovalId, SessionId};
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::turn::requests::{AnswerRequest, BatchOutcome, BatchRequest};

/// As many as a person looks through at once; one transaction carries them.
const MAX_DECISIONS: usize = 50;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(decide_approvals))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DecisionMode {
    /// Every answer for itself: those that are not taken change nothing.
    Each,
    /// All answers or none.
    Atomic,
}

/// Answers to approvals of one session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionsRequest {
    mode: DecisionMode,
    /// No approval twice.
    #[schema(min_items = 1, max_items = 50)]
    decisions: Vec<OneDecision>,
}

/// One answer among several.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneDecision {
    approval_id: ApprovalId,
    /// One of the approval's `choices`.
    choice: Choice,
    /// The approval's `digest` as it was shown; refused when it no longer fits.
    digest: Option<String>,
    /// Reaches the model.
    #[schema(max_length = 4000)]
    reason: Option<String>,
    /// With `once`: what the call gets instead of its arguments, all of them.
    #[schema(value_type = Option<Object>)]
    arguments: Option<serde_json::Map<String, serde_json::Value>>,
    /// With `session` or `always`: what the grant is held to. The call that is
    /// asked about runs whatever they say.
    grant: Option<GrantLimits>,
}

/// What became of the answers, in their order.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DecisionOutcomes {
    outcomes: Vec<DecisionOutcome>,
}

/// What became of one answer: it has either `approval` or `problem`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DecisionOutcome {
    approval_id: ApprovalId,
    /// The approval with its decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    /// Why the answer was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// Answer several approvals of a session in one transaction.
///
/// With `atomic` the problem of the first answer that is not taken is the
/// answer, its place is `index` in `context`, and nothing has changed. With
/// `each` there is an outcome for every answer.
#[utoipa::path(post, path = "/v1/sessions/{id}/approvals/decisions", tag = "approvals",
    params(("id" = SessionId, Path)), request_body = DecisionsRequest,
    responses(
        (status = 200, description = "The outcomes, in the order of the answers.", body = DecisionOutcomes),
        (status = 409, description = "`atomic`: the first answer that was not taken is to an approval that is settled, \
            has expired, no longer fits the digest, or whose turn is being cancelled.",
            body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "`atomic`: edited arguments do not fit the tool (`edit_invalid`), or no approval \
            could allow them (`edit_not_allowed`).",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn decide_approvals(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(session): InPath<SessionId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::ApprovalsDecide)?;
    let (request, once): (DecisionsRequest, _) = payload.json_once(&caller.principal).await?;
    let batch = batch(request, &caller.principal.user)?;
    let ids: Vec<ApprovalId> = batch.answers.iter().map(|(id, _)| *id).collect();
    let engine = state.engine.clone();
    let scope = caller.scope.once(once);
    let decided = state.finish_once(async move { engine.decide_batch(&scope, session, batch).await });
    Ok(decided
        .await?
        .answer(|outcomes| Json(shown(ids, outcomes)).into_response()))
}

fn shown(ids: Vec<ApprovalId>, outcomes: Vec<BatchOutcome>) -> DecisionOutcomes {
    let outcomes = ids.into_iter().zip(outcomes).map(|(approval_id, outcome)| {
        let (approval, problem) = match outcome {
            Ok(approval) => (Some(approval), None),
            Err(problem) => (None, Some(problem)),
        };
        DecisionOutcome {
            approval_id,
            approval,
            problem,
        }
    });
    DecisionOutcomes {
        outcomes: outcomes.collect(),
    }
}

fn batch(request: DecisionsRequest, by: &str) -> Result<BatchRequest, Failure> {
    let count = request.decisions.len();
    if count == 0 || MAX_DECISIONS < count {
        let detail = format!("it must hold 1 to {MAX_DECISIONS} answers, not {count}");
        return Err(Failure::field("/decisions", detail));
    }
    let mut answers: Vec<(ApprovalId, AnswerRequest)> = Vec::with_capacity(count);
    for (index, one) in request.decisions.into_iter().enumerate() {
        check_reason(one.reason.as_deref(), &format!("/decisions/{index}/reason"))?;
        if answers.iter().any(|(id, _)| *id == one.approval_id) {
            let pointer = format!("/decisions/{index}/approval_id");
            return Err(Failure::field(&pointer, "this approval is answered above already"));
        }
        let answer = AnswerRequest {
            choice: one.choice,
            digest: one.digest,
            reason: one.reason,
            stop_turn: false,
            arguments: one.arguments,
            grant: one.grant,
            by: by.to_owned(),
        };
        answers.push((one.approval_id, answer));
    }
    Ok(BatchRequest {
        atomic: request.mode == DecisionMode::Atomic,
        answers,
    })
}
