//! Events as clients read them, made of what a log's row says and the bodies
//! that it names; wherever those come from.

use std::collections::HashMap;

use serde_json::Value;

use super::StoreError;
use super::slice;
use crate::base::Timestamp;
use crate::model::approval::Approval;
use crate::model::event::{
    ApprovalData, CallData, Event, EventBody, EventType, MessageData, QuestionData, SessionData, TextData, TurnData,
};
use crate::model::id::{ApprovalId, CallId, MessageId, QuestionId, SessionId, TurnId};
use crate::model::message::Message;
use crate::model::question::Question;
use crate::model::record::{CallRecord, TurnRecord};
use crate::model::session::Session;

/// An event as stored.
pub(super) struct Stored {
    pub(super) seq: i64,
    pub(super) turn_id: Option<TurnId>,
    pub(super) kind: EventType,
    pub(super) at: Timestamp,
    pub(super) data: Value,
}

/// The bodies a page of events needs.
#[derive(Default)]
pub(super) struct Bodies {
    /// Events whose bodies are here; the rest is for the next slice.
    pub(super) fits: usize,
    pub(super) session: Option<Session>,
    pub(super) turns: HashMap<TurnId, TurnRecord>,
    pub(super) messages: HashMap<MessageId, Message>,
    pub(super) calls: HashMap<CallId, (CallRecord, Option<String>)>,
    pub(super) approvals: HashMap<ApprovalId, Approval>,
    pub(super) questions: HashMap<QuestionId, Question>,
}

impl Bodies {
    /// What the event's text weighs: an input is in every event of its turn.
    pub(super) fn weight(&self, event: &Stored) -> usize {
        let data = &event.data;
        let turn = id_in(data, "turn_id").and_then(|id| self.turns.get(&id));
        let message = id_in(data, "message_id").and_then(|id| self.messages.get(&id));
        let call = id_in(data, "call_id").and_then(|id| self.calls.get(&id));
        turn.map_or(0, |turn| slice::weight(&turn.input))
            + message.map_or(0, slice::weight_of)
            + call.map_or(0, |(call, result)| {
                call.arguments_raw.len() + result.as_ref().map_or(0, String::len)
            })
    }

    pub(super) fn render(&self, session_id: SessionId, event: &Stored) -> Result<Event, StoreError> {
        let body = self.body(event)?;
        Ok(Event {
            id: event.seq.to_string(),
            seq: event.seq,
            body,
            session_id,
            turn_id: event.turn_id,
            at: event.at,
        })
    }

    fn body(&self, event: &Stored) -> Result<EventBody, StoreError> {
        use EventType as T;
        let data = &event.data;
        Ok(match event.kind {
            T::SessionCreated => EventBody::SessionCreated(self.session(event)?),
            T::SessionUpdated => EventBody::SessionUpdated(self.session(event)?),
            T::SessionArchived => EventBody::SessionArchived(self.session(event)?),
            T::SessionStatus => EventBody::SessionStatus(self.session(event)?),
            T::TurnQueued => EventBody::TurnQueued(self.turn(data)?),
            T::TurnStarted => EventBody::TurnStarted(self.turn(data)?),
            T::TurnSteered => EventBody::TurnSteered(self.turn(data)?),
            T::TurnWaiting => EventBody::TurnWaiting(self.turn(data)?),
            T::TurnResumed => EventBody::TurnResumed(self.turn(data)?),
            T::TurnCompleted => EventBody::TurnCompleted(self.turn(data)?),
            T::TurnFailed => EventBody::TurnFailed(self.turn(data)?),
            T::TurnCancelled => EventBody::TurnCancelled(self.turn(data)?),
            T::TurnInterrupted => EventBody::TurnInterrupted(self.turn(data)?),
            T::TurnRolledBack => EventBody::TurnRolledBack(self.turn(data)?),
            T::MessageCompleted => EventBody::MessageCompleted(MessageData {
                message: self.message(data)?.clone(),
            }),
            T::ReasoningCompleted => {
                let message = self.message(data)?;
                let text = message.reasoning.clone().unwrap_or_default();
                EventBody::ReasoningCompleted(TextData {
                    message_id: message.id,
                    text,
                })
            }
            T::ToolCallProposed => EventBody::ToolCallProposed(self.call(data)?),
            T::ToolCallStarted => EventBody::ToolCallStarted(self.call(data)?),
            T::ToolCallCompleted => EventBody::ToolCallCompleted(self.call(data)?),
            T::ToolCallDenied => EventBody::ToolCallDenied(self.call(data)?),
            T::ToolCallCancelled => EventBody::ToolCallCancelled(self.call(data)?),
            T::ToolCallUnknown => EventBody::ToolCallUnknown(self.call(data)?),
            T::ApprovalRequested => EventBody::ApprovalRequested(self.approval(data)?),
            T::ApprovalResolved => EventBody::ApprovalResolved(self.approval(data)?),
            T::ApprovalExpired => EventBody::ApprovalExpired(self.approval(data)?),
            T::ApprovalSuperseded => EventBody::ApprovalSuperseded(self.approval(data)?),
            T::ApprovalCancelled => EventBody::ApprovalCancelled(self.approval(data)?),
            T::QuestionAsked => EventBody::QuestionAsked(self.question(data)?),
            T::QuestionAnswered => EventBody::QuestionAnswered(self.question(data)?),
            T::QuestionExpired => EventBody::QuestionExpired(self.question(data)?),
            T::QuestionCancelled => EventBody::QuestionCancelled(self.question(data)?),
            T::SubagentStarted => EventBody::SubagentStarted(read(data)?),
            T::SubagentCompleted => EventBody::SubagentCompleted(read(data)?),
            T::UsageUpdated => EventBody::UsageUpdated(read(data)?),
            T::BudgetWarning => EventBody::BudgetWarning(read(data)?),
            T::BudgetExceeded => EventBody::BudgetExceeded(read(data)?),
            T::TodoUpdated => EventBody::TodoUpdated(read(data)?),
            T::ArtifactCreated => EventBody::ArtifactCreated(read(data)?),
            T::CheckpointRestored => EventBody::CheckpointRestored(read(data)?),
            T::ToolOutputRisk => EventBody::ToolOutputRisk(read(data)?),
            T::MemoryUpdated => EventBody::MemoryUpdated(read(data)?),
            T::ProcessStarted => EventBody::ProcessStarted(read(data)?),
            T::ProcessExited => EventBody::ProcessExited(read(data)?),
            T::ProcessMatched => EventBody::ProcessMatched(read(data)?),
            T::ProcessWatchChanged => EventBody::ProcessWatchChanged(read(data)?),
            T::ModelRetrying => EventBody::ModelRetrying(read(data)?),
        })
    }

