//! What a session holds, another that goes on from it, and where a word was said.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::sessions::{SessionName, answer, chosen, ended, found, number, overview, title};
use super::{once, session_shape, titles};
use crate::api::caller::Caller;
use crate::api::compat::object::set;
use crate::api::compat::question::seconds;
use crate::api::failure::Failure;
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::query::Loose;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::id::SessionId;
use crate::model::principal::Scope;
use crate::model::problem::ProblemCode;
use crate::model::search::{SearchHit, Terms};
use crate::model::session::Session;
use crate::store::sessions::SessionPatch;
use crate::turn::requests::{ForkPoint, ForkSession};

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(hermes_search_sessions))
        .routes(routes!(hermes_list_messages))
        .routes(routes!(hermes_fork_session))
}

const MAX_MESSAGES: u32 = 500;
const DEFAULT_HITS: u32 = 20;
const MAX_HITS: u32 = 100;
const MAX_QUERY_CHARS: usize = 200;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct MessageQuery {
    /// 1 to 500, which is the usual as well.
    limit: Option<String>,
    offset: Option<String>,
    /// From which end: `oldest` or `latest`.
    order: Option<String>,
}

/// List messages of a session, the oldest of the part first.
#[utoipa::path(get, path = "/api/sessions/{session_id}/messages", tag = "hermes sessions",
    params(("session_id" = String, Path), MessageQuery),
    responses((status = 200, description = "A part of the messages.", body = Value)))]
pub(super) async fn hermes_list_messages(
    caller: Caller,
    InPath(SessionName(name)): InPath<SessionName>,
    Loose(query): Loose<MessageQuery>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let order = match query.order.as_deref() {
        None | Some("latest") => "latest",
        Some("oldest") => "oldest",
        Some(_) => return Err(Failure::field("order", "expected `oldest` or `latest`").known_as("invalid_pagination")),
    };
    let limit = number(query.limit.as_deref(), MAX_MESSAGES, MAX_MESSAGES);
    let offset = number(query.offset.as_deref(), 0, u32::MAX);
    let id = found(&caller, &name).await?;
    let all = all_messages(&caller, id).await?;
    let total = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let from = match order {
        "oldest" => offset.min(total),
        _ => total.saturating_sub(offset).saturating_sub(limit),
    };
    let to = match order {
        "oldest" => from.saturating_add(limit).min(total),
        _ => total.saturating_sub(offset),
    };
    let data = all.get(from as usize..to as usize).unwrap_or_default();
    let has_more = if order == "oldest" { to < total } else { 0 < from };
    Ok(Json(json!({"object": "list", "session_id": name, "data": data,
        "pagination": {"limit": limit, "offset": offset, "order": order, "total": total, "has_more": has_more}})))
}

async fn all_messages(caller: &Caller, id: SessionId) -> Result<Vec<Value>, Failure> {
    let read = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            let (mut all, mut after) = (Vec::new(), -1);
            loop {
                let page = rows.messages(id, after, 500).await?;
                let Some((last, _)) = page.items.last() else { break };
                after = *last;
                all.extend(
                    page.items
                        .into_iter()
                        .map(|(_, message)| message)
                        .filter(|message| !message.hidden),
                );
            }
            Ok((all, rows.session(id).await?))
        })
    });
    let (all, session) = read.await?;
    let name = session.as_ref().map(session_shape::name).unwrap_or_default();
    Ok(session_shape::messages(&name, &all))
}

/// A session to go on from another.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct HermesFork {
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    id: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    session_id: Value,
    /// The title of the other with the next number unless said.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    title: Value,
}

/// Fork a session from its end. The one that is forked ends as `branched`.
#[utoipa::path(post, path = "/api/sessions/{session_id}/fork", tag = "hermes sessions",
    params(("session_id" = String, Path)), request_body = HermesFork,
    responses((status = 201, description = "The new session, and `forked_from`.", body = Value)))]
pub(super) async fn hermes_fork_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(SessionName(name)): InPath<SessionName>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let (asked, once): (HermesFork, _) = payload.loose_once(&caller.principal).await?;
    let known = once::is_known(&caller, &once).await?;
    let from = found(&caller, &name).await?;
    let source = overview(&caller, from).await?.session;
    let wanted = match (title(&asked.title)?, &source.title) {
        (Some(title), _) => {
            if !known {
                titles::free(&caller, &title, None).await?;
            }
            Some(title)
        }
        (None, Some(title)) => Some(titles::next(&caller, title).await?),
        (None, None) => None,
    };
    let mut metadata = source.metadata.clone();
    metadata.retain(|key, _| ![session_shape::END_REASON, session_shape::ENDED_AT].contains(&key.as_str()));
    let fork = ForkSession {
        user_id: caller.principal.user.clone(),
        point: ForkPoint::End,
        external_id: Some(chosen(&state, &asked.id, &asked.session_id)?),
        title: wanted,
        metadata: Some(metadata),
        may_settle: caller.principal.scopes.allow(Scope::ApprovalsDecide),
    };
    let branched = ended(&state, source, "branched");
    let (engine, scope) = (state.engine.clone(), caller.scope.clone());
    let keyed = scope.clone().once(once);
    let forked = state.finish_once(async move {
        let forked = engine.fork_session(&keyed, from, fork).await?;
        if let Some(metadata) = branched {
            let patch = SessionPatch {
                metadata: Some(metadata),
                ..SessionPatch::default()
            };
            engine.patch_session(&scope, from, patch).await?;
        }
        Ok(forked)
    });
    let forked = forked.await.map_err(|failure| match failure.problem().code {
        ProblemCode::ExternalIdTaken => failure.known_as("session_exists"),
        _ => failure,
    })?;
    let mut body = answer(&state, &caller, forked.value.id).await?;
    set(&mut body, "forked_from", json!(name));
    Ok(forked.answer(|_: Session| (StatusCode::CREATED, Json(body)).into_response()))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SearchQuery {
    /// One to eight words.
    q: Option<String>,
    /// 1 to 100, 20 unless said.
    limit: Option<String>,
}

/// Find where something was said.
#[utoipa::path(get, path = "/api/sessions/search", tag = "hermes sessions", params(SearchQuery),
    responses((status = 200, description = "`query`, `count` and `results`, best first.", body = Value)))]
pub(super) async fn hermes_search_sessions(
    caller: Caller,
    Loose(query): Loose<SearchQuery>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let asked = query.q.unwrap_or_default();
    if MAX_QUERY_CHARS < asked.chars().count() {
        return Err(Failure::field(
            "q",
            format!("it is longer than {MAX_QUERY_CHARS} characters"),
        ));
    }
    let limit = number(query.limit.as_deref(), DEFAULT_HITS, MAX_HITS);
    let terms = Terms::of(&asked).ok_or_else(|| Failure::field("q", "expected one to eight words"))?;
    let read = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            let mut found = Vec::new();
            for (_, hit) in rows.search(&terms, None, None, limit).await? {
                let session = rows.session(hit.session_id).await?;
                found.extend(session.map(|session| (session_shape::name(&session), hit)));
            }
            Ok(found)
        })
    });
    let results: Vec<Value> = read.await?.iter().map(|(name, hit)| result(name, hit)).collect();
    Ok(Json(
        json!({"query": asked, "count": results.len(), "results": results}),
    ))
}

fn result(session: &str, hit: &SearchHit) -> Value {
    let snippet: String = hit.excerpt.iter().map(|part| part.text.as_str()).collect();
    json!({"session_id": session, "id": session, "title": hit.session_title, "snippet": snippet,
        "role": hit.role, "message_id": hit.message_id, "timestamp": seconds(hit.created_at)})
}
