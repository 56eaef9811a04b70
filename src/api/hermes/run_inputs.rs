//! What a run waits for beside approvals: an answer to a question of its model, and
//! results of calls that the client carries out.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::runs::{RunId, found};
use crate::api::caller::Caller;
use crate::api::compat::handed::{self, Output};
use crate::api::compat::ids;
use crate::api::compat::object::set;
use crate::api::failure::Failure;
use crate::api::once;
use crate::api::path::{FromSegments, InPath};
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::id::QuestionId;
use crate::model::principal::Scope;
use crate::model::problem::ProblemCode;
use crate::model::question::Question;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(answer_clarification))
        .routes(routes!(give_run_results))
}

/// A run and a question in the path. What is no id of one names nothing.
pub(super) struct InClarification(RunId, QuestionId);

impl FromSegments for InClarification {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        let question = segments.get(1).and_then(|text| text.parse().ok());
        Ok(Self(
            RunId::from_segments(segments)?,
            question.ok_or_else(no_such_question)?,
        ))
    }
}

/// An answer to a question of the model.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Clarification {
    /// One of the question's `choices`, or other words.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    answer: Value,
    /// The same.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    response: Value,
    /// The same.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    text: Value,
    /// The same.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    choice: Value,
}

fn no_such_question() -> Failure {
    Failure::not_found("question").known_as("clarification_not_found")
}

const MAX_ANSWER_CHARS: usize = 20_000;

/// Answer a question of a run's model. The run goes on.
#[utoipa::path(post, path = "/v1/runs/{run_id}/clarifications/{clarification_id}/respond", tag = "runs",
    params(("run_id" = String, Path), ("clarification_id" = String, Path)), request_body = Clarification,
    responses((status = 200, description = "The question with its answer.", body = Value)))]
pub(super) async fn answer_clarification(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InClarification(RunId(run), id)): InPath<InClarification>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (given, once): (Clarification, _) = payload.loose_once(&caller.principal).await?;
    let said = [&given.answer, &given.response, &given.text, &given.choice];
    let said = said.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned();
    if said.trim().is_empty() || MAX_ANSWER_CHARS < said.chars().count() {
        let detail = format!("expected 1 to {MAX_ANSWER_CHARS} characters that say something");
        return Err(Failure::field("/answer", detail).known_as("invalid_clarification"));
    }
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.question(id).await }));
    if read.await?.is_none_or(|question| question.turn_id != run) {
        return Err(no_such_question());
    }
    let (engine, scope) = (state.engine.clone(), caller.scope.clone().once(once));
    let by = caller.principal.user.clone();
    let done = state.finish_once(async move { engine.answer_question(&scope, id, said, by).await });
    let done = done.await.map_err(|failure| match failure.problem().code {
        ProblemCode::QuestionResolved => failure.known_as("clarification_not_pending"),
        _ => failure,
    })?;
    let question: Question = done.value;
    let mut body = handed::question(&question);
    set(&mut body, "object", json!("hermes.run.clarification"));
    set(&mut body, "run_id", json!(ids::run(run)));
    Ok(once::marked(Json(body), done.replayed))
}

/// Results of calls that the client carries out.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct RunResults {
    /// Each with `tool_call_id`, `output` and, of one that failed, `is_error`.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    results: Vec<Value>,
}

/// Give calls of a run that the client carries out their results. The run goes on.
#[utoipa::path(post, path = "/v1/runs/{run_id}/tool-results", tag = "runs", params(("run_id" = String, Path)),
    request_body = RunResults,
    responses((status = 200, description = "How many were taken.", body = Value)))]
pub(super) async fn give_run_results(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(RunId(run)): InPath<RunId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (given, once): (RunResults, _) = payload.loose_once(&caller.principal).await?;
    let outputs: Vec<Output> = given.results.iter().map(output).collect::<Result<_, _>>()?;
    let story = found(&caller, run).await?;
    let calls: Vec<String> = story
        .messages
        .iter()
        .flat_map(|message| &message.tool_calls)
        .map(|call| call.id.to_string())
        .collect();
    if outputs.is_empty() || outputs.iter().any(|output| !calls.contains(&output.call)) {
        return Err(Failure::field("/results", "each result names a call of the run").known_as("tool_call_not_found"));
    }
    let taken = outputs.len();
    let given = handed::give(&state, &caller, outputs, once).await?;
    let body = json!({"object": "hermes.run.tool_results", "run_id": ids::run(run), "accepted": taken});
    Ok(once::marked(Json(body), given.replayed))
}

fn output(result: &Value) -> Result<Output, Failure> {
    let wrong = |detail: &str| Failure::field("/results", detail);
    let call = ["tool_call_id", "call_id"]
        .iter()
        .find_map(|name| result[*name].as_str());
    let text = match &result["output"] {
        Value::Null => return Err(wrong("a result has an `output`")),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Ok(Output {
        call: call.ok_or_else(|| wrong("a result has a `tool_call_id`"))?.to_owned(),
        text,
        is_error: result["is_error"] == true,
    })
}
