//! What is said to a run that is under way: answers to its approvals, a stop, a
//! message for its model.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::once::is_known;
use super::run_status;
use super::runs::{RunId, found};
use crate::api::caller::Caller;
use crate::api::compat::begin::metadata;
use crate::api::compat::ending::pending;
use crate::api::compat::loose::Flag;
use crate::api::compat::{content, ids, question};
use crate::api::failure::Failure;
use crate::api::native::bounds;
use crate::api::once;
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::approval::{Approval, Choice};
use crate::model::principal::Scope;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::turn::{OnBusy, Turn, TurnOptions, TurnStatus};
use crate::store::Story;
use crate::turn::requests::{AnswerRequest, BatchRequest, NewTurn, Whither};

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(answer_run))
        .routes(routes!(stop_run))
        .routes(routes!(cancel_run))
        .routes(routes!(steer_run))
}

/// An answer to what a run waits for.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct RunAnswer {
    /// One of the approval's `choices`; `approve`, `approved` and `allow` are `once`.
    #[serde(default)]
    #[schema(value_type = String)]
    choice: Value,
    /// The approval; without one it is the oldest that waits.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    request_id: Value,
    /// The same.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    approval_id: Value,
    /// The approval's `digest` as it was shown.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    digest: Value,
    /// Reaches the model.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    reason: Value,
    /// Every approval that waits gets the answer.
    #[serde(default)]
    all: Flag,
    /// The same.
    #[serde(default)]
    resolve_all: Flag,
}

/// Answer an approval of a run.
#[utoipa::path(post, path = "/v1/runs/{run_id}/approval", tag = "runs", params(("run_id" = String, Path)),
    request_body = RunAnswer,
    responses((status = 200, description = "`choice` and how many were `resolved`.", body = Value)))]
pub(super) async fn answer_run(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(RunId(run)): InPath<RunId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::ApprovalsDecide)?;
    let (answer, once): (RunAnswer, _) = payload.loose_once(&caller.principal).await?;
    let choice = answer
        .choice
        .as_str()
        .and_then(question::choice)
        .ok_or_else(no_such_choice)?;
    let story = found(&caller, run).await?;
    let is_replay = is_known(&caller, &once).await?;
    let picked = match is_replay {
        true => Vec::new(),
        false => answer.picked(&story)?,
    };
    let batch = BatchRequest {
        atomic: true,
        answers: picked
            .iter()
            .map(|approval| (approval.id, answer.to(approval, choice, &caller)))
            .collect(),
    };
    let (engine, scope, session) = (state.engine.clone(), caller.scope.clone().once(once), story.session.id);
    let done = state.finish_once(async move { engine.decide_batch(&scope, session, batch).await });
    let done = done.await.map_err(as_known)?;
    let outcomes: Vec<Approval> = done
        .value
        .into_iter()
        .collect::<Result<_, Problem>>()
        .map_err(|problem| as_known(problem.into()))?;
    let first = outcomes.first();
    let given = first
        .and_then(|approval| approval.decision.as_ref())
        .map_or(choice, |decision| decision.choice);
    let body = json!({"object": "hermes.run.approval_response", "run_id": ids::run(run), "choice": given,
        "resolved": outcomes.len(), "request_id": first.map(|approval| approval.id),
        "approval_id": first.map(|approval| approval.id)});
    Ok(once::marked(Json(body), done.replayed))
}

fn no_such_choice() -> Failure {
    Failure::field("/choice", "expected one of the approval's `choices`").known_as("invalid_approval_choice")
}

/// The codes that clients of the original know.
fn as_known(failure: Failure) -> Failure {
    match failure.problem().code {
        ProblemCode::ChoiceNotOffered => failure.known_as("invalid_approval_choice"),
        ProblemCode::TurnNotActive => failure.known_as("approval_not_active"),
        ProblemCode::ApprovalResolved | ProblemCode::ApprovalExpired => failure.known_as("approval_not_pending"),
        _ => failure,
    }
}

impl RunAnswer {
    /// The approvals that the answer is for.
    fn picked(&self, story: &Story) -> Result<Vec<Approval>, Failure> {
        let turn = &story.turn;
        if turn.status.is_terminal() || turn.cancel_reason.is_some() {
            let detail = "the run is over or told to stop; nothing of it runs any more";
            return Err(Failure::new(ProblemCode::TurnNotActive, detail).known_as("approval_not_active"));
        }
        let waiting = pending(&story.approvals);
        let named = self.request_id.as_str().or(self.approval_id.as_str());
        let picked: Vec<Approval> = match named {
            Some(id) => waiting
                .into_iter()
                .filter(|approval| approval.id.to_string() == id)
                .cloned()
                .collect(),
            None if self.all.is_set() || self.resolve_all.is_set() => waiting.into_iter().cloned().collect(),
            None => waiting.into_iter().take(1).cloned().collect(),
        };
        if picked.is_empty() {
            let detail = "no such approval of the run waits for an answer";
            return Err(Failure::new(ProblemCode::ApprovalResolved, detail).known_as("approval_not_pending"));
        }
        Ok(picked)
    }