    fn session(&self, event: &Stored) -> Result<SessionData, StoreError> {
        let session = self.session.as_ref().ok_or_else(missing)?;
        let mut as_of = overlaid(session, &event.data)?;
        as_of.head_seq = event.seq;
        Ok(SessionData { session: as_of })
    }

    fn turn(&self, data: &Value) -> Result<TurnData, StoreError> {
        let turn = id_in(data, "turn_id")
            .and_then(|id| self.turns.get(&id))
            .ok_or_else(missing)?;
        let turn = overlaid(&turn.view(), data)?;
        let reason = data.get("reason").map(read).transpose()?;
        let steer = data.get("steer").map(read).transpose()?;
        Ok(TurnData { turn, reason, steer })
    }

    fn message(&self, data: &Value) -> Result<&Message, StoreError> {
        id_in(data, "message_id")
            .and_then(|id| self.messages.get(&id))
            .ok_or_else(missing)
    }

    fn call(&self, data: &Value) -> Result<CallData, StoreError> {
        let found = id_in(data, "call_id").and_then(|id| self.calls.get(&id));
        let (call, result) = found.ok_or_else(missing)?;
        let mut as_of = overlaid(&call.view(None), data)?;
        as_of.result = result.clone().filter(|_| as_of.status.is_settled());
        Ok(CallData { tool_call: as_of })
    }

    fn approval(&self, data: &Value) -> Result<ApprovalData, StoreError> {
        let approval = id_in(data, "approval_id")
            .and_then(|id| self.approvals.get(&id))
            .ok_or_else(missing)?;
        overlaid(approval, data).map(|approval| ApprovalData { approval })
    }

    fn question(&self, data: &Value) -> Result<QuestionData, StoreError> {
        let question = id_in(data, "question_id")
            .and_then(|id| self.questions.get(&id))
            .ok_or_else(missing)?;
        overlaid(question, data).map(|question| QuestionData { question })
    }
}

/// `body` with the fields that the event holds as of its time in `state`.
fn overlaid<T>(body: &T, data: &Value) -> Result<T, StoreError>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let mut value = serde_json::to_value(body).map_err(|error| StoreError::corrupt(error.to_string()))?;
    if let (Some(fields), Some(Value::Object(state))) = (value.as_object_mut(), data.get("state")) {
        fields.extend(state.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    read(&value)
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, StoreError> {
    T::deserialize(value).map_err(|error| StoreError::corrupt(format!("an event: {error}")))
}

fn missing() -> StoreError {
    StoreError::corrupt("an event names a row that is not there")
}

pub(super) fn id_in<K: crate::base::id::Kind>(data: &Value, key: &str) -> Option<crate::base::Id<K>> {
    data.get(key)?.as_str()?.parse().ok()
}
