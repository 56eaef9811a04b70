//! Jobs in the original's form, over the jobs of the native surface: made, listed,
//! changed, paused, resumed, run now, removed. Errors are bare texts, as clients
//! of the original print them.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::job_request::HermesJob;
use super::job_shape::{job, text};
use crate::api::caller::Caller;
use crate::api::compat::conversation;
use crate::api::compat::loose::is_yes;
use crate::api::failure::Failure;
use crate::api::path::{FromSegments, InPath};
use crate::api::payload::Payload;
use crate::api::query::Loose;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::id::{JobId, SessionId};
use crate::model::job::{Job, JobCeiling, JobChanges, JobState};
use crate::model::principal::Scope;
use crate::store::Once;
use crate::turn::requests::JobChange;

/// The list has no pages in the original; a user has at most a tenth of these.
const MOST_LISTED: u32 = 1_000;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(hermes_list_jobs, hermes_create_job))
        .routes(routes!(hermes_get_job, hermes_update_job, hermes_delete_job))
        .routes(routes!(hermes_pause_job))
        .routes(routes!(hermes_resume_job))
        .routes(routes!(hermes_run_job))
}

/// A job in the path. What is no id of one names nothing.
pub(super) struct InJob(JobId);

impl FromSegments for InJob {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        let id = segments.first().and_then(|text| text.parse().ok());
        id.map(Self).ok_or_else(|| Failure::not_found("job"))
    }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct JobQuery {
    /// Paused and finished jobs as well.
    #[param(value_type = Option<bool>)]
    include_disabled: Option<String>,
}

/// What a request says beside its path.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct HermesJobAction {
    /// Of a pause.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    reason: Value,
    /// Of a run: what this one asks, in place of what the job asks.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    prompt: Value,
}

fn shown(state: &ApiState, one: &Job) -> Json<Value> {
    Json(json!({"job": job(one, &state.engine.settings().model)}))
}

/// List jobs, newest first.
#[utoipa::path(get, path = "/api/jobs", tag = "hermes jobs", params(JobQuery),
    responses((status = 200, description = "`jobs`.", body = Value)))]
pub(super) async fn hermes_list_jobs(
    State(state): State<ApiState>,
    caller: Caller,
    Loose(query): Loose<JobQuery>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let only = match is_yes(query.include_disabled.as_deref()) {
        true => None,
        false => Some(JobState::Active),
    };
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.jobs(only, None, MOST_LISTED).await }));
    let model = &state.engine.settings().model;
    let jobs: Vec<Value> = read.await?.iter().map(|one| job(one, model)).collect();
    Ok(Json(json!({"jobs": jobs})))
}

/// The session of that name; one that is not there is no place to tell anything.
async fn session(caller: &Caller, name: &str) -> Result<SessionId, Failure> {
    let found = conversation::named(caller, name).await?;
    found.ok_or_else(|| Failure::field("/origin_session_id", "there is no such session"))
}

/// Make a job.
#[utoipa::path(post, path = "/api/jobs", tag = "hermes jobs", request_body = HermesJob,
    responses((status = 200, description = "`job`.", body = Value)))]
pub(super) async fn hermes_create_job(
    State(state): State<ApiState>,
    caller: Caller,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (request, once): (HermesJob, _) = payload.loose_once(&caller.principal).await?;
    let ceiling = JobCeiling {
        key: caller.principal.key,
        tools: caller.principal.tools.clone(),
    };
    let mut new = request.made(ceiling)?;
    if let Some(name) = request.origin()? {
        new.origin = Some(session(&caller, &name).await?);
    }
    let (engine, user) = (state.engine.clone(), caller.principal.user.clone());
    let scope = caller.scope.once(once);
    let made = state.finish_once(async move { engine.create_job(&scope, &user, new).await });
    Ok(made.await?.answer(|job: Job| shown(&state, &job).into_response()))
}

/// Read a job.
#[utoipa::path(get, path = "/api/jobs/{job_id}", tag = "hermes jobs", params(("job_id" = String, Path)),
    responses((status = 200, description = "`job`.", body = Value)))]
