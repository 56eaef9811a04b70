//! Streams of a session and of a turn: the log from a cursor on, then live.

use std::str::FromStr;

use crate::api::surface::{Surface, routes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use utoipa::IntoParams;

use crate::api::accept::{self, Protocol, Wanted};
use crate::api::compat::stream;
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::lifetime::Lifetime;
use crate::api::path::InPath;
use crate::api::query::Query;
use crate::api::sse::{self, Watched};
use crate::api::state::ApiState;
use crate::api::text;
use crate::api::ui_stream::encode::{self, UiStream};
use crate::api::viewer::Viewer;
use crate::live::cursor::{Cursor, ParseCursorError};
use crate::live::follow::{Follow, Follower, Shown};
use crate::model::event::Event;
use crate::model::id::{SessionId, TurnId};
use crate::store::{self, BellReceiver};

use super::stream_filter::{self, Deltas};

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(stream_session))
        .routes(routes!(stream_turn))
}

const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StreamFilter {
    /// The `id` of the last frame that is known; stronger than `Last-Event-ID`.
    after: Option<String>,
    /// Only these types, separated by commas; `turn.*` stands for all that begin
    /// so. Frames of the stream itself always come. What is left out moves the
    /// cursor all the same: come back with the same types.
    types: Option<String>,
    /// Without deltas only what is stored is sent.
    #[param(inline)]
    deltas: Option<Deltas>,
    /// `ui` streams a turn as parts of a UI message, always from its first; of a
    /// session it changes nothing.
    #[param(inline)]
    protocol: Option<Protocol>,
    /// Read by the viewer.
    #[param(ignore)]
    #[serde(rename = "token")]
    _token: Option<IgnoredAny>,
}

impl StreamFilter {
    fn shown(&self) -> Result<Shown, Failure> {
        stream_filter::shown(self.types.as_deref(), self.deltas)
    }
}

/// Where the client stands, if it says so.
pub(in crate::api) fn place<T>(after: Option<&str>, headers: &HeaderMap) -> Result<Option<T>, Failure>
where
    T: FromStr<Err = ParseCursorError>,
{
    // A browser that was never given an id sends an empty one.
    let last = headers.get(LAST_EVENT_ID).filter(|last| !last.is_empty());
    let given = match (after, last) {
        (Some(after), _) => Some(("after", after)),
        (None, Some(last)) => Some(("Last-Event-ID", last.to_str().unwrap_or_default())),
        (None, None) => None,
    };
    let parsed = given.map(|(place, text)| {
        text.parse()
            .map_err(|error: ParseCursorError| Failure::invalid_cursor(place, error.to_string()))
    });
    parsed.transpose()
}

/// A cursor may not lie ahead of everything that ever happened.
pub(in crate::api) fn within(cursor: Cursor, head_seq: i64) -> Result<Cursor, Failure> {
    if head_seq < cursor.seq {
        let detail = format!("it lies ahead of the session's newest event, {head_seq}");
        return Err(Failure::invalid_cursor("after", detail));
    }
    Ok(cursor)
}

/// What a new turn's maker follows, who listened before it was made.
pub(super) fn of_new_turn(
    state: &ApiState,
    scope: store::Scope,
    (bell, turn): (BellReceiver, TurnId),
    first_seq: i64,
    shown: Shown,
) -> Follower {
    let cursor = Cursor {
        seq: first_seq - 1,
        d: 0,
    };
    let follow = what(state, scope, (bell.session(), Some(turn)), cursor, shown);
    follow.start_with(bell, state.clock().clone())
}

pub(in crate::api) fn follow(
    state: &ApiState,
    scope: store::Scope,
    (session, turn): (SessionId, Option<TurnId>),
    cursor: Cursor,
    shown: Shown,
) -> Follower {
    what(state, scope, (session, turn), cursor, shown).start(state.clock().clone())
}

fn what(
    state: &ApiState,
    scope: store::Scope,
    (session, turn): (SessionId, Option<TurnId>),
    cursor: Cursor,
    shown: Shown,
) -> Follow {
    Follow {
        scope,
        hub: state.engine.hub().clone(),
        session,
        turn,
        cursor,
        shown,
        heartbeat: state.heartbeat,
    }
}

/// Follow a session: its events after the cursor, from the first where there is
/// none, then what happens.
#[utoipa::path(get, path = "/v1/sessions/{id}/stream", tag = "sessions",
    params(("id" = SessionId, Path), StreamFilter,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last frame that is known.")),
    responses((status = 200, description = "Frames; `data` is an event.",
        body = Event, content_type = "text/event-stream")))]
