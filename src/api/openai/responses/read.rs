//! Responses, read: as they are now, as a stream from anywhere, what was put in;
//! cancelled and deleted.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::constant::constant;
use super::fold::Fold;
use super::numbers::Number;
use super::request::{ASKED, CONVERSATION};
use super::stream::ResponseStream;
use crate::api::caller::Caller;
use crate::api::compat::begin::name_of;
use crate::api::compat::ids::ResponseId;
use crate::api::compat::{conversation, story, stream};
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::lifetime::Lifetime;
use crate::api::native::streams;
use crate::api::path::{FromSegments, InPath};
use crate::api::payload::Payload;
use crate::api::query::Loose;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::live::cursor::Cursor;
use crate::live::follow::Shown;
use crate::model::event::{CallData, Event, EventBody, MessageData, TurnData};
use crate::model::message::{Part, Role};
use crate::model::principal::Scope;
use crate::model::turn::{Turn, TurnStatus, Usage};
use crate::store::Story;
use crate::store::sessions::SessionPatch;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(get_response, delete_response))
        .routes(routes!(cancel_response))
        .routes(routes!(list_response_input_items))
}

/// Events read at once.
const PAGE: u32 = 200;

fn no_such_response() -> Failure {
    Failure::not_found("response").known_as("response_not_found")
}

/// A response in the path. What is no id of one names nothing.
pub(super) struct InResponse(ResponseId);

impl FromSegments for InResponse {
    fn from_segments(segments: &[&str]) -> Result<Self, Failure> {
        let id = segments.first().and_then(|text| ResponseId::parse(text));
        id.map(Self).ok_or_else(no_such_response)
    }
}

/// A response with what is needed to tell of it.
pub(super) struct Seen {
    id: ResponseId,
    story: Story,
    asked: Value,
    configured: String,
    /// What the turn had taken before the response began.
    before: Usage,
}

impl Seen {
    /// The response of that id. Of one that is being made, `asked` is what it
    /// repeats; one that is read has it with its turn.
    pub(super) async fn of(
        state: &ApiState,
        caller: &Caller,
        id: ResponseId,
        asked: Option<&Value>,
    ) -> Result<Self, Failure> {
        let story = story::read(caller, id.turn).await?.ok_or_else(no_such_response)?;
        let kept = story.turn.options.metadata.get(ASKED).cloned();
        let asked = match (asked, kept) {
            (Some(asked), _) => asked.clone(),
            (None, Some(kept)) => kept,
            // A turn of another surface: no response of anybody's.
            (None, None) => return Err(no_such_response()),
        };
        Ok(Self {
            before: before(caller, &story, id).await?,
            id,
            story,
            asked,
            configured: state.engine.settings().model.clone(),
        })
    }

    /// One that can be read: it was stored, and nobody deleted it.
    async fn stored(state: &ApiState, caller: &Caller, id: ResponseId) -> Result<Self, Failure> {
        let seen = Self::of(state, caller, id, None).await?;
        if seen.asked.get("store") == Some(&Value::Bool(false)) || seen.story.is_deleted_response {
            return Err(no_such_response());
        }
        Ok(seen)
    }

    pub(super) fn turn(&self) -> Turn {
        self.story.turn.view()
    }

    pub(super) fn session_name(&self) -> String {
        let session = &self.story.session;
        session.external_id.clone().unwrap_or_else(|| session.id.to_string())
    }

    fn fold(&self) -> Fold {
        let name = self.session_name();
        let constant = constant(self.id, &self.turn(), &name, &self.asked, &self.configured);
        Fold::new(constant, self.before)
    }

    fn beginning(&self) -> Cursor {
        Cursor {
            seq: self.id.after.max(self.story.turn.first_seq - 1),
            d: 0,
        }
    }

    /// The log of the response up to an event.
    async fn log(&self, caller: &Caller, to: i64) -> Result<Vec<Event>, Failure> {
        let (session, turn, mut after) = (self.story.session.id, self.id.turn, self.beginning().seq);
        let read = caller.scope.read(move |mut rows| {
            Box::pin(async move {
                let mut all = Vec::new();
                loop {
                    let Some((_, page, gap)) = rows.log(session, Some(turn), after, PAGE).await? else {
                        return Ok(None);
                    };
                    if gap.is_some() {
                        return Ok(None);
                    }
                    let Some(last) = page.items.last() else { break };
                    after = last.seq;
                    all.extend(page.items.into_iter().filter(|event| event.seq <= to));
                    if to <= after {
                        break;
                    }
                }
                Ok(Some(all))
            })
        });
        Ok(read.await?.unwrap_or_else(|| self.log_of_bodies()))
    }

