//! Jobs: prompts that run by themselves. Made, changed, paused, triggered, and
//! what came of their runs.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use serde::{Deserialize, Deserializer};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::model::id::{JobId, SessionId};
use crate::model::job::{Job, JobCeiling, JobChanges, JobRun, JobState, Missed, NewJob};
use crate::model::job_task::{Deliver, JobTask, TaskChanges};
use crate::model::principal::Scope;
use crate::store::Once;
use crate::turn::requests::JobChange;

use super::bounds;

const MAX_REASON_CHARS: usize = 500;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_jobs, create_job))
        .routes(routes!(get_job, update_job, delete_job))
        .routes(routes!(pause_job))
        .routes(routes!(resume_job))
        .routes(routes!(trigger_job))
        .routes(routes!(list_job_runs))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct JobFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
    state: Option<JobState>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RunFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

/// A job to be made. It needs a prompt or a skill.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"prompt": "Summarise what is new in notes.txt", "schedule": "every 1d"}))]
pub(super) struct JobRequest {
    /// Asked of the model in each run.
    #[serde(default)]
    #[schema(max_length = 20_000, example = "Summarise what is new in notes.txt")]
    prompt: String,
    /// When it runs: `30m`, `2h` or `1d` from now, once; `every 30m`; five cron
    /// fields such as `0 9 * * *`; or a time such as `2030-02-03T14:00`, once.
    #[schema(example = "every 1d")]
    schedule: String,
    /// The zone of cron fields and of times without an offset: `UTC` where
    /// nothing is said.
    time_zone: Option<String>,
    /// The beginning of the prompt where nothing is said.
    #[schema(max_length = 200)]
    name: Option<String>,
    #[serde(default)]
    #[schema(max_items = 32)]
    skills: Vec<String>,
    model: Option<String>,
    /// Toolsets of the runs, in place of the server's own.
    #[schema(max_items = 32)]
    toolsets: Option<Vec<String>>,
    /// Jobs, by id or name, whose last answers a run begins with.
    #[serde(default)]
    #[schema(max_items = 8)]
    context_from: Vec<String>,
    /// Directory that the run's commands begin in, inside its workspace.
    #[schema(max_length = 4096)]
    workdir: Option<String>,
    /// A script in the tenant's folder of scripts (`scripts/{tenant}` in the data
    /// directory), with which each run begins.
    #[schema(max_length = 4096)]
    script: Option<String>,
    /// What the script prints is the answer of the run; no model is asked.
    #[serde(default)]
    no_agent: bool,
    #[serde(default)]
    deliver: Deliver,
    /// The session that `deliver: origin` tells the answers of the runs.
    origin_session_id: Option<SessionId>,
    #[serde(default)]
    missed: Missed,
    /// How often it runs in all.
    #[schema(minimum = 1)]
    repeat: Option<u32>,
}

/// What is absent stays as it is; `null` removes what can be absent.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct JobPatch {
    #[schema(max_length = 20_000)]
    prompt: Option<String>,
    /// A new schedule begins anew, and the count of runs with it.
    schedule: Option<String>,
    time_zone: Option<String>,
    #[schema(max_length = 200)]
    name: Option<String>,
    #[schema(max_items = 32)]
    skills: Option<Vec<String>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    model: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>, max_items = 32)]
    toolsets: Option<Option<Vec<String>>>,
    #[schema(max_items = 8)]
    context_from: Option<Vec<String>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>, max_length = 4096)]
    workdir: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>, max_length = 4096)]
    script: Option<Option<String>>,
    no_agent: Option<bool>,
    deliver: Option<Deliver>,
    missed: Option<Missed>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    repeat: Option<Option<u32>>,
}

/// A field that is there, whatever it holds; `null` is a value of its own.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PauseRequest {
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// List jobs, newest first.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs",
    params(JobFilter),
    responses((status = 200, description = "A page of jobs.", body = Page<Job>)))]
pub(super) async fn list_jobs(
    State(state): State<ApiState>,
    caller: Caller,
    Query(filter): Query<JobFilter>,
) -> Result<Json<Page<Job>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["jobs", filter.state]))?;
    let before = list.after(filter.after.as_deref())?;
    let JobFilter { limit, state, .. } = filter;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.jobs(state, before, limit.and_one()).await }));
    Ok(Json(list.cut(found.await?, limit, |job| job.id)))
}

/// Make a job. Each run is a turn in a session of its own, and may do what the
/// caller may.
#[utoipa::path(post, path = "/v1/jobs", tag = "jobs", request_body = JobRequest,
    responses((status = 201, description = "The job.", body = Job,
        headers(("Location" = String, description = "Path of the job.")))))]
pub(super) async fn create_job(
    State(state): State<ApiState>,
    caller: Caller,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (request, once): (JobRequest, _) = payload.json_once(&caller.principal).await?;
    bounds::model(&request.model)?;
    let new = NewJob {
        name: request.name,
        task: JobTask {
            prompt: request.prompt,
            skills: request.skills,
            model: request.model,
            toolsets: request.toolsets,
            context_from: request.context_from,
            deliver: request.deliver,
            workdir: request.workdir,
            script: request.script,
            no_agent: request.no_agent,
        },
        origin: request.origin_session_id,
        schedule: request.schedule,
        time_zone: request.time_zone,
        missed: request.missed,
        repeat: request.repeat,
        ceiling: JobCeiling {
            key: caller.principal.key,
            tools: caller.principal.tools.clone(),
        },
    };
    let (engine, user) = (state.engine.clone(), caller.principal.user.clone());
    let scope = caller.scope.once(once);
    let made = state.finish_once(async move { engine.create_job(&scope, &user, new).await });
    Ok(made.await?.answer(|job: Job| {
        let location = [(LOCATION, format!("/v1/jobs/{}", job.id))];
        (StatusCode::CREATED, location, Json(job)).into_response()
    }))
}

