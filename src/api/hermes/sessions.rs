//! Sessions: listed, made, read, changed, deleted.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use super::session_shape::{self, END_REASON, ENDED_AT};
use super::titles;
use crate::api::caller::Caller;
use crate::api::compat::loose::{Flag, is_yes};
use crate::api::compat::question::seconds;
use crate::api::compat::{conversation, headers};
use crate::api::failure::Failure;
use crate::api::native::sessions::Plain;
use crate::api::path::{FromSegments, InPath};
use crate::api::payload::Payload;
use crate::api::query::Loose;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::id::SessionId;
use crate::model::principal::Scope;
use crate::model::problem::ProblemCode;
use crate::model::session::{Metadata, Session};
use crate::store::sessions::SessionPatch;
use crate::store::{Overview, OverviewFilter};

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(hermes_list_sessions, hermes_create_session))
        .routes(routes!(
            hermes_get_session,
            hermes_update_session,
            hermes_delete_session
        ))
}

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;
const MAX_OFFSET: u32 = 1_000_000;

/// A session's name in the path; any text is one.
pub(super) struct SessionName(pub String);

impl FromSegments for SessionName {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        Ok(Self(segments.first().copied().unwrap_or_default().to_owned()))
    }
}

pub(super) fn no_such_session() -> Failure {
    Failure::not_found("session").known_as("session_not_found")
}

/// The session of that name.
pub(super) async fn found(caller: &Caller, name: &str) -> Result<SessionId, Failure> {
    conversation::named(caller, name).await?.ok_or_else(no_such_session)
}

pub(super) async fn overview(caller: &Caller, id: SessionId) -> Result<Overview, Failure> {
    let filter = OverviewFilter {
        id: Some(id),
        forks: true,
        archived: true,
        limit: 1,
        ..OverviewFilter::default()
    };
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.overviews(&filter).await }));
    found.await?.pop().ok_or_else(no_such_session)
}

/// A number of a query: what cannot be read counts as absent.
pub(super) fn number(text: Option<&str>, default: u32, max: u32) -> u32 {
    text.and_then(|text| text.trim().parse().ok())
        .map_or(default, |number: u32| number.min(max))
}

pub(super) async fn answer(state: &ApiState, caller: &Caller, id: SessionId) -> Result<Value, Failure> {
    let overview = overview(caller, id).await?;
    let session = session_shape::session(&overview, &state.engine.settings().model);
    Ok(json!({"object": "hermes.session", "session": session}))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionQuery {
    /// 1 to 200, 50 unless said.
    limit: Option<String>,
    offset: Option<String>,
    /// Only sessions of this source; all here are of `api_server`.
    source: Option<String>,
    /// Only the session of this title.
    title: Option<String>,
    /// Forks as well.
    #[param(value_type = Option<bool>)]
    include_children: Option<String>,
    /// What was put away as well.
    #[param(value_type = Option<bool>)]
    include_archived: Option<String>,
}

/// List sessions; what was touched last comes first.
#[utoipa::path(get, path = "/api/sessions", tag = "hermes sessions", params(SessionQuery),
    responses((status = 200, description = "A part of the list.", body = Value)))]
pub(super) async fn hermes_list_sessions(
    State(state): State<ApiState>,
    caller: Caller,
    Loose(query): Loose<SessionQuery>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let limit = number(query.limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT);
    let offset = number(query.offset.as_deref(), 0, MAX_OFFSET);
    let filter = OverviewFilter {
        id: None,
        title: query.title,
        forks: is_yes(query.include_children.as_deref()),
        archived: is_yes(query.include_archived.as_deref()),
        offset,
        // One more says whether there is more.
        limit: limit + 1,
    };
    let is_ours = query.source.is_none_or(|source| source == conversation::API_SERVER);
    let mut found = Vec::new();
    if is_ours {
        let read = caller
            .scope
            .read(move |mut rows| Box::pin(async move { rows.overviews(&filter).await }));
        found = read.await?;
    }
    let has_more = limit as usize + 1 == found.len();
    found.truncate(limit as usize);
    let model = &state.engine.settings().model;
    let data: Vec<Value> = found
        .iter()
        .map(|overview| session_shape::session(overview, model))
        .collect();
    Ok(Json(
        json!({"object": "list", "total": data.len(), "data": data, "limit": limit, "offset": offset, "has_more": has_more}),
    ))
}

/// A session to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct HermesSession {
    /// Its name, made up where none is given.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    id: Value,
    /// The same.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    session_id: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    title: Value,
    /// Told to the model in every turn of the session.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    system_prompt: Value,
}

/// Make a session.
#[utoipa::path(post, path = "/api/sessions", tag = "hermes sessions", request_body = HermesSession,
    responses((status = 201, description = "The session.", body = Value)))]
pub(super) async fn hermes_create_session(
    State(state): State<ApiState>,
    caller: Caller,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let (new, once): (HermesSession, _) = payload.loose_once(&caller.principal).await?;
    let known = super::once::is_known(&caller, &once).await?;
    let title = title(&new.title)?;
    if let (Some(title), false) = (&title, known) {
        titles::free(&caller, title, None).await?;
    }
    let instructions = match new.system_prompt {
        Value::Null => None,
        Value::String(text) => Some(text),
        _ => return Err(Failure::field("/system_prompt", "expected a text").known_as("invalid_system_prompt")),
    };
    let plain = Plain {
        external_id: Some(chosen(&state, &new.id, &new.session_id)?),
        title,
        instructions,
        metadata: Metadata::from([(conversation::SOURCE.to_owned(), json!(conversation::API_SERVER))]),
    };
    let new = plain.checked(caller.principal.user.clone(), &state.toolsets)?;
    let (engine, scope) = (state.engine.clone(), caller.scope.clone().once(once));
    let made = state.finish_once(async move { engine.create_session(&scope, new).await });
    let made = made.await.map_err(|failure| match failure.problem().code {
        ProblemCode::ExternalIdTaken => failure.known_as("session_exists"),
        _ => failure,
    })?;
    let body = answer(&state, &caller, made.value.id).await?;
    Ok(made.answer(|_: Session| (StatusCode::CREATED, Json(body)).into_response()))
}