    /// The same of a turn whose events are not kept any more.
    fn log_of_bodies(&self) -> Vec<Event> {
        let turn = self.turn();
        let mut bodies = Vec::new();
        for message in self
            .story
            .messages
            .iter()
            .filter(|message| message.role == Role::Assistant)
        {
            bodies.push(EventBody::MessageCompleted(MessageData {
                message: message.clone(),
            }));
            for call in &message.tool_calls {
                let data = CallData {
                    tool_call: call.clone(),
                };
                bodies.extend([
                    EventBody::ToolCallProposed(data.clone()),
                    EventBody::ToolCallCompleted(data),
                ]);
            }
        }
        let data = TurnData {
            turn: turn.clone(),
            reason: None,
            steer: None,
        };
        bodies.push(match turn.status {
            TurnStatus::Completed => EventBody::TurnCompleted(data),
            TurnStatus::Cancelled => EventBody::TurnCancelled(data),
            TurnStatus::Failed => EventBody::TurnFailed(data),
            _ => EventBody::TurnInterrupted(data),
        });
        let seq = self.story.turn.last_seq.unwrap_or_default();
        let event = |body| Event {
            id: seq.to_string(),
            seq,
            body,
            session_id: turn.session_id,
            turn_id: Some(turn.id),
            at: turn.finished_at.unwrap_or(turn.created_at),
        };
        bodies.into_iter().map(event).collect()
    }

    /// The response as it is now.
    pub(super) async fn response(&self, caller: &Caller) -> Result<Value, Failure> {
        let mut fold = self.fold();
        let log = self.log(caller, i64::MAX).await?;
        let over = log.iter().any(|event| fold.take(&event.body, &mut Vec::new()));
        if !over && self.story.turn.status == TurnStatus::Waiting {
            fold.rests(&self.turn());
        }
        Ok(fold.response())
    }

    /// Its events behind a number, or all.
    pub(super) async fn streamed(
        &self,
        state: &ApiState,
        caller: &Caller,
        after: Option<i64>,
        leash: Leash,
    ) -> Result<Response, Failure> {
        let beginning = self.beginning();
        let number = after.map(Number::decode);
        let from = number.map_or(beginning, Number::resume);
        let from = if from.seq < beginning.seq { beginning } else { from };
        let from = streams::within(from, self.story.session.head_seq)
            .map_err(|_| Failure::field("starting_after", "no event of the response has this number"))?;
        let turn = &self.story.turn;
        let mut over = turn.status.is_terminal() && turn.last_seq.is_some_and(|last| last <= from.seq);
        let encoder = match after {
            None => ResponseStream::new(self.fold(), beginning),
            Some(after) => {
                let past = self.log(caller, from.seq).await?;
                let mut fold = self.fold();
                over |= past.iter().any(|event| fold.take(&event.body, &mut Vec::new()));
                ResponseStream::behind(self.fold(), beginning, after, past)
            }
        };
        if over {
            return Ok(encoder.at_end());
        }
        let watched = (self.story.session.id, Some(self.id.turn));
        let follower = streams::follow(state, caller.scope.clone(), watched, from, Shown::default());
        Ok(stream::response(stream::Watched {
            state: state.clone(),
            follower,
            leash,
            lifetime: Lifetime::of(state, caller),
            encoder,
        }))
    }
}

/// What the turn of a response had taken when it waited for what the response goes
/// on behind: that was another response's.
async fn before(caller: &Caller, story: &Story, id: ResponseId) -> Result<Usage, Failure> {
    if id.after == 0 {
        return Ok(Usage::default());
    }
    let session = story.session.id;
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.last_waiting(session, id.turn, id.after).await }));
    Ok(match read.await?.map(|event| event.body) {
        Some(EventBody::TurnWaiting(data)) => data.turn.usage,
        _ => Usage::default(),
    })
}

/// The instructions of the last turn of a conversation.
pub(super) async fn last_instructions(caller: &Caller, name: &str) -> Result<Option<String>, Failure> {
    let Some(session) = conversation::named(caller, name).await? else {
        return Ok(None);
    };
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.turns(session, None, None, 1).await }));
    Ok(read.await?.pop().and_then(|turn| turn.options.instructions))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ResponseQuery {
    /// Its events in place of the response.
    #[param(value_type = Option<bool>)]
    stream: Option<String>,
    /// With `stream`: only events of a larger `sequence_number`.
    #[param(value_type = Option<i64>)]
    starting_after: Option<String>,
}

