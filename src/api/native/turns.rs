//! Turns: created in one of three ways, listed, read, cancelled.

use std::time::Duration;

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::api::accept::{self, Protocol, Wanted};
use crate::api::caller::Caller;
use crate::api::compat::stream;
use crate::api::conditions::{self, ConditionHeaders};
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::lifetime::Lifetime;
use crate::api::once;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::query::Query;
use crate::api::sse::{self, Watched};
use crate::api::state::ApiState;
use crate::api::text;
use crate::api::ui_stream::encode::{self, UiStream};
use crate::api::wait::{self, TurnOutcome, Waited};
use crate::live::follow::Shown;
use crate::model::event::Event;
use crate::model::id::{SessionId, TurnId};
use crate::model::principal::Scope;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::TurnRecord;
use crate::model::session::ToolsetSelection;
use crate::model::turn::{OnDisconnect, Turn, TurnStatus};
use crate::store::{self, Once};
use crate::tool::registry::Selection;
use crate::turn::requests::{CreatedTurn, EngineError, NewTurn};

use super::new_turn::{TurnChanges, TurnRequest};
use super::stream_filter::{self, Deltas};
use super::streams;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(create_turn, list_turns))
        .routes(routes!(get_turn, update_turn, delete_turn))
        .routes(routes!(cancel_turn))
}

/// The longest a client may block: proxies rarely allow more.
const MAX_WAIT_SECONDS: u64 = 600;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TurnWait {
    /// Seconds to wait for the turn to end or to wait for a person; not together
    /// with `Accept: text/event-stream` or `text/plain`.
    #[param(minimum = 0, maximum = 600)]
    wait: Option<u64>,
    /// With `Accept: text/event-stream`: only these types, separated by commas;
    /// `turn.*` stands for all that begin so.
    types: Option<String>,
    /// With `Accept: text/event-stream`: without deltas only what is stored is
    /// sent.
    #[param(inline)]
    deltas: Option<Deltas>,
    /// `ui` streams parts of a UI message, as `Accept: text/event-stream;
    /// protocol=ui-message-stream` does.
    #[param(inline)]
    protocol: Option<Protocol>,
}

