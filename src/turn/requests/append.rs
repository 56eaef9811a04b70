//! Messages from elsewhere, added to an idle session as its past. They become
//! turns that are over, so that everything else knows them already; no model is
//! asked. One that has a name of its own is stored once, however often it comes.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::adopt::History;
use super::sessions::{told, visible_state};
use super::turns::{busy, is_child};
use super::{EngineError, Verdict, earlier};
use crate::base::Timestamp;
use crate::model::event::EventType;
use crate::model::id::{MessageId, SessionId, TurnId};
use crate::model::message::{FinishReason, Message, Part, Role};
use crate::model::record::{MessageRecord, SessionRecord, TurnRecord};
use crate::model::turn::{StopReason, TurnOptions, TurnStatus};
use crate::store::{Rows, Scope, StoreError};
use crate::turn::engine::Engine;

/// A message that was said elsewhere, by a user or a model.
#[derive(Clone, Debug)]
pub struct OutsideMessage {
    pub role: Role,
    pub content: Vec<Part>,
    pub external_id: Option<String>,
    /// When it was said; now where nothing is known.
    pub created_at: Option<Timestamp>,
}

/// What became of the messages of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Appended {
    /// As they are stored, in the order of the request.
    pub messages: Vec<Message>,
    /// How many of them are new.
    pub added: usize,
}

impl Engine {
    pub async fn append_messages(
        &self,
        scope: &Scope,
        id: SessionId,
        user: String,
        messages: Vec<OutsideMessage>,
    ) -> Verdict<Appended> {
        let engine = self.clone();
        let appended = scope.write("append_messages", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                let Some(session) = rows.lock_session(id).await? else {
                    return Ok(Err(EngineError::NotFound("session")));
                };
                if session.lineage.is_some() {
                    return Ok(Err(is_child()));
                }
                if let Some(active) = session.active_turn_id {
                    return Ok(Err(EngineError::Refused(busy(&mut rows, id, active).await?)));
                }
                let appended = append(&mut rows, &engine, session, &user, messages).await?;
                rows.remember(&appended).await?;
                Ok(Ok(appended))
            })
        });
        appended.await?
    }
}

pub(super) async fn append(
    rows: &mut Rows<'_>,
    engine: &Engine,
    mut session: SessionRecord,
    user: &str,
    messages: Vec<OutsideMessage>,
) -> Result<Appended, StoreError> {
    let names: Vec<&str> = messages.iter().filter_map(|said| said.external_id.as_deref()).collect();
    let mut known: HashMap<String, Message> = HashMap::new();
    for message in rows.messages_by_external_id(session.session_id, &names).await? {
        known.extend(message.external_id.clone().map(|name| (name, message)));
    }
    let names: Vec<Option<String>> = messages.iter().map(|said| said.external_id.clone()).collect();
    let is_new = |said: &OutsideMessage| said.external_id.as_ref().is_none_or(|name| !known.contains_key(name));
    let new: Vec<OutsideMessage> = messages.into_iter().filter(is_new).collect();
    let history = past(engine, &session, user, new);
    let mut stored = history
        .messages
        .clone()
        .into_iter()
        .map(|message| message.view(Vec::new()));
    let added = stored.len();
    let messages = names
        .into_iter()
        .filter_map(|name| match name.and_then(|name| known.remove(&name)) {
            Some(earlier) => Some(earlier),
            None => stored.next(),
        });
    let appended = Appended {
        messages: messages.collect(),
        added,
    };
    if 0 < added {
        store(rows, &mut session, history, engine.clock().now()).await?;
    }
    Ok(appended)
}

async fn store(
    rows: &mut Rows<'_>,
    session: &mut SessionRecord,
    history: History,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Some(seen) = rows.session(session.session_id).await? else {
        return Err(StoreError::Lost);
    };
    session.next_position += history.places();
    let mut writes = told(EventType::SessionUpdated, &visible_state(&seen, now));
    history.write(session.head_seq, &mut writes);
    rows.apply(session, &writes, now).await?;
    Ok(())
}

/// The messages as turns that are over: each begins with a message of a user,
/// the first one with whatever comes first.
fn past(engine: &Engine, session: &SessionRecord, user: &str, messages: Vec<OutsideMessage>) -> History {
    let (clock, now) = (engine.clock(), engine.clock().now());
    let mut history = History::default();
    for (said, position) in messages.into_iter().zip(session.next_position..) {
        let at = said.created_at.unwrap_or(now);
        let by_user = said.role == Role::User;
        let turn_id = match history.turns.last_mut() {
            Some(turn) if !by_user => {
                turn.finished_at = turn.finished_at.max(Some(at));
                turn.turn_id
            }
            _ => {
                let input = if by_user { said.content.clone() } else { Vec::new() };
                let turn = over(TurnId::new(clock), session, user, input, at);
                let id = turn.turn_id;
                history.turns.push(turn);
                id
            }
        };
        history.messages.push(MessageRecord {
            position,
            message_id: MessageId::new(clock),
            turn_id,
            role: said.role,
            content: said.content,
            reasoning: None,
            finish_reason: (!by_user).then_some(FinishReason::Stop),
            call_id: None,
            steered: false,
            external_id: said.external_id,
            created_at: at,
        });
    }
    history
}

fn over(id: TurnId, session: &SessionRecord, user: &str, input: Vec<Part>, at: Timestamp) -> TurnRecord {
    let options = TurnOptions::default();
    TurnRecord {
        status: TurnStatus::Completed,
        stop_reason: Some(StopReason::EndTurn),
        epoch: 1,
        started_at: Some(at),
        finished_at: Some(at),
        ..TurnRecord::queued(id, session.session_id, user.to_owned(), input, options, at)
    }
}