/// Read a response as it is now, or its events from any number on.
#[utoipa::path(get, path = "/v1/responses/{response_id}", tag = "responses",
    params(("response_id" = String, Path), ResponseQuery),
    responses((status = 200, description = "The response, or its events.",
        content((Value = "application/json"), (String = "text/event-stream")))))]
pub(super) async fn get_response(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InResponse(id)): InPath<InResponse>,
    Loose(query): Loose<ResponseQuery>,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let seen = Seen::stored(&state, &caller, id).await?;
    if !query
        .stream
        .is_some_and(|word| ["1", "true", "yes", "on"].contains(&word.to_ascii_lowercase().as_str()))
    {
        return Ok(Json(seen.response(&caller).await?).into_response());
    }
    let after = match query.starting_after {
        None => None,
        Some(text) => match text.parse() {
            Ok(number) => Some(number),
            Err(_) => return Err(Failure::field("starting_after", "expected a number")),
        },
    };
    seen.streamed(&state, &caller, after, Leash::none()).await
}

/// Stop what makes a response. One that is over is answered as it is.
#[utoipa::path(post, path = "/v1/responses/{response_id}/cancel", tag = "responses",
    params(("response_id" = String, Path)),
    responses((status = 200, description = "The response as it is now.", body = Value)))]
pub(super) async fn cancel_response(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InResponse(id)): InPath<InResponse>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let once = payload.once(&caller.principal).await?;
    let seen = Seen::stored(&state, &caller, id).await?;
    let (engine, scope, session) = (
        state.engine.clone(),
        caller.scope.clone().once(once),
        seen.story.session.id,
    );
    let cancelled = state
        .finish_once(async move { engine.cancel_turn(&scope, session, id.turn).await })
        .await?;
    let mut leash = Leash::none();
    // A turn that runs ends a moment later.
    story::at_rest(&state, &caller, &cancelled.value, &mut leash).await?;
    let body = Seen::stored(&state, &caller, id).await?.response(&caller).await?;
    Ok(cancelled.answer(|_: Turn| Json(body).into_response()))
}

/// Delete a response: nothing goes on from it any more. Its session stays.
#[utoipa::path(delete, path = "/v1/responses/{response_id}", tag = "responses",
    params(("response_id" = String, Path)),
    responses((status = 200, description = "It is gone.", body = Value)))]
pub(super) async fn delete_response(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InResponse(id)): InPath<InResponse>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::TurnsWrite)?;
    let seen = Seen::stored(&state, &caller, id).await?;
    let session = seen.story.session.id;
    let is_named = seen
        .story
        .session
        .external_id
        .as_ref()
        .is_some_and(|name| name.starts_with(CONVERSATION));
    let (engine, scope) = (state.engine.clone(), caller.scope.clone());
    let deleted = state.finish(async move {
        engine.delete_response(&scope, session, id.turn).await?;
        if is_named
            && scope
                .read(move |mut rows| Box::pin(async move { rows.turns(session, None, None, 1).await }))
                .await?
                .first()
                .is_some_and(|last| last.turn_id == id.turn)
        {
            let patch = SessionPatch {
                external_id: Some(None),
                ..SessionPatch::default()
            };
            engine.patch_session(&scope, session, patch).await?;
        }
        Ok::<_, crate::turn::requests::EngineError>(())
    });
    deleted.await?;
    Ok(Json(
        json!({"id": id.to_string(), "object": "response", "deleted": true}),
    ))
}

/// List what was put into a response.
#[utoipa::path(get, path = "/v1/responses/{response_id}/input_items", tag = "responses",
    params(("response_id" = String, Path)),
    responses((status = 200, description = "The items.", body = Value)))]
pub(super) async fn list_response_input_items(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(InResponse(id)): InPath<InResponse>,
) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let seen = Seen::stored(&state, &caller, id).await?;
    let said = seen.story.messages.iter().filter(|message| message.role == Role::User);
    let data: Vec<Value> = said
        .map(|message| {
            json!({"id": message.id, "type": "message", "role": "user", "status": "completed",
                "content": message.content.iter().map(input_part).collect::<Vec<_>>()})
        })
        .collect();
    let end = |item: Option<&Value>| item.map(|item| item["id"].clone());
    Ok(Json(
        json!({"object": "list", "first_id": end(data.first()), "last_id": end(data.last()), "has_more": false,
        "data": data, "session_id": name_of(&caller.scope, seen.story.session.id).await?}),
    ))
}

fn input_part(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({"type": "input_text", "text": text}),
        Part::ImageUrl { image_url } => {
            json!({"type": "input_image", "image_url": image_url.url, "detail": "auto"})
        }
    }
}
