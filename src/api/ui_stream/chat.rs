//! The two calls of the AI SDK's chat transport: a chat goes on, and a page that
//! was opened again finds the stream of what is under way.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};

use super::encode::{self, UiStream};
use super::request::{Answer, Asked, UiChat};
use crate::api::caller::Caller;
use crate::api::compat::begin::{Ask, begin, metadata, replay};
use crate::api::compat::handed::{self, Output};
use crate::api::compat::{conversation, headers, question, story, stream};
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::lifetime::Lifetime;
use crate::api::native::streams;
use crate::api::once;
use crate::api::path::{FromSegments, InPath};
use crate::api::payload::Payload;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::live::cursor::Cursor;
use crate::live::follow::Shown;
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::id::{ApprovalId, CallId, SessionId};
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::model::record::TurnRecord;
use crate::model::turn::{OnDisconnect, Turn};
use crate::store::Once;
use crate::turn::requests::{AnswerRequest, BatchRequest};

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(ui_chat)).routes(routes!(ui_resume))
}

/// Go on with a chat: say something, answer approvals, or give the outputs of calls
/// that the page carried out. What comes of it is streamed.
#[utoipa::path(post, path = "/v1/ui/chat", tag = "ui", request_body = UiChat,
    responses((status = 200, description = "Chunks of a UI message.", body = String,
        content_type = "text/event-stream")))]
pub(super) async fn ui_chat(
    State(state): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    state.takes_work()?;
    let (chat, once): (UiChat, _) = payload.loose_once(&caller.principal).await?;
    let (name, asked) = chat.read()?;
    let input = match asked {
        Asked::Say(input) => input,
        Asked::Decide {
            message_id,
            answers,
            outputs,
        } => {
            if let Some(outputs) = new(&caller, outputs).await? {
                return given(&state, &caller, (outputs, once), message_id).await;
            }
            return decided(&state, &caller, (answers, once), message_id).await;
        }
    };
    let begun = match replay(&caller, &once).await? {
        Some(begun) => begun,
        None => {
            let whither = conversation::of_name(&state, &caller, name, &[]).await?;
            let key = headers::session_key(&headers)?;
            let ask = Ask {
                input,
                tools: chat.tools,
                instructions: chat.instructions,
                metadata: metadata("ui", key.as_deref()),
                // A page that was closed comes back to what is under way.
                on_disconnect: headers::on_disconnect(&headers)?.unwrap_or(OnDisconnect::Continue),
                ..Ask::default()
            };
            begin(&state, &caller, (whither, once), ask, true).await?
        }
    };
    let replayed = begun.replayed;
    let from = begun.first_seq - 1;
    Ok(once::marked(
        streamed(&state, &caller, &begun.turn, from, (begun.leash, None)),
        replayed,
    ))
}

fn streamed(
    state: &ApiState,
    caller: &Caller,
    turn: &Turn,
    from: i64,
    (leash, message_id): (Leash, Option<String>),
) -> Response {
    let cursor = Cursor { seq: from, d: 0 };
    let watched = (turn.session_id, Some(turn.id));
    let follower = streams::follow(state, caller.scope.clone(), watched, cursor, Shown::default());
    encode::response(stream::Watched {
        state: state.clone(),
        follower,
        leash,
        lifetime: Lifetime::of(state, caller),
        encoder: UiStream::new(turn, message_id),
    })
}

/// The outputs of calls that wait for them; those of earlier calls came along.
async fn new(caller: &Caller, outputs: Vec<Output>) -> Result<Option<Vec<Output>>, Failure> {
    let named: Vec<CallId> = outputs.iter().filter_map(|output| output.call.parse().ok()).collect();
    let Some(last) = named.last().copied() else {
        return Ok(None);
    };
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.turns_of_calls(&[last]).await }));
    let Some((_, turn)) = read.await?.pop() else {
        return Ok(None);
    };
    let Some(story) = story::read(caller, turn).await? else {
        return Ok(None);
    };
    let out: Vec<String> = handed::out(&story.messages)
        .iter()
        .map(|call| call.id.to_string())
        .collect();
    let fresh: Vec<Output> = outputs
        .into_iter()
        .filter(|output| out.contains(&output.call))
        .collect();
    Ok((!fresh.is_empty()).then_some(fresh))
}

/// Gives calls their outputs; what follows goes on in the message that has them.
async fn given(
    state: &ApiState,
    caller: &Caller,
    (outputs, once): (Vec<Output>, Option<Once>),
    message_id: Option<String>,
) -> Result<Response, Failure> {
    let given = handed::give(state, caller, outputs, once).await?;
    let (session, turn) = (given.session, given.turn);
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.turn(session, turn).await }));
    let record = read.await?.ok_or_else(|| Failure::not_found("turn"))?;
    let told = streamed(state, caller, &record.view(), given.after, (Leash::none(), message_id));
    Ok(once::marked(told, given.replayed))
}

