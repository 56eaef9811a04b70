//! Runs: begun, looked at, followed. A run is a turn; its id is the turn's.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::run_events::{Place, RunEvents, closed};
use super::run_status;
use crate::api::caller::Caller;
use crate::api::compat::begin::{Ask, Begun, begin, metadata, replay};
use crate::api::compat::dialogue::{self, Dialogue};
use crate::api::compat::{chain, content, conversation, ending, headers, ids, story, stream};
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::lifetime::Lifetime;
use crate::api::native::streams;
use crate::api::once;
use crate::api::path::{FromSegments, InPath};
use crate::api::payload::Payload;
use crate::api::query::Loose;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::live::cursor::Cursor;
use crate::live::follow::Shown;
use crate::model::id::TurnId;
use crate::model::principal::Scope;
use crate::model::session::Metadata;
use crate::model::turn::OnDisconnect;
use crate::store::Story;
use crate::turn::requests::Whither;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(create_run))
        .routes(routes!(get_run))
        .routes(routes!(stream_run))
}

/// A run to be begun.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct RunRequest {
    /// A text, or messages of which the last is answered.
    #[serde(default)]
    #[schema(value_type = Object)]
    input: Value,
    /// Said to the model in this run only.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    instructions: Value,
    /// The run goes on from this response; one that is unknown is ignored.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    previous_response_id: Value,
    /// What was said before, for a session that is made now; one that is there
    /// remembers itself.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    conversation_history: Value,
    /// One of `model_routes`; any other is ignored.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    model: Value,
    /// The session, made where there is none of this name.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    session_id: Value,
}

/// A run in the path. What is no id of one names nothing.
pub(super) struct RunId(pub TurnId);

impl FromSegments for RunId {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        let turn = segments.first().and_then(|text| ids::turn_of_run(text));
        turn.map(Self).ok_or_else(no_such_run)
    }
}

pub(super) fn no_such_run() -> Failure {
    Failure::not_found("run").known_as("run_not_found")
}

/// The run's turn as it is now.
pub(super) async fn found(caller: &Caller, run: TurnId) -> Result<Story, Failure> {
    story::read(caller, run).await?.ok_or_else(no_such_run)
}

/// Begin a run. Its id is answered at once.
#[utoipa::path(post, path = "/v1/runs", tag = "runs", request_body = RunRequest,
    responses((status = 202, description = "The run is under way: `run_id`, `status` and `replayed`.", body = Value)))]
pub(super) async fn create_run(
    State(state): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    state.takes_work()?;
    let (request, once): (RunRequest, _) = payload.loose_once(&caller.principal).await?;
    let key = headers::session_key(&headers)?;
    let dialogue = request.dialogue()?;
    let begun = match replay(&caller, &once).await? {
        Some(begun) => begun,
        None => {
            let whither = request.whither(&state, &caller, &dialogue).await?;
            let ask = Ask {
                instructions: request.instructions.as_str().map(str::to_owned).or(dialogue.system),
                input: dialogue.input,
                model: request.model.as_str().map(str::to_owned),
                metadata: metadata("runs", key.as_deref()),
                on_disconnect: OnDisconnect::Continue,
                ..Ask::default()
            };
            begin(&state, &caller, (whither, once), ask, false).await?
        }
    };
    let Begun { turn, replayed, .. } = begun;
    let status = match replayed {
        true => run_status::standing(&found(&caller, turn.id).await?),
        false => "started",
    };
    let body = json!({"run_id": ids::run(turn.id), "status": status, "replayed": replayed,
        "session_id": begun.session_name});
    let key = key
        .and_then(|key| key.parse().ok())
        .map(|key| (headers::SESSION_KEY, key));
    let told: HeaderMap = key.into_iter().collect();
    Ok(once::marked((StatusCode::ACCEPTED, told, Json(body)), replayed))
}

impl RunRequest {
    fn dialogue(&self) -> Result<Dialogue, Failure> {
        let mut dialogue = match &self.input {
            Value::Array(items) if items.iter().all(is_part) => Dialogue {
                input: content::parts(&self.input, "/input")?,
                ..Dialogue::default()
            },
            Value::Array(_) => dialogue::of_messages(&self.input, "/input")?,
            Value::Null => return Err(Failure::field("/input", "send a text or a list of messages")),
            input => Dialogue {
                input: content::parts(input, "/input")?,
                ..Dialogue::default()
            },
        };
        let told = dialogue::history(&self.conversation_history, "/conversation_history")?;
        dialogue.history.splice(..0, told);
        Ok(dialogue)
    }

    async fn whither(&self, state: &ApiState, caller: &Caller, said: &Dialogue) -> Result<Whither, Failure> {
        match &self.session_id {
            Value::Null => {}
            Value::String(name) => {
                headers::check_name("/session_id", name)?;
                return conversation::of_name(state, caller, name.clone(), &said.history).await;
            }
            _ => return Err(Failure::field("/session_id", "expected a text").known_as("invalid_session_id")),
        }
        if let Some(previous) = self.previous_response_id.as_str()
            && let Some(link) = chain::behind(caller, previous).await?
        {
            return Ok(link.whither);
        }
        conversation::fresh(state, caller, None, &said.history, Metadata::new())
    }
}

/// A part of one message, and no message.
fn is_part(item: &Value) -> bool {
    item.is_string() || (item["type"].is_string() && item.get("role").is_none() && item["type"] != "message")
}

/// Read where a run stands.
#[utoipa::path(get, path = "/v1/runs/{run_id}", tag = "runs", params(("run_id" = String, Path)),
    responses((status = 200, description = "The run; while it waits, with what is asked.", body = Value)))]
pub(super) async fn get_run(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(RunId(run)): InPath<RunId>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let story = found(&caller, run).await?;
    Ok(Json(run_status::document(&story, &state.engine.settings().model)))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RunCursor {
    /// The `id` of the last frame that is known; stronger than `Last-Event-ID`.
    after: Option<String>,
    /// The same.
    cursor: Option<String>,
}

/// Follow a run to its end, from its beginning or from a cursor; as often and by
/// as many as want to.
#[utoipa::path(get, path = "/v1/runs/{run_id}/events", tag = "runs",
    params(("run_id" = String, Path), RunCursor,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last frame that is known.")),
    responses((status = 200, description = "Frames whose data says in `event` what it is.",
        body = String, content_type = "text/event-stream")))]
pub(super) async fn stream_run(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(RunId(run)): InPath<RunId>,
    Loose(asked): Loose<RunCursor>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let story = found(&caller, run).await?;
    let turn = &story.turn;
    let beginning = Cursor {
        seq: turn.first_seq - 1,
        d: 0,
    };
    let place = streams::place(asked.after.or(asked.cursor).as_deref(), &headers)?;
    let place = place.unwrap_or_else(|| Place::from(beginning));
    let from = streams::within(place.cursor, story.session.head_seq)?;
    if turn.status.is_terminal() && turn.last_seq.is_some_and(|last| last <= from.seq) {
        let mut text = String::new();
        closed(&mut text);
        return Ok(([(http::header::CONTENT_TYPE, "text/event-stream")], text).into_response());
    }
    let lifetime = Lifetime::of(&state, &caller);
    let watched = (story.session.id, Some(run));
    let follower = streams::follow(&state, caller.scope, watched, from, Shown::default());
    Ok(stream::response(stream::Watched {
        follower,
        leash: Leash::none(),
        lifetime,
        encoder: RunEvents::new(
            ids::run(run),
            place,
            ending::last_text(&story.messages).unwrap_or_default(),
        ),
        state,
    }))
}
