//! What came of calls that the client carries out.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::model::call::ToolCall;
use crate::model::id::{CallId, SessionId};
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::turn::step::ClientResult;

/// As many calls as one answer of a model may make.
const MAX_RESULTS: usize = 256;
/// What the model is shown of any result at once.
const MAX_OUTPUT_CHARS: usize = 100_000;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(give_tool_results))
}

/// Results of calls with `execution: client`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolResultsRequest {
    /// No call twice.
    #[schema(min_items = 1, max_items = 256)]
    results: Vec<ToolResult>,
}

/// The result of one call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolResult {
    tool_call_id: CallId,
    /// What the model reads; JSON where the tool gives any.
    #[schema(max_length = 100_000)]
    output: String,
    /// The call failed, and `output` says why.
    #[serde(default)]
    is_error: bool,
}

/// The calls as they are now, in the order of their results.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SettledCalls {
    tool_calls: Vec<ToolCall>,
}

/// Give calls that the client carries out their results.
///
/// All of them or, with the problem of the first that is not taken, none; its
/// place is `index` in `context`. The turn goes on when every call of the answer
/// has a result. The same result again is no error.
#[utoipa::path(post, path = "/v1/sessions/{id}/tool-results", tag = "turns",
    params(("id" = SessionId, Path)), request_body = ToolResultsRequest,
    responses(
        (status = 200, description = "The calls with their results.", body = SettledCalls),
        (status = 409, description = "A call has another result already (`tool_call_settled`), is not the client's or \
            not yet handed over (`tool_call_not_waiting`), or its turn is being cancelled.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn give_tool_results(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(session): InPath<SessionId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (request, once): (ToolResultsRequest, _) = payload.json_once(&caller.principal).await?;
    let results = checked(request)?;
    let engine = state.engine.clone();
    let scope = caller.scope.once(once);
    let settled = state.finish_once(async move { engine.tool_results(&scope, session, results).await });
    Ok(settled
        .await?
        .answer(|tool_calls| Json(SettledCalls { tool_calls }).into_response()))
}

fn checked(request: ToolResultsRequest) -> Result<Vec<ClientResult>, Failure> {
    let count = request.results.len();
    if count == 0 || MAX_RESULTS < count {
        let detail = format!("it must hold 1 to {MAX_RESULTS} results, not {count}");
        return Err(Failure::field("/results", detail));
    }
    let mut results: Vec<ClientResult> = Vec::with_capacity(count);
    for (index, one) in request.results.into_iter().enumerate() {
        if results.iter().any(|earlier| earlier.call_id == one.tool_call_id) {
            let pointer = format!("/results/{index}/tool_call_id");
            return Err(Failure::field(&pointer, "this call has a result above already"));
        }
        let chars = one.output.chars().count();
        if MAX_OUTPUT_CHARS < chars {
            let pointer = format!("/results/{index}/output");
            let detail = format!("it has {chars} characters; at most {MAX_OUTPUT_CHARS} are allowed");
            return Err(Failure::field(&pointer, detail));
        }
        results.push(ClientResult {
            call_id: one.tool_call_id,
            output: one.output,
            is_error: one.is_error,
        });
    }
    Ok(results)
}
