//! Chat completions. A conversation that names its session goes on in it; any
//! other is found again by what was said.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::chat_request::{Chat, ChatRequest};
use super::chat_stream::{ChatStream, Completion};
use crate::api::caller::Caller;
use crate::api::compat::begin::{Begun, begin, replay};
use crate::api::compat::ending::{self, Ending};
use crate::api::compat::object::set;
use crate::api::compat::{conversation, headers, ids, media, story, stream};
use crate::api::failure::Failure;
use crate::api::lifetime::Lifetime;
use crate::api::once;
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::principal::Scope;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::turn::TurnStatus;
use crate::store::Story;
use crate::turn::requests::Whither;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(create_chat_completion))
}

/// Create a chat completion: one answer, or with `stream` its chunks.
///
/// The server's agent answers and runs its tools itself. A call that needs an
/// approval parks the turn. A stream stays open: a chunk with an empty `content`
/// has `hermes.approval`, and so has the one that tells the decision; with
/// `hermes.approval_events` they are events of their own as well. An answer that
/// is not streamed says in its `content` and in `hermes` what is asked; after the
/// decision the same request under the same `Idempotency-Key`, or `GET
/// /v1/runs/{run_id}`, has the answer.
///
/// A stream that is left cancels a turn that runs (header
/// `X-Hermes-On-Disconnect: continue` keeps it); one that waits for a person
/// goes on.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "chat", request_body = ChatRequest,
    params(
        ("X-Hermes-Session-Id" = Option<String>, Header, description = "The session, made where there is none of \
            this name; it remembers what was said."),
        ("X-Hermes-Session-Key" = Option<String>, Header, description = "Whose memory the conversation is about; it \
            tells conversations apart that begin alike."),
        ("X-Hermes-On-Disconnect" = Option<String>, Header, description = "`cancel` or `continue`."),
        ("X-Hermes-Approval-Events" = Option<bool>, Header, description = "As `hermes.approval_events`.")),
    responses((status = 200, description = "The completion, or its chunks.",
        content((Value = "application/json"), (String = "text/event-stream")),
        headers(("X-Hermes-Session-Id" = String, description = "Send it to go on in the same session.")))))]
pub(super) async fn create_chat_completion(
    State(state): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    state.takes_work()?;
    let (request, once): (ChatRequest, _) = payload.loose_once(&caller.principal).await?;
    let chat = request.read(&headers)?;
    let begun = match replay(&caller, &once).await? {
        Some(begun) => begun,
        None => {
            let whither = whither(&state, &caller, &chat).await?;
            begin(&state, &caller, (whither, once), chat.ask(), chat.stream).await?
        }
    };
    let replayed = begun.replayed;
    let mut told = told(&begun.session_name, chat.key.as_deref());
    let answer = if chat.stream {
        streamed(&state, &caller, begun, &chat)
    } else {
        let (more, body) = whole(&state, &caller, begun, &chat).await?;
        told.extend(more);
        Json(body).into_response()
    };
    Ok(once::marked((told, answer), replayed))
}

async fn whither(state: &ApiState, caller: &Caller, chat: &Chat) -> Result<Whither, Failure> {
    let said = &chat.dialogue;
    if let Some(name) = &chat.session {
        return conversation::of_name(state, caller, name.clone(), &said.history).await;
    }
    let first = said.history.first().map_or(&said.input, |first| &first.parts);
    let user = &caller.principal.user;
    let fingerprint = conversation::fingerprint(user, chat.key.as_deref(), said.system.as_deref(), first);
    conversation::of_history(state, caller, fingerprint, &said.history).await
}

/// The headers that say which conversation it is.
fn told(session: &str, key: Option<&str>) -> HeaderMap {
    let named = [(headers::SESSION_ID, Some(session)), (headers::SESSION_KEY, key)];
    let named = named
        .into_iter()
        .filter_map(|(name, value)| Some((name, HeaderValue::from_str(value?).ok()?)));
    named.collect()
}

fn streamed(state: &ApiState, caller: &Caller, begun: Begun, chat: &Chat) -> Response {
    let follower = begun.follower(state, caller);
    stream::response(stream::Watched {
        state: state.clone(),
        follower,
        leash: begun.leash,
        lifetime: Lifetime::of(state, caller),
        encoder: ChatStream::new(
            state.engine.registry(caller.principal.tenant),
            Completion::of(&begun.turn, chat.model.as_deref(), &state.engine.settings().model),
            chat.approval_events,
        ),
    })
}

/// The whole answer, and what of it stands in headers.
async fn whole(
    state: &ApiState,
    caller: &Caller,
    mut begun: Begun,
    chat: &Chat,
) -> Result<(Vec<(HeaderName, HeaderValue)>, Value), Failure> {
    let story = story::at_rest(state, caller, &begun.turn, &mut begun.leash).await?;
    let completion = Completion::of(&begun.turn, chat.model.as_deref(), &state.engine.settings().model);
    let (content, finish_reason, hermes) = if story.turn.status == TurnStatus::Waiting {
        (ending::waits(&story), "stop", Some(waiting(&story)))
    } else {
        let said = ending::last_text(&story.messages);
        let ending = Ending::of(&story.turn.view(), said.is_some(), ending::is_cut(&story.messages));
        let content = match (said, &ending.error) {
            (Some(said), _) => said,
            (None, Some(error)) => error.clone(),
            (None, None) => String::new(),
        };
        if content.is_empty() && !ending.completed {
            return Err(Problem::new(ProblemCode::UpstreamError, "the turn ended without an answer").into());
        }
        let hermes = (!ending.completed).then(|| ending.hermes());
        let content = media::with_images(state, caller, story.session.id, content).await;
        (content, ending.finish_reason, hermes)
    };
    let mut body = completion.whole(&content, finish_reason, &story.turn.usage);
    let mut headers = Vec::new();
    if let Some(hermes) = hermes {
        headers = marks(&hermes);
        set(&mut body, "hermes", hermes);
    }
    Ok((headers, body))
}

/// What a client that is not streamed learns of a turn that waits.
fn waiting(story: &Story) -> Value {
    let mut told = ending::awaited(story);
    set(&mut told, "run_id", json!(ids::run(story.turn.turn_id)));
    set(&mut told, "turn_id", json!(story.turn.turn_id));
    set(&mut told, "session_id", json!(story.session.id));
    told
}

fn marks(hermes: &Value) -> Vec<(HeaderName, HeaderValue)> {
    let partial = if hermes["partial"] == true { "true" } else { "false" };
    let mut marks = vec![
        (headers::COMPLETED, HeaderValue::from_static("false")),
        (headers::PARTIAL, HeaderValue::from_static(partial)),
    ];
    let error = hermes["error"]
        .as_str()
        .map(|error| crate::base::text::first_chars(error, 200));
    marks.extend(error.and_then(|error| Some((headers::ERROR, HeaderValue::from_str(error).ok()?))));
    marks
}