/// Create a turn. It is answered at once; as a stream of events, if the header
/// `Accept` names `text/event-stream`; as what the model says, if it names
/// `text/plain`; or, with `wait`, when the turn is at rest.
///
/// Plain text begins with the model's first word; a turn that ends before it is
/// answered with a problem. Messages are paragraphs. Lines in brackets are the
/// server's: what waits for an approval (the text goes on after the decision),
/// and why the turn did not complete. Only the text of a turn that completed
/// ends as a body should; any other breaks off. There is no cursor: `GET
/// …/turns/{turn_id}/stream` with the same `Accept`, or the same request under
/// the same `Idempotency-Key`, gives the whole text from its first word.
#[utoipa::path(post, path = "/v1/sessions/{id}/turns", tag = "turns", request_body = TurnRequest,
    params(("id" = SessionId, Path), TurnWait),
    responses(
        (status = 200, description = "The turn at rest, with `wait`; or frames whose `data` is an event; or what the \
            model says.",
            content((TurnOutcome = "application/json"), (Event = "text/event-stream"), (String = "text/plain")),
            headers(("Content-Location" = String, description = "Path of the turn."))),
        (status = 202, description = "The turn was taken; it is under way.", body = Turn,
            headers(("Location" = String, description = "Path of the turn."),
                ("ETag" = String, description = "Names this version of the turn."))),
        (status = 406, description = "`Accept` allows neither JSON nor a stream nor text.",
            body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "The session is busy; as text: the turn was stopped before its first word.",
            body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The queue of the session is full, as many turns execute as the key, the tenant or \
            the server may have, or requests come too fast; `code` says which.",
            body = Problem, content_type = "application/problem+json"),
        (status = 502, description = "With `wait`, or as text: the turn failed at the model server.",
            body = Problem, content_type = "application/problem+json"),
        (status = 504, description = "With `wait`, or as text: the turn or the model server ran out of time.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn create_turn(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(session): InPath<SessionId>,
    Query(asked): Query<TurnWait>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    state.takes_work()?;
    let wanted = accept::wanted(&headers)?.in_protocol(asked.protocol);
    let patience = patience(wanted, asked.wait)?;
    let shown = shown(wanted, &asked)?;
    let (request, once): (TurnRequest, _) = payload.json_once(&caller.principal).await?;
    let on_disconnect = request.on_disconnect();
    let new = request.checked(&caller.principal, state.body.max_input_chars)?;
    known_toolsets(&state, &caller, new.options.toolsets.as_ref())?;
    // Whoever asked to be told at once has no connection to lose.
    let held = on_disconnect == OnDisconnect::Cancel && (wanted.follows() || patience.is_some());
    let (maker, scope) = (state.clone(), caller.scope.clone());
    // Before the turn is there: its beginning is then heard and not read.
    let bell = wanted.follows().then(|| state.store.bell().subscribe(session));
    let created = state.finish(async move { create(maker, scope, session, new, once, held).await });
    let Created {
        turn,
        first_seq,
        leash,
        replayed,
    } = created.await?;
    let place = Place::of(&turn);
    if let Some(bell) = bell {
        let lifetime = Lifetime::of(&state, &caller);
        let follower = streams::of_new_turn(&state, caller.scope, (bell, turn.id), first_seq, shown);
        let answer = match wanted {
            Wanted::Text => text::response(state, follower, leash, lifetime).await.into_response(),
            Wanted::Ui => {
                let encoder = UiStream::new(&turn, None);
                encode::response(stream::Watched {
                    state,
                    follower,
                    leash,
                    lifetime,
                    encoder,
                })
            }
            Wanted::Stream | Wanted::Json => {
                sse::response(state, Watched::Session(Box::new(follower)), leash, lifetime)
            }
        };
        return Ok(once::marked((place.header(CONTENT_LOCATION), answer), replayed));
    }
    let answer = match patience {
        Some(patience) => waited(&state, &caller, &turn, patience, leash).await?,
        None => taken(&place, turn),
    };
    Ok(once::marked(answer, replayed))
}

/// The turn of this request, or of an earlier one under the same key.
struct Created {
    turn: Turn,
    first_seq: i64,
    leash: Leash,
    replayed: bool,
}

async fn create(
    state: ApiState,
    scope: store::Scope,
    session: SessionId,
    new: NewTurn,
    once: Option<Once>,
    held: bool,
) -> Result<Created, Failure> {
    let keyed = scope.clone().once(once);
    match state.engine.create_turn(&keyed, session, new).await {
        Ok(CreatedTurn {
            turn,
            first_seq,
            steered,
        }) => Ok(Created {
            // A turn that was there before is others' too.
            leash: match held && !steered {
                true => Leash::new(state, scope, session, turn.id),
                false => Leash::none(),
            },
            turn,
            first_seq,
            replayed: false,
        }),
        // Whoever comes later watches: the turn is the first one's to cancel.
        Err(EngineError::Replayed(id)) => {
            let id: TurnId = serde_json::from_str(&id).map_err(Failure::internal)?;
            let record = found(&scope, session, id).await?;
            Ok(Created {
                first_seq: record.first_seq,
                turn: record.view(),
                leash: Leash::none(),
                replayed: true,
            })
        }
        Err(error) => Err(error.into()),
    }
}

async fn found(scope: &store::Scope, session: SessionId, turn: TurnId) -> Result<TurnRecord, Failure> {
    let found = scope.read(move |mut rows| {
        Box::pin(async move {
            match rows.session_record(session).await? {
                Some(_) => rows.turn(session, turn).await,
                None => Ok(None),
            }
        })
    });
    found.await?.ok_or_else(|| Failure::not_found("turn"))
}

/// A turn's own selection is refused as a session's is: a name that nobody
/// knows would leave the turn without tools.
fn known_toolsets(state: &ApiState, caller: &Caller, turn: Option<&ToolsetSelection>) -> Result<(), Failure> {
    let selection = Selection {
        turn,
        ..Selection::default()
    };
    let engine = &state.engine;
    let selected = engine
        .registry(caller.principal.tenant)
        .select(&selection, engine.tools().offers(engine.host()));
    selected
        .map(drop)
        .map_err(|unknown| Failure::field("/toolsets", unknown.to_string()))
}

/// What of the turn is sent; only a stream of events can be asked for less.
fn shown(wanted: Wanted, asked: &TurnWait) -> Result<Shown, Failure> {
    let given = [("types", asked.types.is_some()), ("deltas", asked.deltas.is_some())];
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) if wanted != Wanted::Stream => Err(Failure::field(
            name,
            "it chooses frames of a stream; send `Accept: text/event-stream`, or leave it out",
        )),
        _ => stream_filter::shown(asked.types.as_deref(), asked.deltas),
    }
}

