//! The end of a turn, whatever it is: every open call gets its result, every
//! pending approval is closed, and the terminal event is the turn's last.

use serde_json::json;

use super::Step;
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::call::CallStatus;
use crate::model::event::EventType;
use crate::model::id::{CallId, MessageId};
use crate::model::message::{FinishReason, Part, Role};
use crate::model::record::{CallRecord, MessageRecord};
use crate::model::turn::{StopReason, TurnStatus};
use crate::tool::Done;
use crate::turn::next::Outcome;

/// Text of an answer that broke off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    pub text: String,
    pub reasoning: String,
}

impl Step<'_> {
    /// Ends the turn from outside: cancelled, timed out, failed. Results that
    /// are there are kept, and so is the text of an answer that broke off.
    pub fn end(&mut self, outcome: Outcome, results: Vec<(CallId, Done)>, partial: Option<(MessageId, Partial)>) {
        self.take_results(results);
        if let Some((message_id, partial)) =
            partial.filter(|(_, partial)| !partial.text.is_empty() || !partial.reasoning.is_empty())
        {
            self.push_answer(message_id, partial.text, partial.reasoning, FinishReason::Incomplete, 0);
        } else if let Some(note) = stopped(outcome.status) {
            self.close_open_calls(outcome.status);
            let id = self.world.id();
            let note = format!("[{note} before it finished.]");
            self.push_answer(id, note, String::new(), FinishReason::Incomplete, 0);
        }
        self.touched = true;
        self.finish(outcome);
        self.tell_session();
    }

    /// A queued turn leaves the queue without having run.
    pub fn drop_queued(&mut self, outcome: Outcome) {
        self.touched = true;
        self.terminal(outcome);
    }

    pub(super) fn finish(&mut self, outcome: Outcome) {
        self.close_open_calls(outcome.status);
        if outcome.stop_reason == StopReason::Budget {
            self.note_budget();
        }
        let pending: Vec<Approval> = self.state.pending().cloned().collect();
        for mut approval in pending {
            approval.status = ApprovalStatus::Cancelled;
            self.replace(&approval, EventType::ApprovalCancelled);
        }
        self.cancel_questions();
        self.stop_counting();
        self.tell_usage();
        self.terminal(outcome);
    }

    fn terminal(&mut self, outcome: Outcome) {
        if outcome.status == TurnStatus::RolledBack {
            self.forget_files();
        }
        let kind = match outcome.status {
            TurnStatus::Completed => EventType::TurnCompleted,
            TurnStatus::Cancelled => EventType::TurnCancelled,
            TurnStatus::Interrupted => EventType::TurnInterrupted,
            TurnStatus::RolledBack => EventType::TurnRolledBack,
            _ => EventType::TurnFailed,
        };
        if self.state.session.deleted_at.is_none() {
            self.release_steers();
        }
        let turn = &mut self.state.turn;
        turn.status = outcome.status;
        turn.stop_reason = Some(outcome.stop_reason);
        turn.error = outcome.error;
        turn.owner = None;
        turn.finished_at = Some(self.world.now);
        let event = self.turn_event(kind, json!({}));
        self.writes.events.push(event);
    }

    /// The transcript stays valid: a call that never ran, or whose result never
    /// came, gets a result that says so.
    fn close_open_calls(&mut self, ending: TurnStatus) {
        let calls = self.state.calls.iter();
        let open: Vec<CallRecord> = calls.filter(|call| !call.status.is_settled()).cloned().collect();
        for call in open {
            let (id, status) = (call.call_id, call.status);
            let why = match ending {
                TurnStatus::Cancelled => "the turn was cancelled",
                TurnStatus::Interrupted | TurnStatus::RolledBack => "a new message interrupted the turn",
                _ => "the turn ended",
            };
            self.orphan(id);
            if let Some((status, text)) = self.unreturned(&call, ending, why) {
                let kind = match status {
                    CallStatus::Unknown => EventType::ToolCallUnknown,
                    _ => EventType::ToolCallCancelled,
                };
                self.settle_call(id, status, kind, text);
            } else if status == CallStatus::Running || self.may_have_run(id) {
                let text =
                    format!("[No result: {why} while the call ran. Its effect is unknown: it may have happened.]");
                self.settle_call(id, CallStatus::Unknown, EventType::ToolCallUnknown, text);
            } else {
                let text = format!("[Not run: {why} before the call started.]");
                self.settle_call(id, CallStatus::Cancelled, EventType::ToolCallCancelled, text);
            }
        }
    }

    /// Stores an assistant message and reserves the places of its calls.
    pub(super) fn push_answer(
        &mut self,
        message_id: MessageId,
        text: String,
        reasoning: String,
        finish: FinishReason,
        calls: i64,
    ) {
        let position = self.state.session.next_position;
        self.state.session.next_position += 1 + calls;
        let has_reasoning = !reasoning.is_empty();
        let message = MessageRecord {
            position,
            message_id,
            turn_id: self.state.turn.turn_id,
            role: Role::Assistant,
            content: if text.is_empty() {
                Vec::new()
            } else {
                vec![Part::text(text)]
            },
            reasoning: has_reasoning.then_some(reasoning),
            finish_reason: Some(finish),
            call_id: None,
            steered: false,
            external_id: None,
            created_at: self.world.now,
        };
        if has_reasoning {
            let event = self.event(EventType::ReasoningCompleted, json!({"message_id": message_id}));
            self.writes.events.push(event);
        }
        self.push_message(message);
    }
}

/// What the transcript says of a turn that was told to stop; of other ends the
/// record says enough.
fn stopped(status: TurnStatus) -> Option<&'static str> {
    match status {
        TurnStatus::Cancelled => Some("The turn was cancelled"),
        TurnStatus::Interrupted => Some("The turn was interrupted by a new message"),
        TurnStatus::RolledBack => Some("The turn was rolled back"),
        _ => None,
    }
}
