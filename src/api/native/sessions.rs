//! Sessions: made, listed, read, changed, deleted.

use crate::api::surface::{Surface, routes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::api::caller::Caller;
use crate::api::conditions::{self, ConditionHeaders};
use crate::api::failure::Failure;
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::model::budget::SessionBudget;
use crate::model::client_tool::ClientTool;
use crate::model::id::SessionId;
use crate::model::policy::is_name;
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::model::sampling::{ReasoningEffort, ResponseFormat, Sampling, SamplingChanges, ToolChoice};
use crate::model::session::{ApprovalMode, ApprovalPolicy, EnvironmentSpec, Metadata, Session, ToolsetSelection};
use crate::store::sessions::SessionPatch;
use crate::turn::requests::CreateSession;

use super::session_list::{__path_list_sessions, list_sessions};
use super::{answers, bounds};

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(create_session, list_sessions))
        .routes(routes!(get_session, update_session, delete_session))
}

/// A session to be made; everything has a default.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NewSession {
    title: Option<String>,
    /// A name of your own, at most 256 characters, unique among the user's sessions.
    #[schema(max_length = 256)]
    external_id: Option<String>,
    /// Answers the session's turns; the server's own where nothing is said.
    model: Option<String>,
    /// Told to the model before everything else.
    instructions: Option<String>,
    /// The toolset to begin with.
    preset: Option<String>,
    toolsets: ToolsetSelection,
    environment: EnvironmentSpec,
    approvals: ApprovalPolicy,
    /// How the model answers where a turn says nothing else.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Of one answer of the model, reasoning included.
    #[schema(minimum = 1)]
    max_output_tokens: Option<u32>,
    reasoning_effort: Option<ReasoningEffort>,
    tool_choice: Option<ToolChoice>,
    response_format: Option<ResponseFormat>,
    /// Tools that you carry out: a call to one waits for its result at
    /// `POST /v1/sessions/{id}/tool-results`.
    #[schema(max_items = 128)]
    tools: Vec<ClientTool>,
    budget: SessionBudget,
    #[schema(value_type = Object)]
    metadata: Metadata,
}

/// What is absent stays as it is; `null` removes what can be absent.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SessionChanges {
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    title: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>, max_length = 256)]
    external_id: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    model: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    instructions: Option<Option<String>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = String)]
    preset: Option<String>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = ToolsetSelection)]
    toolsets: Option<ToolsetSelection>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = ApprovalPolicy)]
    approvals: Option<ApprovalPolicy>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 2)]
    temperature: Option<Option<f64>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    top_p: Option<Option<f64>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    max_output_tokens: Option<Option<u32>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<ReasoningEffort>)]
    reasoning_effort: Option<Option<ReasoningEffort>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<ToolChoice>)]
    tool_choice: Option<Option<ToolChoice>>,
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<ResponseFormat>)]
    response_format: Option<Option<ResponseFormat>>,
    /// Replaces all of them.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Vec<ClientTool>, max_items = 128)]
    tools: Option<Vec<ClientTool>>,
    /// Replaces the whole budget, for the next step of a turn that runs too.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = SessionBudget)]
    budget: Option<SessionBudget>,
    /// Replaces the whole metadata.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Object)]
    metadata: Option<Metadata>,
}

/// A field that is there, whatever it holds; `null` is a value of its own.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// What a session that is made by another surface says; all else has its
/// default.
#[derive(Debug, Default)]
pub(in crate::api) struct Plain {
    pub title: Option<String>,
    pub external_id: Option<String>,
    pub instructions: Option<String>,
    pub metadata: Metadata,
}

impl Plain {
    pub(in crate::api) fn checked(self, user_id: String, toolsets: &[String]) -> Result<CreateSession, Failure> {
        let new = NewSession {
            title: self.title,
            external_id: self.external_id,
            instructions: self.instructions,
            metadata: self.metadata,
            ..NewSession::default()
        };
        new.checked(user_id, toolsets)
    }
}

impl NewSession {
    fn checked(self, user_id: String, toolsets: &[String]) -> Result<CreateSession, Failure> {
        bounds::session_texts(&self.title, &self.external_id, &self.model, &self.instructions)?;
        bounds::environment(&self.environment)?;
        bounds::metadata(&self.metadata)?;
        bounds::toolsets(&self.toolsets)?;
        bounds::tools(&self.tools)?;
        bounds::budget(&self.budget)?;
        let sampling = Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            max_output_tokens: self.max_output_tokens,
            reasoning_effort: self.reasoning_effort,
            tool_choice: self.tool_choice,
            response_format: self.response_format,
        };
        answers::check(&sampling)?;
        let mut selection = self.toolsets;
        let preset = match (self.preset, toolsets.split_first()) {
            (Some(preset), _) => preset,
            (None, Some((first, rest))) => {
                if !rest.is_empty() && selection.enabled.is_none() {
                    selection.enabled = Some(rest.to_vec());
                }
                first.clone()
            }
            (None, None) => "hermes-api-server".to_owned(),
        };
        Ok(CreateSession {
            user_id,
            external_id: self.external_id,
            title: self.title,
            model: self.model,
            instructions: self.instructions,
            preset,
            toolsets: selection,
            environment: self.environment,
            approvals: self.approvals,
            sampling,
            tools: self.tools,
            budget: self.budget,
            metadata: self.metadata,
        })
    }
}