    fn to(&self, approval: &Approval, choice: Choice, caller: &Caller) -> AnswerRequest {
        AnswerRequest {
            choice: question::offered(choice, approval),
            digest: self.digest.as_str().map(str::to_owned),
            reason: self
                .reason
                .as_str()
                .map(|reason| crate::base::text::first_chars(reason, 4_000).to_owned()),
            stop_turn: false,
            arguments: None,
            grant: None,
            by: caller.principal.user.clone(),
        }
    }
}

/// Stop a run. One that is over is answered as it is.
#[utoipa::path(post, path = "/v1/runs/{run_id}/stop", tag = "runs", params(("run_id" = String, Path)),
    responses((status = 200, description = "It is `stopping`, or over.", body = Value)))]
pub(super) async fn stop_run(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(RunId(run)): InPath<RunId>,
    payload: Payload,
) -> Result<Response, Failure> {
    stop(state, caller, RunId(run), payload).await
}

/// Stop a run; the same as `stop`.
#[utoipa::path(post, path = "/v1/runs/{run_id}/cancel", tag = "runs", params(("run_id" = String, Path)),
    responses((status = 200, description = "It is `stopping`, or over.", body = Value)))]
pub(super) async fn cancel_run(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(RunId(run)): InPath<RunId>,
    payload: Payload,
) -> Result<Response, Failure> {
    stop(state, caller, RunId(run), payload).await
}

async fn stop(state: ApiState, caller: Caller, run: RunId, payload: Payload) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let RunId(run) = run;
    let once = payload.once(&caller.principal).await?;
    let story = found(&caller, run).await?;
    if story.turn.status.is_terminal() && once.is_none() {
        let document = run_status::document(&story, &state.engine.settings().model);
        return Ok(Json(document).into_response());
    }
    let (engine, scope, session) = (state.engine.clone(), caller.scope.clone().once(once), story.session.id);
    let stopped = state.finish_once(async move { engine.cancel_turn(&scope, session, run).await });
    Ok(stopped
        .await?
        .answer(|_: Turn| Json(json!({"run_id": ids::run(run), "status": "stopping"})).into_response()))
}

/// A message for the model of a run.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Steering {
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    input: Value,
    /// The same.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    message: Value,
    /// The same.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    text: Value,
}

/// Tell the model of a run something. It reads it when the calls that it made have
/// their results.
#[utoipa::path(post, path = "/v1/runs/{run_id}/steer", tag = "runs", params(("run_id" = String, Path)),
    request_body = Steering,
    responses((status = 200, description = "The message was taken.", body = Value)))]
pub(super) async fn steer_run(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(RunId(run)): InPath<RunId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (said, once): (Steering, _) = payload.loose_once(&caller.principal).await?;
    let said = [&said.input, &said.message, &said.text]
        .into_iter()
        .find(|value| !value.is_null());
    let input = content::parts(said.unwrap_or(&Value::Null), "/input")?;
    bounds::said("/input", &input, state.body.max_input_chars)
        .map_err(|failure| failure.known_as("invalid_steer_input"))?;
    let story = found(&caller, run).await?;
    let is_replay = is_known(&caller, &once).await?;
    if !is_replay && (story.turn.status != TurnStatus::Running || story.turn.cancel_reason.is_some()) {
        let detail = "only a run whose model is at work reads messages";
        return Err(Failure::new(ProblemCode::TurnNotActive, detail).known_as("run_not_accepting_steer"));
    }
    let new = NewTurn {
        user_id: caller.principal.user.clone(),
        input,
        on_busy: OnBusy::Steer,
        options: TurnOptions {
            metadata: metadata("runs", None),
            tool_ceiling: caller.principal.tools.clone(),
            key_id: caller.principal.key,
            ..TurnOptions::default()
        },
    };
    let (engine, scope) = (state.engine.clone(), caller.scope.clone().once(once));
    let beside = Whither::Beside(story.session.id, run);
    let steered = state.finish_once(async move {
        let steered = engine.create_turn_in(&scope, beside, new).await;
        steered.map(|created| created.turn.id)
    });
    let steered = steered.await.map_err(|failure| match failure.problem().code {
        ProblemCode::TurnNotActive => failure.known_as("run_not_accepting_steer"),
        _ => failure,
    });
    Ok(steered?.answer(|_| {
        Json(json!({"object": "hermes.run.steer", "run_id": ids::run(run), "accepted": true})).into_response()
    }))
}