/// Answers approvals; what follows goes on in the message that asked.
async fn decided(
    state: &ApiState,
    caller: &Caller,
    (answers, once): (Vec<Answer>, Option<Once>),
    message_id: Option<String>,
) -> Result<Response, Failure> {
    caller.require(Scope::ApprovalsDecide)?;
    let asked = asked(caller, &answers).await?;
    let Some(first) = asked.iter().map(|(approval, _)| approval).next().cloned() else {
        return Err(Failure::not_found("approval"));
    };
    let session = first.session_id;
    // Answers of earlier messages are settled; they came along.
    let open = asked
        .iter()
        .filter(|(approval, _)| approval.status == ApprovalStatus::Pending);
    let batch = BatchRequest {
        atomic: true,
        answers: open
            .map(|(approval, answer)| (approval.id, decision(approval, answer, caller)))
            .collect(),
    };
    let picked = batch.answers.first().map_or(first.id, |(id, _)| *id);
    if !batch.answers.is_empty() {
        let (engine, scope) = (state.engine.clone(), caller.scope.clone().once(once));
        let done = state
            .finish_once(async move { engine.decide_batch(&scope, session, batch).await })
            .await?;
        done.value.into_iter().collect::<Result<Vec<Approval>, Problem>>()?;
    }
    let turn = first.turn_id;
    let read = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            Ok((
                rows.turn(session, turn).await?,
                rows.answered_at(session, picked).await?,
            ))
        })
    });
    let (record, seq) = read.await?;
    let record = record.ok_or_else(|| Failure::not_found("turn"))?;
    let from = seq.map_or(record.first_seq, |seq| seq) - 1;
    Ok(streamed(
        state,
        caller,
        &record.view(),
        from,
        (Leash::none(), message_id),
    ))
}

async fn asked(caller: &Caller, answers: &[Answer]) -> Result<Vec<(Approval, Answer)>, Failure> {
    let answers = answers.to_vec();
    let read = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            let mut found = Vec::new();
            for answer in answers {
                let Ok(id) = answer.approval.parse::<ApprovalId>() else {
                    continue;
                };
                if found.iter().any(|(known, _): &(Approval, Answer)| known.id == id) {
                    continue;
                }
                found.extend(rows.approval(id).await?.map(|approval| (approval, answer)));
            }
            Ok(found)
        })
    });
    let found = read.await?;
    let turn = found.last().map(|(approval, _)| approval.turn_id);
    Ok(found
        .into_iter()
        .filter(|(approval, _)| Some(approval.turn_id) == turn)
        .collect())
}

fn decision(approval: &Approval, answer: &Answer, caller: &Caller) -> AnswerRequest {
    AnswerRequest {
        choice: question::offered(answer.choice, approval),
        digest: None,
        reason: answer
            .reason
            .as_deref()
            .map(|reason| crate::base::text::first_chars(reason, 4_000).to_owned()),
        stop_turn: false,
        arguments: None,
        grant: None,
        by: caller.principal.user.clone(),
    }
}

/// A chat in the path; any text is one.
pub(super) struct ChatName(String);

impl FromSegments for ChatName {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        Ok(Self(segments.first().copied().unwrap_or_default().to_owned()))
    }
}

/// Find the stream of what is under way in a chat, from its beginning.
#[utoipa::path(get, path = "/v1/ui/chat/{chat_id}/stream", tag = "ui", params(("chat_id" = String, Path)),
    responses(
        (status = 200, description = "Chunks of a UI message.", body = String, content_type = "text/event-stream"),
        (status = 204, description = "Nothing is under way.")))]
pub(super) async fn ui_resume(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(ChatName(name)): InPath<ChatName>,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let active = match conversation::named(&caller, &name).await? {
        Some(session) => active(&caller, session).await?,
        None => None,
    };
    Ok(match active {
        Some(turn) => streamed(&state, &caller, &turn.view(), turn.first_seq - 1, (Leash::none(), None)),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

async fn active(caller: &Caller, session: SessionId) -> Result<Option<TurnRecord>, Failure> {
    let read = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            let active = rows
                .session_record(session)
                .await?
                .and_then(|record| record.active_turn_id);
            match active {
                Some(turn) => rows.turn(session, turn).await,
                None => Ok(None),
            }
        })
    });
    Ok(read.await?)
}
