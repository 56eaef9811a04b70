//! Talking in a session: one answer, or its events. A turn of it is a run as any
//! other: its id serves to answer approvals and to stop it.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::session_events::SessionEvents;
use super::sessions::{SessionName, found};
use crate::api::caller::Caller;
use crate::api::compat::begin::{Ask, Begun, begin, metadata, replay};
use crate::api::compat::ending::{self, Ending};
use crate::api::compat::object::{set, set_in};
use crate::api::compat::{content, headers, ids, story, stream};
use crate::api::failure::Failure;
use crate::api::lifetime::Lifetime;
use crate::api::once;
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::principal::Scope;
use crate::model::turn::{OnDisconnect, TurnStatus};
use crate::store::Story;
use crate::turn::requests::Whither;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(chat_in_session))
        .routes(routes!(stream_chat_in_session))
}

/// Something said in a session.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct SessionChat {
    /// A text or parts.
    #[serde(default)]
    #[schema(value_type = Object)]
    message: Value,
    /// The same.
    #[serde(default)]
    #[schema(value_type = Object)]
    input: Value,
    /// Said to the model in this turn only.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    system_message: Value,
    /// The same.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    instructions: Value,
}

impl SessionChat {
    fn ask(&self, headers: &HeaderMap) -> Result<Ask, Failure> {
        let said = [&self.message, &self.input].into_iter().find(|value| !value.is_null());
        let Some(said) = said else {
            let detail = "say something in `message` or `input`";
            return Err(Failure::field("/message", detail).known_as("missing_message"));
        };
        let system = [&self.system_message, &self.instructions]
            .into_iter()
            .find(|value| !value.is_null());
        let instructions = match system {
            None => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                return Err(Failure::field("/system_message", "expected a text").known_as("invalid_system_message"));
            }
        };
        Ok(Ask {
            input: content::parts(said, "/message")?,
            instructions,
            metadata: metadata("session_chat", headers::session_key(headers)?.as_deref()),
            // The run can be stopped by its id.
            on_disconnect: headers::on_disconnect(headers)?.unwrap_or(OnDisconnect::Continue),
            ..Ask::default()
        })
    }
}

async fn begun(
    state: &ApiState,
    caller: &Caller,
    name: &str,
    headers: &HeaderMap,
    payload: Payload,
) -> Result<Begun, Failure> {
    caller.require(Scope::TurnsWrite)?;
    state.takes_work()?;
    let (chat, once): (SessionChat, _) = payload.loose_once(&caller.principal).await?;
    let ask = chat.ask(headers)?;
    if let Some(begun) = replay(caller, &once).await? {
        return Ok(begun);
    }
    let session = found(caller, name).await?;
    begin(state, caller, (Whither::Session(session), once), ask, true).await
}

/// The headers that say which conversation it is.
fn told(begun: &Begun, headers: &HeaderMap) -> Result<HeaderMap, Failure> {
    let key = headers::session_key(headers)?;
    let named = [
        (headers::SESSION_ID, Some(begun.session_name.clone())),
        (headers::SESSION_KEY, key),
    ];
    Ok(named
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?.parse().ok()?)))
        .collect())
}

/// Say something in a session and wait for the answer.
///
/// A turn that waits for a person answers at once: `status` is
/// `waiting_for_approval` or `waiting_for_input`, and `approvals`, `questions` and
/// `tool_calls` say what is asked. Failures are told by
/// `completed`, `failed` and `error`.
#[utoipa::path(post, path = "/api/sessions/{session_id}/chat", tag = "hermes sessions",
    params(("session_id" = String, Path)), request_body = SessionChat,
    responses((status = 200, description = "What came of it.", body = Value)))]
pub(super) async fn chat_in_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(SessionName(name)): InPath<SessionName>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    let mut begun = begun(&state, &caller, &name, &headers, payload).await?;
    let story = story::at_rest(&state, &caller, &begun.turn, &mut begun.leash).await?;
    let told = told(&begun, &headers)?;
    let body = answer(&state, &begun.session_name, &story);
    Ok(once::marked((told, Json(body)), begun.replayed))
}

fn answer(state: &ApiState, session: &str, story: &Story) -> Value {
    let turn = story.turn.view();
    let run_id = ids::run(turn.id);
    let mut body = json!({"object": "hermes.session.chat.completion", "session_id": session,
        "message": {"role": "assistant", "content": ""}, "usage": ending::usage(&turn.usage),
        "runtime": {"run_id": run_id, "turn_id": turn.id, "model": state.engine.settings().model}});
    if turn.status == TurnStatus::Waiting {
        set(&mut body, "status", json!(ending::rest_status(story)));
        set_in(&mut body, "message", "content", json!(ending::waits(story)));
        if let (Value::Object(body), Value::Object(awaited)) = (&mut body, ending::awaited(story)) {
            body.extend(awaited);
        }
        return body;
    }
    let said = ending::last_text(&story.messages);
    let ending = Ending::of(&turn, said.is_some(), ending::is_cut(&story.messages));
    set_in(
        &mut body,
        "message",
        "content",
        json!(said.or_else(|| ending.error.clone()).unwrap_or_default()),
    );
    set(
        &mut body,
        "status",
        json!(if ending.failed { "failed" } else { "completed" }),
    );
    if let (Value::Object(body), Value::Object(hermes)) = (&mut body, ending.hermes()) {
        body.extend(hermes);
    }
    body
}

/// Say something in a session and follow what comes of it.
#[utoipa::path(post, path = "/api/sessions/{session_id}/chat/stream", tag = "hermes sessions",
    params(("session_id" = String, Path)), request_body = SessionChat,
    responses((status = 200, description = "Named events; the last is `done`.",
        body = String, content_type = "text/event-stream")))]
pub(super) async fn stream_chat_in_session(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(SessionName(name)): InPath<SessionName>,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    let begun = begun(&state, &caller, &name, &headers, payload).await?;
    let told = told(&begun, &headers)?;
    let replayed = begun.replayed;
    let follower = begun.follower(&state, &caller);
    let answer = stream::response(stream::Watched {
        follower,
        leash: begun.leash,
        lifetime: Lifetime::of(&state, &caller),
        encoder: SessionEvents::new(begun.session_name, ids::run(begun.turn.id), &begun.turn),
        state,
    });
    Ok(once::marked((told, answer), replayed))
}