/// The name that was asked for, or one that nobody has.
pub(super) fn chosen(state: &ApiState, id: &Value, session_id: &Value) -> Result<String, Failure> {
    match [id, session_id].into_iter().find(|value| !value.is_null()) {
        None => {
            let now = state.clock().now().0 / 1000;
            let bits = state.clock().uuid() & 0xffff_ffff;
            Ok(format!("api_{now}_{bits:08x}"))
        }
        Some(Value::String(name)) => {
            let name = name.trim();
            headers::check_name("/id", name)?;
            Ok(name.to_owned())
        }
        Some(_) => Err(Failure::field("/id", "expected a text").known_as("invalid_session_id")),
    }
}

pub(super) fn title(given: &Value) -> Result<Option<String>, Failure> {
    match given {
        Value::Null => Ok(None),
        Value::String(text) => titles::cleaned(text),
        _ => Err(titles::invalid("expected a text".to_owned())),
    }
}

/// Read a session.
#[utoipa::path(get, path = "/api/sessions/{session_id}", tag = "hermes sessions",
    params(("session_id" = String, Path)),
    responses((status = 200, description = "The session.", body = Value)))]
pub(super) async fn hermes_get_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(SessionName(name)): InPath<SessionName>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let id = found(&caller, &name).await?;
    answer(&state, &caller, id).await.map(Json)
}

/// Fields that can change.
const CHANGEABLE: [&str; 3] = ["title", "end_reason", "archived"];

/// Change a session: its `title`, or `end_reason`, of which the first stands, or
/// whether it is `archived`.
#[utoipa::path(patch, path = "/api/sessions/{session_id}", tag = "hermes sessions",
    params(("session_id" = String, Path)), request_body = Value,
    responses((status = 200, description = "The session as it is now.", body = Value)))]
pub(super) async fn hermes_update_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(SessionName(name)): InPath<SessionName>,
    payload: Payload,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsWrite)?;
    let (changes, _): (Map<String, Value>, _) = payload.loose_once(&caller.principal).await?;
    let mut others: Vec<&str> = changes
        .keys()
        .map(String::as_str)
        .filter(|key| !CHANGEABLE.contains(key))
        .collect();
    if !others.is_empty() {
        others.sort_unstable();
        let detail = format!("cannot be changed: {}", others.join(", "));
        return Err(Failure::field("", detail).known_as("unsupported_session_field"));
    }
    let id = found(&caller, &name).await?;
    let patch = patch(&state, &caller, id, &changes).await?;
    let (engine, scope) = (state.engine.clone(), caller.scope.clone());
    let archived = changes
        .get("archived")
        .map(|value| serde_json::from_value::<Flag>(value.clone()));
    let archived = archived.and_then(Result::ok).and_then(|flag| flag.0);
    let changed = state.finish(async move {
        if let Some(archived) = archived {
            engine.archive_session(&scope, id, archived).await?;
        }
        match patch {
            Some(patch) => engine.patch_session(&scope, id, patch).await.map(drop),
            None => Ok(()),
        }
    });
    changed.await?;
    answer(&state, &caller, id).await.map(Json)
}

async fn patch(
    state: &ApiState,
    caller: &Caller,
    id: SessionId,
    changes: &Map<String, Value>,
) -> Result<Option<SessionPatch>, Failure> {
    let mut patch = SessionPatch::default();
    if let Some(given) = changes.get("title") {
        let title = title(given)?;
        if let Some(title) = &title {
            titles::free(caller, title, Some(id)).await?;
        }
        patch.title = Some(title);
    }
    if let Some(reason) = changes.get("end_reason").filter(|reason| !reason.is_null()) {
        let Some(reason) = reason.as_str() else {
            return Err(Failure::field("/end_reason", "expected a text").known_as("invalid_session_field"));
        };
        patch.metadata = ended(state, overview(caller, id).await?.session, reason);
    }
    Ok((patch != SessionPatch::default()).then_some(patch))
}

/// The metadata of a session that ends now; nothing where it has ended before.
pub(super) fn ended(state: &ApiState, session: Session, reason: &str) -> Option<Metadata> {
    let mut metadata = session.metadata;
    if metadata.contains_key(END_REASON) {
        return None;
    }
    metadata.insert(END_REASON.to_owned(), json!(reason));
    metadata.insert(ENDED_AT.to_owned(), json!(seconds(state.clock().now())));
    Some(metadata)
}

/// Delete a session with everything in it.
#[utoipa::path(delete, path = "/api/sessions/{session_id}", tag = "hermes sessions",
    params(("session_id" = String, Path)),
    responses((status = 200, description = "It is gone.", body = Value)))]
pub(super) async fn hermes_delete_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(SessionName(name)): InPath<SessionName>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsWrite)?;
    let id = found(&caller, &name).await?;
    let (engine, scope) = (state.engine.clone(), caller.scope.clone());
    state
        .finish(async move { engine.delete_session(&scope, id).await })
        .await?;
    Ok(Json(
        json!({"object": "hermes.session.deleted", "id": name, "deleted": true}),
    ))
}