impl SessionChanges {
    fn checked(self) -> Result<SessionPatch, Failure> {
        let flat = |field: &Option<Option<String>>| field.clone().flatten();
        bounds::session_texts(
            &flat(&self.title),
            &flat(&self.external_id),
            &flat(&self.model),
            &flat(&self.instructions),
        )?;
        if let Some(metadata) = &self.metadata {
            bounds::metadata(metadata)?;
        }
        if let Some(toolsets) = &self.toolsets {
            bounds::toolsets(toolsets)?;
        }
        bounds::tools(self.tools.as_deref().unwrap_or_default())?;
        if let Some(budget) = &self.budget {
            bounds::budget(budget)?;
        }
        let sampling = SamplingChanges {
            temperature: self.temperature,
            top_p: self.top_p,
            max_output_tokens: self.max_output_tokens,
            reasoning_effort: self.reasoning_effort,
            tool_choice: self.tool_choice,
            response_format: self.response_format,
        };
        answers::check(&sampling.clone().applied(&Sampling::default()))?;
        Ok(SessionPatch {
            sampling,
            tools: self.tools,
            title: self.title,
            external_id: self.external_id,
            model: self.model,
            instructions: self.instructions,
            preset: self.preset,
            toolsets: self.toolsets,
            approvals: self.approvals,
            budget: self.budget,
            metadata: self.metadata,
        })
    }
}

/// Whoever has nobody asked decides every approval beforehand, which takes the
/// right to decide.
pub(super) fn may_settle(caller: &Caller, approvals: &ApprovalPolicy) -> Result<(), Failure> {
    if let Some(name) = approvals.policy.as_deref().filter(|name| !is_name(name)) {
        let detail = format!("`{}` is no name of a policy", name.escape_debug());
        return Err(Failure::field("/approvals/policy", detail));
    }
    match approvals.mode {
        Some(ApprovalMode::Off | ApprovalMode::Smart) => caller.require(Scope::ApprovalsDecide),
        Some(ApprovalMode::Manual) | None => Ok(()),
    }
}

/// Make a session.
#[utoipa::path(post, path = "/v1/sessions", tag = "sessions", request_body = NewSession,
    responses(
        (status = 201, description = "The session.", body = Session,
            headers(("Location" = String, description = "Path of the session."),
                ("ETag" = String, description = "Names this version of the session."))),
        (status = 409, description = "The `external_id` is in use.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn create_session(
    State(state): State<ApiState>,
    caller: Caller,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let (new, once): (NewSession, _) = payload.json_once(&caller.principal).await?;
    may_settle(&caller, &new.approvals)?;
    let new = new.checked(caller.principal.user.clone(), &state.toolsets)?;
    let engine = state.engine.clone();
    let scope = caller.scope.once(once);
    let created = state.finish_once(async move { engine.create_session(&scope, new).await });
    Ok(created.await?.answer(|session| {
        let location = [(LOCATION, format!("/v1/sessions/{}", session.id))];
        (StatusCode::CREATED, location, conditions::tagged(session)).into_response()
    }))
}

/// Read a session.
#[utoipa::path(get, path = "/v1/sessions/{id}", tag = "sessions", params(("id" = SessionId, Path), ConditionHeaders),
    responses((status = 200, description = "The session.", body = Session)))]
pub(super) async fn get_session(
    caller: Caller,
    InPath(id): InPath<SessionId>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let condition = conditions::of(&headers)?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.session(id).await }));
    let session = found.await?.ok_or_else(|| Failure::not_found("session"))?;
    conditions::read(session, &condition)
}

/// Change a session. A turn that runs goes on as it began.
///
/// `If-Match` compares what clients set, so that a turn which runs meanwhile
/// does not get in the way.
#[utoipa::path(patch, path = "/v1/sessions/{id}", tag = "sessions",
    params(("id" = SessionId, Path), ConditionHeaders),
    request_body = SessionChanges,
    responses(
        (status = 200, description = "The session as it is now.", body = Session),
        (status = 409, description = "The `external_id` is in use.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn update_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    let caller = caller.only_if(&headers)?;
    let changes: SessionChanges = payload.json().await?;
    if let Some(approvals) = &changes.approvals {
        may_settle(&caller, approvals)?;
    }
    let patch = changes.checked()?;
    let engine = state.engine.clone();
    let scope = caller.scope;
    let changed = state.finish(async move { engine.patch_session(&scope, id, patch).await });
    changed.await.map(conditions::tagged)
}

/// Delete a session with everything in it. What runs is cancelled.
///
/// `If-Match` compares the whole: what has happened since the tag was read would
/// go unseen.
#[utoipa::path(delete, path = "/v1/sessions/{id}", tag = "sessions",
    params(("id" = SessionId, Path), ConditionHeaders),
    responses((status = 204, description = "The session is gone.")))]
pub(super) async fn delete_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    headers: HeaderMap,
) -> Result<StatusCode, Failure> {
    caller.require(Scope::SessionsWrite)?;
    let scope = caller.only_if(&headers)?.scope;
    let engine = state.engine.clone();
    let deleted = state.finish(async move { engine.delete_session(&scope, id).await });
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}