fn patience(wanted: Wanted, wait: Option<u64>) -> Result<Option<Duration>, Failure> {
    match (wanted, wait) {
        (Wanted::Stream | Wanted::Ui | Wanted::Text, Some(_)) => Err(Failure::field(
            "wait",
            "a stream is not waited for; leave out `wait`, or send `Accept: application/json`",
        )),
        (_, Some(seconds)) if MAX_WAIT_SECONDS < seconds => Err(Failure::field(
            "wait",
            format!("expected 0 to {MAX_WAIT_SECONDS} seconds"),
        )),
        (_, wait) => Ok(wait.map(Duration::from_secs)),
    }
}

async fn waited(
    state: &ApiState,
    caller: &Caller,
    turn: &Turn,
    patience: Duration,
    mut leash: Leash,
) -> Result<Response, Failure> {
    let place = Place::of(turn);
    let waited = wait::at_rest(state, &caller.scope, turn.session_id, turn.id, patience).await;
    leash.let_go();
    let outcome = match waited? {
        Waited::UnderWay(turn) => return Ok(taken(&place, *turn)),
        Waited::AtRest(outcome) => outcome,
    };
    let headers = place.header(CONTENT_LOCATION);
    match failed(&outcome.turn) {
        Some(failure) => Ok((headers, failure).into_response()),
        None => Ok((headers, Json(*outcome)).into_response()),
    }
}

/// A failed turn is no success for a client that waited: its problem is the
/// answer.
fn failed(turn: &Turn) -> Option<Failure> {
    if turn.status != TurnStatus::Failed {
        return None;
    }
    let unknown = || Problem::new(ProblemCode::Internal, "the turn failed");
    let problem = turn.error.clone().unwrap_or_else(unknown);
    let context = problem.context.clone();
    Some(match context {
        Some(_) => problem.into(),
        None => problem
            .with_context(serde_json::json!({"session_id": turn.session_id, "turn_id": turn.id}))
            .into(),
    })
}

fn taken(place: &Place, turn: Turn) -> Response {
    (StatusCode::ACCEPTED, place.header(LOCATION), conditions::tagged(turn)).into_response()
}

/// The path of a turn.
struct Place(String);

impl Place {
    fn of(turn: &Turn) -> Self {
        Self(format!("/v1/sessions/{}/turns/{}", turn.session_id, turn.id))
    }

    fn header(&self, name: HeaderName) -> HeaderMap {
        let value = HeaderValue::from_str(&self.0).ok();
        value.map(|value| (name, value)).into_iter().collect()
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TurnFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
    /// Only turns of this status.
    status: Option<TurnStatus>,
}

/// List the turns of a session, newest first; with `status=queued` the queue in
/// its order, the head first.
#[utoipa::path(get, path = "/v1/sessions/{id}/turns", tag = "turns",
    params(("id" = SessionId, Path), TurnFilter),
    responses((status = 200, description = "A page of turns.", body = Page<Turn>)))]
pub(super) async fn list_turns(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(session): InPath<SessionId>,
    Query(filter): Query<TurnFilter>,
) -> Result<Json<Page<Turn>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["turns", session, filter.status]))?;
    let before: Option<TurnId> = list.after(filter.after.as_deref())?;
    let (limit, status) = (filter.limit, filter.status);
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            if rows.session_record(session).await?.is_none() {
                return Ok(None);
            }
            if status == Some(TurnStatus::Queued) {
                return Ok(Some(after_in_queue(rows.queued_turns(session).await?, before)));
            }
            rows.turns(session, status, before, limit.and_one()).await.map(Some)
        })
    });
    let found = found.await?.ok_or_else(|| Failure::not_found("session"))?;
    Ok(Json(
        list.cut(found, limit, |turn| turn.turn_id).map(|turn| turn.view()),
    ))
}

