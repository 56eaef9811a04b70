//! Processes that a session runs in the background: which there are, what they
//! print, what is typed to them, and their end.

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
use crate::model::background::{BackgroundProcess, BackgroundRecord};
use crate::model::id::{BackgroundId, SessionId};
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::tool::process_output;
use crate::turn::requests::Typed;

/// Typed at once; a terminal takes no more in one line either.
const MAX_TYPED_BYTES: usize = 64 << 10;
const MAX_LINES: usize = 2_000;
const LINES: usize = 200;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_processes))
        .routes(routes!(get_process))
        .routes(routes!(get_process_output))
        .routes(routes!(type_to_process))
        .routes(routes!(kill_process))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ProcessFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

/// List a session's processes in the background, newest first.
///
/// Those that run, and of the others the last ones. One whose server stopped is
/// `lost`: it ended with it.
#[utoipa::path(get, path = "/v1/sessions/{id}/processes", tag = "processes",
    params(("id" = SessionId, Path), ProcessFilter),
    responses((status = 200, description = "A page of processes.", body = Page<BackgroundProcess>)))]
pub(super) async fn list_processes(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    Query(filter): Query<ProcessFilter>,
) -> Result<Json<Page<BackgroundProcess>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let limit = filter.limit;
    let list = state.list(&caller, &json!(["processes", id]))?;
    let before: Option<BackgroundId> = list.after(filter.after.as_deref())?;
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            if rows.session_record(id).await?.is_none() {
                return Ok(None);
            }
            rows.backgrounds(id, before, limit.and_one()).await.map(Some)
        })
    });
    let found = found.await?.ok_or_else(|| Failure::not_found("session"))?;
    let page = list.cut(found, limit, |process| process.id);
    Ok(Json(page.map(|process| process.view())))
}

/// One process.
#[utoipa::path(get, path = "/v1/sessions/{id}/processes/{process_id}", tag = "processes",
    params(("id" = SessionId, Path), ("process_id" = BackgroundId, Path)),
    responses((status = 200, description = "The process.", body = BackgroundProcess)))]
pub(super) async fn get_process(
    caller: Caller,
    InPath((session, id)): InPath<(SessionId, BackgroundId)>,
) -> Result<Json<BackgroundProcess>, Failure> {
    caller.require(Scope::SessionsRead)?;
    Ok(Json(found(&caller, session, id).await?.view()))
}

async fn found(caller: &Caller, session: SessionId, id: BackgroundId) -> Result<BackgroundRecord, Failure> {
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            if rows.session_record(session).await?.is_none() {
                return Ok(None);
            }
            rows.background(session, id).await
        })
    });
    found.await?.ok_or_else(|| Failure::not_found("process"))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OutputFilter {
    /// The first line, from 1. Left out: the last lines.
    #[param(minimum = 1)]
    offset: Option<usize>,
    /// Lines, 200 where nothing is said.
    #[param(minimum = 1, maximum = 2000)]
    limit: Option<usize>,
}

/// What a process has printed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProcessOutput {
    process: BackgroundProcess,
    /// Lines joined, without escapes of terminals, secrets masked.
    output: String,
    /// The number of the first line of `output`, from 1.
    first_line: usize,
    /// Lines that were printed; the first ones of a long output are not kept.
    total_lines: usize,
    /// The output is kept: the process runs on this server, or ended here less
    /// than half an hour ago.
    available: bool,
}

/// What a process has printed, by lines.
#[utoipa::path(get, path = "/v1/sessions/{id}/processes/{process_id}/output", tag = "processes",
    params(("id" = SessionId, Path), ("process_id" = BackgroundId, Path), OutputFilter),
    responses((status = 200, description = "Its output.", body = ProcessOutput)))]
pub(super) async fn get_process_output(
    State(state): State<ApiState>,
    caller: Caller,
    InPath((session, id)): InPath<(SessionId, BackgroundId)>,
    Query(filter): Query<OutputFilter>,
) -> Result<Json<ProcessOutput>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let limit = filter.limit.unwrap_or(LINES);
    if !(1..=MAX_LINES).contains(&limit) {
        return Err(Failure::field("limit", format!("expected 1 to {MAX_LINES}")));
    }
    if filter.offset == Some(0) {
        return Err(Failure::field("offset", "lines are counted from 1"));
    }
    let record = found(&caller, session, id).await?;
    let entry = state.engine.host().processes().get(record.tenant_id, session, id);
    let Some(seen) = entry.map(|entry| entry.snapshot()) else {
        return Ok(Json(ProcessOutput {
            process: record.view(),
            output: String::new(),
            first_line: 1,
            total_lines: 0,
            available: false,
        }));
    };
    let (output, total_lines, first_line) = process_output(&seen, filter.offset.unwrap_or(0), limit);
    Ok(Json(ProcessOutput {
        process: seen.record.view(),
        output,
        first_line,
        total_lines,
        available: true,
    }))
}

/// What to type.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessInput {
    #[schema(max_length = 65536, example = "y")]
    data: String,
    /// Press Enter behind it.
    #[serde(default)]
    #[schema(required = false)]
    submit: bool,
    /// End the input behind it.
    #[serde(default)]
    #[schema(required = false)]
    close: bool,
}

/// Type to a process.
///
/// Only one with a terminal (`pty`) takes input. Under an `Idempotency-Key` it is
/// typed once at most.
#[utoipa::path(post, path = "/v1/sessions/{id}/processes/{process_id}/input", tag = "processes",
    params(("id" = SessionId, Path), ("process_id" = BackgroundId, Path)), request_body = ProcessInput,
    responses(
        (status = 200, description = "What was typed.", body = Typed),
        (status = 409, description = "It takes no input, or has ended.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn type_to_process(
    State(state): State<ApiState>,
    caller: Caller,
    InPath((session, id)): InPath<(SessionId, BackgroundId)>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (input, once): (ProcessInput, _) = payload.json_once(&caller.principal).await?;
    if MAX_TYPED_BYTES < input.data.len() {
        return Err(Failure::field(
            "/data",
            format!("expected at most {MAX_TYPED_BYTES} bytes"),
        ));
    }
    let end = if input.submit { "\n" } else { "" };
    let close = if input.close { "\u{4}" } else { "" };
    let text = format!("{}{end}{close}", input.data);
    if text.is_empty() {
        return Err(Failure::field("/data", "there is nothing to type"));
    }
    let (engine, scope) = (state.engine.clone(), caller.scope.once(once));
    let typed = state.finish_once(async move { engine.type_to_process(&scope, session, id, text).await });
    Ok(typed.await?.answer(|typed: Typed| Json(typed).into_response()))
}

/// End a process and all that it started.
///
/// It is asked to end, and ended two seconds later. One that has ended stays as
/// it is.
#[utoipa::path(post, path = "/v1/sessions/{id}/processes/{process_id}/kill", tag = "processes",
    params(("id" = SessionId, Path), ("process_id" = BackgroundId, Path)),
    responses((status = 200, description = "The process.", body = BackgroundProcess)))]
pub(super) async fn kill_process(
    State(state): State<ApiState>,
    caller: Caller,
    InPath((session, id)): InPath<(SessionId, BackgroundId)>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let once = payload.once(&caller.principal).await?;
    let (engine, scope) = (state.engine.clone(), caller.scope.once(once));
    let killed = state.finish_once(async move { engine.kill_process(&scope, session, id).await });
    Ok(killed
        .await?
        .answer(|process: BackgroundProcess| Json(process).into_response()))
}