/// Read a job.
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = JobId, Path)),
    responses((status = 200, description = "The job.", body = Job)))]
pub(super) async fn get_job(caller: Caller, InPath(id): InPath<JobId>) -> Result<Json<Job>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.job(id).await }));
    found.await?.map(Json).ok_or_else(|| Failure::not_found("job"))
}

/// Change a job. A run that is under way goes on as it began.
#[utoipa::path(patch, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = JobId, Path)), request_body = JobPatch,
    responses((status = 200, description = "The job as it is now.", body = Job)))]
pub(super) async fn update_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<JobId>,
    payload: Payload,
) -> Result<Json<Job>, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let patch: JobPatch = payload.json().await?;
    bounds::model(&patch.model.clone().flatten())?;
    let changes = JobChanges {
        name: patch.name,
        task: TaskChanges {
            prompt: patch.prompt,
            skills: patch.skills,
            model: patch.model,
            toolsets: patch.toolsets,
            context_from: patch.context_from,
            deliver: patch.deliver,
            workdir: patch.workdir,
            script: patch.script,
            no_agent: patch.no_agent,
        },
        schedule: patch.schedule,
        time_zone: patch.time_zone,
        missed: patch.missed,
        repeat: patch.repeat,
    };
    let (engine, scope) = (state.engine.clone(), caller.scope);
    let changed = state.finish(async move {
        engine
            .change_job(&scope, id, JobChange::Update(Box::new(changes)))
            .await
    });
    changed.await.map(Json)
}

/// Remove a job with the record of its runs. Their sessions stay.
#[utoipa::path(delete, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = JobId, Path)),
    responses((status = 204, description = "The job is gone.")))]
pub(super) async fn delete_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<JobId>,
) -> Result<StatusCode, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (engine, scope) = (state.engine.clone(), caller.scope);
    let deleted = state.finish(async move { engine.delete_job(&scope, id).await });
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stop a job until it is resumed. A run that is under way goes on.
#[utoipa::path(post, path = "/v1/jobs/{id}/pause", tag = "jobs", params(("id" = JobId, Path)),
    request_body = PauseRequest,
    responses((status = 200, description = "The job as it is now.", body = Job)))]
pub(super) async fn pause_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<JobId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let (request, once): (PauseRequest, _) = payload.json_once(&caller.principal).await?;
    let long = |reason: &String| MAX_REASON_CHARS < reason.chars().count();
    if request.reason.as_ref().is_some_and(long) {
        let detail = format!("it is longer than {MAX_REASON_CHARS} characters");
        return Err(Failure::field("/reason", detail));
    }
    changed(&state, caller, once, (id, JobChange::Pause(request.reason))).await
}

/// Changes a job once for its `Idempotency-Key`, and shows it.
async fn changed(
    state: &ApiState,
    caller: Caller,
    once: Option<Once>,
    (id, change): (JobId, JobChange),
) -> Result<Response, Failure> {
    let (engine, scope) = (state.engine.clone(), caller.scope.once(once));
    let changed = state.finish_once(async move { engine.change_job(&scope, id, change).await });
    Ok(changed.await?.answer(|job: Job| Json(job).into_response()))
}

/// Let a paused job go on. What passed meanwhile is not made up for.
#[utoipa::path(post, path = "/v1/jobs/{id}/resume", tag = "jobs", params(("id" = JobId, Path)),
    responses((status = 200, description = "The job as it is now.", body = Job)))]
pub(super) async fn resume_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<JobId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let once = payload.once(&caller.principal).await?;
    changed(&state, caller, once, (id, JobChange::Resume)).await
}

/// Let a job run now, whatever its schedule says; that stays as it is.
#[utoipa::path(post, path = "/v1/jobs/{id}/trigger", tag = "jobs", params(("id" = JobId, Path)),
    responses((status = 200, description = "The job; the run is in its history in a moment.", body = Job)))]
pub(super) async fn trigger_job(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<JobId>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let once = payload.once(&caller.principal).await?;
    changed(&state, caller, once, (id, JobChange::Trigger(None))).await
}

/// List the runs of a job, newest first.
#[utoipa::path(get, path = "/v1/jobs/{id}/runs", tag = "jobs", params(("id" = JobId, Path), RunFilter),
    responses((status = 200, description = "A page of runs.", body = Page<JobRun>)))]
pub(super) async fn list_job_runs(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<JobId>,
    Query(filter): Query<RunFilter>,
) -> Result<Json<Page<JobRun>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["job_runs", id]))?;
    let before = list.after(filter.after.as_deref())?;
    let limit = filter.limit;
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            match rows.job(id).await? {
                Some(_) => rows.job_runs(id, before, limit.and_one()).await.map(Some),
                None => Ok(None),
            }
        })
    });
    let runs = found.await?.ok_or_else(|| Failure::not_found("job"))?;
    Ok(Json(list.cut(runs, limit, |run| run.id)))
}