/// What stands behind a turn in the queue; all of it when that one has begun.
fn after_in_queue(queue: Vec<TurnRecord>, turn: Option<TurnId>) -> Vec<TurnRecord> {
    match queue.iter().position(|queued| Some(queued.turn_id) == turn) {
        Some(place) => queue.into_iter().skip(place + 1).collect(),
        None => queue,
    }
}

/// Read a turn.
#[utoipa::path(get, path = "/v1/sessions/{id}/turns/{turn_id}", tag = "turns",
    params(("id" = SessionId, Path), ("turn_id" = TurnId, Path), ConditionHeaders),
    responses((status = 200, description = "The turn.", body = Turn)))]
pub(super) async fn get_turn(
    caller: Caller,
    InPath((session, turn)): InPath<(SessionId, TurnId)>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let condition = conditions::of(&headers)?;
    conditions::read(found(&caller.scope, session, turn).await?.view(), &condition)
}

/// Change a turn that waits in the queue.
#[utoipa::path(patch, path = "/v1/sessions/{id}/turns/{turn_id}", tag = "turns",
    params(("id" = SessionId, Path), ("turn_id" = TurnId, Path), ConditionHeaders), request_body = TurnChanges,
    responses(
        (status = 200, description = "The turn as it waits now.", body = Turn),
        (status = 409, description = "The turn does not wait any more.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn update_turn(
    State(state): State<ApiState>,
    caller: Caller,
    InPath((session, turn)): InPath<(SessionId, TurnId)>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let scope = caller.only_if(&headers)?.scope;
    let changes: TurnChanges = payload.json().await?;
    let patch = changes.checked(state.body.max_input_chars)?;
    let engine = state.engine.clone();
    let changed = state.finish(async move { engine.patch_queued(&scope, session, turn, patch).await });
    changed.await.map(conditions::tagged)
}

/// Take a turn out of the queue; it ends as cancelled. One that has begun is
/// cancelled with `POST …/cancel`.
#[utoipa::path(delete, path = "/v1/sessions/{id}/turns/{turn_id}", tag = "turns",
    params(("id" = SessionId, Path), ("turn_id" = TurnId, Path), ConditionHeaders),
    responses(
        (status = 200, description = "The turn, cancelled.", body = Turn),
        (status = 409, description = "The turn does not wait any more.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn delete_turn(
    State(state): State<ApiState>,
    caller: Caller,
    InPath((session, turn)): InPath<(SessionId, TurnId)>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let scope = caller.only_if(&headers)?.scope;
    let engine = state.engine.clone();
    let withdrawn = state.finish(async move { engine.withdraw_queued(&scope, session, turn).await });
    withdrawn.await.map(conditions::tagged)
}

/// Cancel a turn. What waits ends at once, what runs a moment later; a turn
/// that is over stays as it is.
#[utoipa::path(post, path = "/v1/sessions/{id}/turns/{turn_id}/cancel", tag = "turns",
    params(("id" = SessionId, Path), ("turn_id" = TurnId, Path), ConditionHeaders),
    responses(
        (status = 200, description = "The turn is over.", body = Turn),
        (status = 202, description = "The turn was told to stop and is about to end.", body = Turn)))]
pub(super) async fn cancel_turn(
    State(state): State<ApiState>,
    caller: Caller,
    InPath((session, turn)): InPath<(SessionId, TurnId)>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let caller = caller.only_if(&headers)?;
    let once = payload.once(&caller.principal).await?;
    let (engine, scope) = (state.engine.clone(), caller.scope.once(once));
    let cancelled = state.finish_once(async move { engine.cancel_turn(&scope, session, turn).await });
    Ok(cancelled.await?.answer(|turn| {
        let status = if turn.status.is_terminal() {
            StatusCode::OK
        } else {
            StatusCode::ACCEPTED
        };
        (status, conditions::tagged(turn)).into_response()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_bounds_and_excludes_a_stream() {
        let seconds = |wait| patience(Wanted::Json, Some(wait)).map(|patience| patience.unwrap().as_secs());
        assert_eq!((seconds(0).unwrap(), seconds(600).unwrap()), (0, 600));
        assert_eq!(seconds(601).unwrap_err().problem().errors[0].pointer, "wait");
        assert!(patience(Wanted::Stream, Some(5)).is_err());
        assert_eq!(patience(Wanted::Stream, None).unwrap(), None);
    }
}
