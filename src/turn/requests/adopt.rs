//! A session with a past that it did not live: turns that are over, their
//! messages and calls, from another session, a file or elsewhere. Its log tells
//! them as if it had been followed, so that clients need to know nothing of this.

use std::collections::HashMap;

use serde_json::json;

use crate::base::Clock;
use crate::model::call::CallStatus;
use crate::model::event::EventType;
use crate::model::id::{CallId, MessageId, SessionId, TurnId};
use crate::model::message::Role;
use crate::model::record::{CallRecord, MessageRecord, NewEvent, TurnRecord, Writes};
use crate::model::turn::{TurnStatus, Usage};

/// What was said and done; each message's calls have their results among the
/// messages.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) turns: Vec<TurnRecord>,
    pub(super) messages: Vec<MessageRecord>,
    pub(super) calls: Vec<CallRecord>,
}

impl History {
    /// The same for another session and its user, with ids and places of its own.
    pub(super) fn renewed(mut self, session: SessionId, user: &str, clock: &Clock) -> Self {
        let turns: HashMap<TurnId, TurnId> = self
            .turns
            .iter()
            .map(|turn| (turn.turn_id, TurnId::new(clock)))
            .collect();
        let messages: HashMap<MessageId, MessageId> = self
            .messages
            .iter()
            .map(|message| (message.message_id, MessageId::new(clock)))
            .collect();
        let calls: HashMap<CallId, CallId> = self
            .calls
            .iter()
            .map(|call| (call.call_id, CallId::new(clock)))
            .collect();
        for turn in &mut self.turns {
            turn.turn_id = renamed(&turns, turn.turn_id);
            turn.session_id = session;
            user.clone_into(&mut turn.user_id);
        }
        let mut results = HashMap::new();
        for (message, position) in self.messages.iter_mut().zip(0..) {
            message.message_id = renamed(&messages, message.message_id);
            message.turn_id = renamed(&turns, message.turn_id);
            message.position = position;
            message.call_id = message.call_id.map(|id| renamed(&calls, id));
            results.extend(message.call_id.map(|id| (id, position)));
        }
        for call in &mut self.calls {
            call.call_id = renamed(&calls, call.call_id);
            call.turn_id = renamed(&turns, call.turn_id);
            call.message_id = renamed(&messages, call.message_id);
            call.position = results.get(&call.call_id).copied().unwrap_or(call.position);
        }
        self
    }

    /// How many places of the transcript it takes.
    pub(super) fn places(&self) -> i64 {
        i64::try_from(self.messages.len()).unwrap_or(i64::MAX)
    }

    /// Adds it to what a transaction writes behind the event `head`; `writes`
    /// holds the events before it.
    pub(super) fn write(mut self, head: i64, writes: &mut Writes) {
        let calls: HashMap<CallId, &CallRecord> = self.calls.iter().map(|call| (call.call_id, call)).collect();
        for turn in &mut self.turns {
            writes.events.push(begun(turn));
            let own = self.messages.iter().filter(|message| message.turn_id == turn.turn_id);
            for message in own {
                writes.events.extend(said(message, &calls));
            }
            writes.events.push(ended(turn));
            turn.last_seq = i64::try_from(writes.events.len()).ok().map(|events| head + events);
        }
        writes.new_turns.extend(self.turns);
        writes.messages.extend(self.messages);
        writes.new_calls.extend(self.calls);
    }
}

fn begun(turn: &TurnRecord) -> NewEvent {
    let state = json!({"status": TurnStatus::Running, "stop_reason": null, "usage": Usage::default(), "error": null,
        "started_at": turn.started_at, "finished_at": null});
    event(
        turn.turn_id,
        EventType::TurnStarted,
        json!({"turn_id": turn.turn_id, "state": state}),
    )
}

fn ended(turn: &TurnRecord) -> NewEvent {
    let kind = match turn.status {
        TurnStatus::Completed => EventType::TurnCompleted,
        TurnStatus::Failed => EventType::TurnFailed,
        TurnStatus::Cancelled => EventType::TurnCancelled,
        TurnStatus::RolledBack => EventType::TurnRolledBack,
        // What is not over is not taken.
        TurnStatus::Interrupted | TurnStatus::Queued | TurnStatus::Running | TurnStatus::Waiting => {
            EventType::TurnInterrupted
        }
    };
    let state = json!({"status": turn.status, "stop_reason": turn.stop_reason, "usage": turn.usage,
        "error": turn.error, "started_at": turn.started_at, "finished_at": turn.finished_at});
    event(turn.turn_id, kind, json!({"turn_id": turn.turn_id, "state": state}))
}

/// The events of a message: what it says, or the call that it settles.
fn said(message: &MessageRecord, calls: &HashMap<CallId, &CallRecord>) -> Vec<NewEvent> {
    let id = json!({"message_id": message.message_id});
    if message.role != Role::Tool {
        let thought = message.reasoning.as_ref().map(|_| EventType::ReasoningCompleted);
        let kinds = thought.into_iter().chain([EventType::MessageCompleted]);
        return kinds.map(|kind| event(message.turn_id, kind, id.clone())).collect();
    }
    let call = message.call_id.and_then(|id| calls.get(&id));
    let settled = call.map(|call| {
        let kind = match call.status {
            CallStatus::Denied => EventType::ToolCallDenied,
            CallStatus::Cancelled => EventType::ToolCallCancelled,
            CallStatus::Unknown => EventType::ToolCallUnknown,
            _ => EventType::ToolCallCompleted,
        };
        let state = json!({"status": call.status, "exit_code": call.exit_code, "started_at": call.started_at,
            "finished_at": call.finished_at});
        event(message.turn_id, kind, json!({"call_id": call.call_id, "state": state}))
    });
    settled.into_iter().collect()
}

fn event(turn: TurnId, kind: EventType, data: serde_json::Value) -> NewEvent {
    NewEvent {
        kind,
        turn_id: Some(turn),
        epoch: 1,
        data,
    }
}

fn renamed<K: Copy + Eq + std::hash::Hash>(names: &HashMap<K, K>, old: K) -> K {
    names.get(&old).copied().unwrap_or(old)
}
