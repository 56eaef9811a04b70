//! Tools and toolsets: all that this server has, and what one session gets.
//! The latter is the value that a call is checked against when it starts.

use std::sync::Arc;

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::listing::Listing;
use crate::api::caller::Caller;
use crate::api::compat::conversation::API_SERVER;
use crate::api::failure::Failure;
use crate::api::path::{FromSegments, InPath};
use crate::api::state::ApiState;
use crate::model::id::SessionId;
use crate::model::principal::Scope;
use crate::tool::registry::{Registry, ToolView, ToolsetView};
use crate::tool::session_tools::{Absent, SessionTools};

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_tools))
        .routes(routes!(get_tool))
        .routes(routes!(list_toolsets))
        .routes(routes!(get_toolset))
        .routes(routes!(list_session_tools))
}

/// Those that clients of other surfaces use as well.
pub(in crate::api) fn toolset_routes() -> Surface {
    Surface::new().routes(routes!(list_toolsets))
}

/// The tools of a session.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OfferedTools {
    /// What the model is told of and may call, sorted by name.
    offered: Vec<OfferedTool>,
    /// What the session's toolsets name beyond that, and why it is not offered.
    absent: Vec<Absent>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OfferedTool {
    name: String,
    toolset: String,
    description: String,
    /// JSON Schema of the arguments.
    #[schema(value_type = Object)]
    parameters: serde_json::Value,
    /// The model is not told of it and finds it by `tool_search`.
    deferred: bool,
}

/// List every tool of this server, sorted by name.
#[utoipa::path(get, path = "/v1/tools", tag = "tools",
    responses((status = 200, description = "All tools.", body = Listing<ToolView>)))]
pub(super) async fn list_tools(
    State(state): State<ApiState>,
    caller: Caller,
) -> Result<Json<Listing<ToolView>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    Ok(Json(Listing::of(tool_views(&state, &caller).await)))
}

/// Read a tool.
#[utoipa::path(get, path = "/v1/tools/{name}", tag = "tools",
    params(("name" = String, Path, description = "The tool's name.")),
    responses((status = 200, description = "The tool.", body = ToolView)))]
pub(super) async fn get_tool(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(Name(name)): InPath<Name>,
) -> Result<Json<ToolView>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let mut views = tool_views(&state, &caller).await.into_iter();
    let found = views.find(|view| view.name == name);
    found.map(Json).ok_or_else(|| Failure::not_found("tool"))
}

/// List every toolset of this server, sorted by name.
#[utoipa::path(get, path = "/v1/toolsets", tag = "tools",
    responses((status = 200, description = "All toolsets.", body = Listing<ToolsetView>)))]
pub(super) async fn list_toolsets(
    State(state): State<ApiState>,
    caller: Caller,
) -> Result<Json<Listing<ToolsetView>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let all = Listing::of(toolset_views(&state, &caller).await);
    Ok(Json(all.of_platform(API_SERVER)))
}

/// Read a toolset.
#[utoipa::path(get, path = "/v1/toolsets/{name}", tag = "tools",
    params(("name" = String, Path, description = "The toolset's name.")),
    responses((status = 200, description = "The toolset.", body = ToolsetView)))]
pub(super) async fn get_toolset(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(Name(name)): InPath<Name>,
) -> Result<Json<ToolsetView>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let mut views = toolset_views(&state, &caller).await.into_iter();
    let found = views.find(|view| view.info.name == name);
    found.map(Json).ok_or_else(|| Failure::not_found("toolset"))
}

/// List the tools that a turn of the session would get from this caller.
#[utoipa::path(get, path = "/v1/sessions/{id}/tools", tag = "tools",
    params(("id" = SessionId, Path)),
    responses((status = 200, description = "Tools that are offered, and why others are not.", body = OfferedTools)))]
pub(super) async fn list_session_tools(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
) -> Result<Json<OfferedTools>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let record = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.session_record(id).await }));
    let record = record.await?.ok_or_else(|| Failure::not_found("session"))?;
    registry(&state, &caller).await;
    let ceiling = caller.principal.tools.as_deref();
    // A toolset that is gone since it was chosen leaves a turn without tools.
    let tools = state.engine.session_tools(&record, ceiling);
    let tools = tools.unwrap_or_else(|_| SessionTools::new(Vec::new(), Vec::new()));
    Ok(Json(OfferedTools::from(&tools)))
}

/// A name in the path; any text is one.
pub(super) struct Name(pub String);

impl FromSegments for Name {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        Ok(Self(segments.first().copied().unwrap_or_default().to_owned()))
    }
}

/// The caller's tools as of now, their checks asked anew where that is due.
pub(super) async fn registry(state: &ApiState, caller: &Caller) -> Arc<Registry> {
    let registry = state.engine.registry(caller.principal.tenant);
    state.engine.tools().refresh(&registry).await;
    registry
}

async fn tool_views(state: &ApiState, caller: &Caller) -> Vec<ToolView> {
    let offers = state.engine.tools().offers(state.engine.host());
    registry(state, caller).await.tool_views(offers)
}

async fn toolset_views(state: &ApiState, caller: &Caller) -> Vec<ToolsetView> {
    let offers = state.engine.tools().offers(state.engine.host());
    registry(state, caller).await.toolset_views(offers, &state.toolsets)
}

impl From<&SessionTools> for OfferedTools {
    fn from(tools: &SessionTools) -> Self {
        let names = tools.names();
        let offered = tools.offered().iter().map(|tool| {
            let (description, parameters) = tool.told(&names);
            OfferedTool {
                name: tool.name().to_owned(),
                toolset: tool.toolset().to_owned(),
                description,
                parameters,
                deferred: tools.is_deferred(tool.name()),
            }
        });
        let brought = tools.clients().iter().map(|tool| OfferedTool {
            name: tool.name().to_owned(),
            toolset: "client".to_owned(),
            description: tool.description().to_owned(),
            parameters: tool.parameters(),
            deferred: false,
        });
        Self {
            offered: offered.chain(brought).collect(),
            absent: tools.absent().to_vec(),
        }
    }
}
