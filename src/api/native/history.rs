//! What a session holds, in the order it came: its messages and its durable
//! events, in pages. A page that is not full still says where to go on, so that
//! a client can ask again for what comes later.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::base::Timestamp;
use crate::live::cursor::Cursor;
use crate::model::event::{Event, EventBody, ResetData};
use crate::model::id::SessionId;
use crate::model::message::Message;
use crate::model::principal::Scope;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_messages))
        .routes(routes!(list_events))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MessageFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

/// List the messages of a session, oldest first.
#[utoipa::path(get, path = "/v1/sessions/{id}/messages", tag = "sessions",
    params(("id" = SessionId, Path), MessageFilter),
    responses((status = 200, description = "A page of messages.", body = Page<Message>)))]
pub(super) async fn list_messages(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    Query(filter): Query<MessageFilter>,
) -> Result<Json<Page<Message>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let limit = filter.limit;
    let list = state.list(&caller, &json!(["messages", id]))?;
    let after: i64 = list.after(filter.after.as_deref())?.unwrap_or(-1);
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            if rows.session_record(id).await?.is_none() {
                return Ok(None);
            }
            rows.messages(id, after, limit.and_one()).await.map(Some)
        })
    });
    let found = found.await?.ok_or_else(|| Failure::not_found("session"))?;
    let page = Page::log(found, limit, |(position, _)| list.cursor(position), filter.after);
    Ok(Json(page.map(|(_, message)| message)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `seq` of the last event that is known, or the `next_cursor` of the
    /// page before.
    after: Option<String>,
}

/// List the durable events of a session, oldest first.
///
/// Where events behind the cursor are not kept any more (`retention.events_days`
/// is set), the page begins with one `stream.reset`, which says from where on
/// they are, and goes on from there; messages are kept.
#[utoipa::path(get, path = "/v1/sessions/{id}/events", tag = "sessions",
    params(("id" = SessionId, Path), EventFilter),
    responses((status = 200, description = "A page of events.", body = Page<Event>)))]
pub(super) async fn list_events(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    Query(filter): Query<EventFilter>,
) -> Result<Json<Page<Event>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let limit = filter.limit;
    let after = match &filter.after {
        Some(text) => text
            .parse::<Cursor>()
            .map_err(|error| Failure::invalid_cursor("after", error.to_string()))?,
        None => Cursor::default(),
    };
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.log(id, None, after.seq, limit.and_one()).await }));
    let (_, mut found, gap) = found.await?.ok_or_else(|| Failure::not_found("session"))?;
    if let Some(oldest_seq) = gap {
        found.items.insert(0, reset(id, oldest_seq, state.clock().now()));
    }
    Ok(Json(Page::log(
        found,
        limit,
        |event| event.seq.to_string(),
        filter.after,
    )))
}

/// As a stream says it.
fn reset(session_id: SessionId, oldest_seq: i64, at: Timestamp) -> Event {
    let seq = oldest_seq - 1;
    Event {
        id: seq.to_string(),
        seq,
        body: EventBody::StreamReset(ResetData { oldest_seq }),
        session_id,
        turn_id: None,
        at,
    }
}