pub(super) async fn stream_session(
    State(state): State<ApiState>,
    viewer: Viewer,
    InPath(id): InPath<SessionId>,
    Query(filter): Query<StreamFilter>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let caller = viewer.of_session(id)?;
    let shown = filter.shown()?;
    let cursor = place(filter.after.as_deref(), &headers)?.unwrap_or_default();
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.session_record(id).await }));
    let session = found.await?.ok_or_else(|| Failure::not_found("session"))?;
    let cursor = within(cursor, session.head_seq)?;
    let lifetime = Lifetime::of(&state, &caller);
    let follower = follow(&state, caller.scope, (id, None), cursor, shown);
    Ok(sse::response(
        state,
        Watched::Session(Box::new(follower)),
        Leash::none(),
        lifetime,
    ))
}

/// Follow a turn to its end: its events after the cursor, from its first where
/// there is none, then what happens.
#[utoipa::path(get, path = "/v1/sessions/{id}/turns/{turn_id}/stream", tag = "turns",
    params(("id" = SessionId, Path), ("turn_id" = TurnId, Path), StreamFilter,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last frame that is known.")),
    responses(
        (status = 200, description = "Frames; `data` is an event. With `Accept: text/plain`: what the model says, from \
            its first word, as when the turn is created so.",
            content((Event = "text/event-stream"), (String = "text/plain"))),
        (status = 204, description = "The turn is over and the cursor is at its end.")))]
pub(super) async fn stream_turn(
    State(state): State<ApiState>,
    viewer: Viewer,
    InPath((session, turn)): InPath<(SessionId, TurnId)>,
    Query(filter): Query<StreamFilter>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let caller = viewer.of_session(session)?;
    let shown = filter.shown()?;
    let cursor: Option<Cursor> = place(filter.after.as_deref(), &headers)?;
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            let Some(session_record) = rows.session_record(session).await? else {
                return Ok(None);
            };
            let turn = rows.turn(session, turn).await?;
            Ok(turn.map(|turn| (session_record.head_seq, turn)))
        })
    });
    let (head_seq, record) = found.await?.ok_or_else(|| Failure::not_found("turn"))?;
    let beginning = Cursor {
        seq: record.first_seq - 1,
        d: 0,
    };
    let lifetime = Lifetime::of(&state, &caller);
    if accept::wanted(&headers).is_ok_and(|wanted| wanted == Wanted::Text) {
        let follower = follow(&state, caller.scope, (session, Some(turn)), beginning, Shown::default());
        return text::response(state, follower, Leash::none(), lifetime).await;
    }
    if accept::wanted(&headers).is_ok_and(|wanted| wanted.in_protocol(filter.protocol) == Wanted::Ui) {
        let follower = follow(&state, caller.scope, (session, Some(turn)), beginning, Shown::default());
        return Ok(encode::response(stream::Watched {
            state,
            follower,
            leash: Leash::none(),
            lifetime,
            encoder: UiStream::new(&record.view(), None),
        }));
    }
    let from = cursor.unwrap_or(beginning);
    if record.status.is_terminal() && record.last_seq.is_some_and(|last| last <= from.seq) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let from = within(from, head_seq)?;
    let follower = follow(&state, caller.scope, (session, Some(turn)), from, shown);
    Ok(sse::response(
        state,
        Watched::Session(Box::new(follower)),
        Leash::none(),
        lifetime,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(after: Option<&str>, last: Option<&'static str>) -> Result<Option<Cursor>, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(last) = last {
            headers.insert(LAST_EVENT_ID, http::HeaderValue::from_static(last));
        }
        place(after, &headers)
    }

    #[test]
    fn the_query_is_stronger_than_the_header() {
        let at = |seq, d| Some(Cursor { seq, d });
        assert_eq!(read(Some("7.2"), Some("5.1")).unwrap(), at(7, 2));
        assert_eq!(read(None, Some("5.1")).unwrap(), at(5, 1));
        assert_eq!(read(None, Some("")).unwrap(), None);
        assert_eq!(read(None, None).unwrap(), None);
        assert_eq!(read(Some("0"), Some("x")).unwrap(), at(0, 0));
    }

    #[test]
    fn what_is_no_cursor_is_refused_where_it_stands() {
        let pointer = |result: Result<Option<Cursor>, Failure>| result.unwrap_err().problem().errors[0].pointer.clone();
        assert_eq!(pointer(read(Some(""), None)), "after");
        assert_eq!(pointer(read(Some("-1"), Some("5"))), "after");
        assert_eq!(pointer(read(None, Some("x"))), "Last-Event-ID");
        assert!(within(Cursor { seq: 5, d: 9 }, 5).is_ok() && within(Cursor { seq: 6, d: 0 }, 5).is_err());
    }
}
