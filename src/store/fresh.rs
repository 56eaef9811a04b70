//! What a commit appended to a log, as clients read it, for those who listen
//! while it is committed: they need not ask the database for what this process
//! has just told it. It is an offer; whoever cannot use it reads the log.

use super::StoreError;
use super::events::proposed;
use super::render::{Bodies, Stored};
use super::slice;
use crate::base::Timestamp;
use crate::model::event::Event;
use crate::model::id::{SessionId, TurnId};
use crate::model::message::{Role, text_of};
use crate::model::record::{MessageRecord, TurnRecord, Writes};

/// Text that is kept for the listeners of one session: enough for an answer.
/// Larger ones are read.
const BYTES: usize = 64 * 1024;

/// Consecutive events of one session.
#[derive(Debug)]
pub struct Fresh {
    pub first: i64,
    pub events: Vec<FreshEvent>,
}

/// One of them.
#[derive(Debug)]
pub struct FreshEvent {
    pub turn_id: Option<TurnId>,
    /// `None` where a part of it is only in the database.
    pub event: Option<Event>,
}

impl Fresh {
    /// The number of the last event.
    pub fn last(&self) -> i64 {
        self.first - 1 + i64::try_from(self.events.len()).unwrap_or(0)
    }

    /// The events of one transaction; `turns` are the rows as it leaves them.
    /// `None` when they are large.
    pub(super) fn of(
        session: SessionId,
        writes: &Writes,
        turns: Vec<TurnRecord>,
        (first, at): (i64, Timestamp),
    ) -> Option<Self> {
        let input = turns.iter().map(|turn| slice::weight(&turn.input)).sum::<usize>();
        let said = writes.messages.iter().map(weight).sum::<usize>();
        if BYTES < input + said {
            return None;
        }
        let bodies = bodies(writes, turns);
        let event = |(seq, event): (i64, &crate::model::record::NewEvent)| {
            let stored = Stored {
                seq,
                turn_id: event.turn_id,
                kind: event.kind,
                at,
                data: event.data.clone(),
            };
            let rendered: Result<Event, StoreError> = bodies.render(session, &stored);
            FreshEvent {
                turn_id: event.turn_id,
                event: rendered.ok(),
            }
        };
        Some(Self {
            first,
            events: (first..).zip(&writes.events).map(event).collect(),
        })
    }
}

fn weight(message: &MessageRecord) -> usize {
    slice::weight(&message.content) + message.reasoning.as_ref().map_or(0, String::len)
}

/// The bodies that the transaction wrote.
fn bodies(writes: &Writes, turns: Vec<TurnRecord>) -> Bodies {
    let mut bodies = Bodies::default();
    // The last of several rows of a turn stands.
    bodies.turns.extend(turns.into_iter().map(|turn| (turn.turn_id, turn)));
    for message in writes.messages.iter().cloned() {
        let id = message.message_id;
        let own = writes.new_calls.iter().filter(|call| call.message_id == id);
        let calls = own.cloned().map(proposed).collect();
        bodies.messages.insert(id, message.view(calls));
    }
    for call in writes.new_calls.iter().chain(&writes.calls) {
        let mut results = writes.messages.iter().filter(|message| message.role == Role::Tool);
        let result = results.find(|message| message.call_id == Some(call.call_id));
        // A call that was settled before has its result in the database.
        if call.status.is_settled() && result.is_none() && call.nested.is_none() {
            continue;
        }
        let result = result.map(|message| text_of(&message.content)).or(call.nested_result());
        bodies.calls.insert(call.call_id, (call.clone(), result));
    }
    // What was asked and settled at once stands as it was settled.
    let approvals = writes.new_approvals.iter().chain(&writes.approvals).cloned();
    bodies
        .approvals
        .extend(approvals.map(|approval| (approval.id, approval)));
    bodies
}