pub(super) async fn hermes_get_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InJob(id)): InPath<InJob>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.job(id).await }));
    let found = read.await?.ok_or_else(|| Failure::not_found("job"))?;
    Ok(shown(&state, &found))
}

/// Change a job.
#[utoipa::path(patch, path = "/api/jobs/{job_id}", tag = "hermes jobs", params(("job_id" = String, Path)),
    request_body = HermesJob,
    responses((status = 200, description = "`job`.", body = Value)))]
pub(super) async fn hermes_update_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InJob(id)): InPath<InJob>,
    payload: Payload,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (request, _): (HermesJob, _) = payload.loose_once(&caller.principal).await?;
    let (changes, enabled) = (request.changes()?, request.is_enabled()?);
    let changes = [
        (changes != JobChanges::default()).then(|| JobChange::Update(Box::new(changes))),
        enabled.map(|enabled| {
            if enabled {
                JobChange::Resume
            } else {
                JobChange::Pause(None)
            }
        }),
    ];
    let mut last = None;
    for change in changes.into_iter().flatten() {
        let (engine, scope) = (state.engine.clone(), caller.scope.clone());
        last = Some(
            state
                .finish(async move { engine.change_job(&scope, id, change).await })
                .await?,
        );
    }
    match last {
        Some(changed) => Ok(shown(&state, &changed)),
        None => Err(Failure::field("", "it names no field that can be changed")),
    }
}

/// Remove a job.
#[utoipa::path(delete, path = "/api/jobs/{job_id}", tag = "hermes jobs", params(("job_id" = String, Path)),
    responses((status = 200, description = "`ok`.", body = Value)))]
pub(super) async fn hermes_delete_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InJob(id)): InPath<InJob>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (engine, scope) = (state.engine.clone(), caller.scope);
    state.finish(async move { engine.delete_job(&scope, id).await }).await?;
    Ok(Json(json!({"ok": true})))
}

/// Stop a job until it is resumed.
#[utoipa::path(post, path = "/api/jobs/{job_id}/pause", tag = "hermes jobs", params(("job_id" = String, Path)),
    request_body = HermesJobAction,
    responses((status = 200, description = "`job`.", body = Value)))]
pub(super) async fn hermes_pause_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InJob(id)): InPath<InJob>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (action, once): (HermesJobAction, _) = payload.loose_once(&caller.principal).await?;
    let reason = text(&action.reason, "reason")?.map(|text| crate::base::text::first_chars(&text, 500).to_owned());
    changed(&state, caller, once, (id, JobChange::Pause(reason))).await
}

/// Let a paused job go on.
#[utoipa::path(post, path = "/api/jobs/{job_id}/resume", tag = "hermes jobs", params(("job_id" = String, Path)),
    responses((status = 200, description = "`job`.", body = Value)))]
pub(super) async fn hermes_resume_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InJob(id)): InPath<InJob>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let once = payload.once(&caller.principal).await?;
    changed(&state, caller, once, (id, JobChange::Resume)).await
}

/// Let a job run now, whatever its schedule says.
#[utoipa::path(post, path = "/api/jobs/{job_id}/run", tag = "hermes jobs", params(("job_id" = String, Path)),
    request_body = HermesJobAction,
    responses((status = 200, description = "`job`.", body = Value)))]
pub(super) async fn hermes_run_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InJob(id)): InPath<InJob>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (action, once): (HermesJobAction, _) = payload.loose_once(&caller.principal).await?;
    let prompt = text(&action.prompt, "prompt")?.filter(|prompt| !prompt.trim().is_empty());
    changed(&state, caller, once, (id, JobChange::Trigger(prompt))).await
}

async fn changed(
    state: &ApiState,
    caller: Caller,
    once: Option<Once>,
    (id, change): (JobId, JobChange),
) -> Result<Response, Failure> {
    let (engine, scope) = (state.engine.clone(), caller.scope.once(once));
    let changed = state.finish_once(async move { engine.change_job(&scope, id, change).await });
    Ok(changed.await?.answer(|job: Job| shown(state, &job).into_response()))
}
