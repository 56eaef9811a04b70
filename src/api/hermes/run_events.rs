//! A turn as events of a run: frames without a name, whose data says in `event`
//! what it is. Each has an id to come back with, which the original had not.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::run_status;
use crate::api::compat::ending;
use crate::api::compat::stream::Encode;
use crate::api::compat::{handed, label, question};
use crate::live::cursor::{Cursor, ParseCursorError};
use crate::live::follow::Frame;
use crate::model::approval::Approval;
use crate::model::call::{CallStatus, Execution, ToolCall};
use crate::model::event::EventBody;
use crate::model::id::MessageId;
use crate::model::message::{FinishReason, Message, Role, text_of};
use crate::model::turn::Turn;

pub(super) struct RunEvents {
    run_id: String,
    /// The message that is being said; not known by name to a client that came
    /// back in the middle of it.
    message: Option<MessageId>,
    /// Bytes of it that were.
    said: usize,
    output: String,
}

/// Where a reader of a run stands: the cursor of the log, and how much of the
/// message under way it was shown, which the log does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Place {
    pub cursor: Cursor,
    said: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.said {
            0 => write!(f, "{}", self.cursor),
            said => write!(f, "{}.{said}", self.cursor),
        }
    }
}

impl std::str::FromStr for Place {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, ParseCursorError> {
        let mut parts = text.splitn(3, '.');
        let cursor: Vec<&str> = parts.by_ref().take(2).collect();
        let said = match parts.next() {
            None => 0,
            Some(said) => said.parse().map_err(|_| ParseCursorError)?,
        };
        let cursor = cursor.join(".").parse()?;
        Ok(Self { cursor, said })
    }
}

impl From<Cursor> for Place {
    fn from(cursor: Cursor) -> Self {
        Self { cursor, said: 0 }
    }
}

impl RunEvents {
    /// `output` is what the model said last before this stream begins.
    pub(super) fn new(run_id: String, from: Place, output: String) -> Self {
        Self {
            run_id,
            message: None,
            said: from.said,
            output,
        }
    }

    fn event(&self, frame: &Frame, name: &str, fields: Value, out: &mut String) {
        let mut event = Map::new();
        event.insert("event".to_owned(), json!(name));
        event.insert("run_id".to_owned(), json!(self.run_id));
        event.insert("timestamp".to_owned(), json!(question::seconds(frame.event.at)));
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        // Writing to a String cannot fail.
        if let Some(cursor) = frame.cursor {
            let place = Place {
                cursor,
                said: self.said,
            };
            let _written = writeln!(out, "id: {place}");
        }
        let _written = write!(out, "data: {}\n\n", Value::Object(event));
    }

    fn say(&mut self, frame: &Frame, message: MessageId, text: &str, out: &mut String) {
        if self.message.is_some_and(|own| own != message) {
            self.said = 0;
        }
        self.message = Some(message);
        if !text.is_empty() {
            self.said += text.len();
            self.event(frame, "message.delta", json!({"delta": text}), out);
        }
    }

    /// The message is stored; what of it was not said yet comes now.
    fn said(&mut self, frame: &Frame, message: &Message, out: &mut String) {
        if message.finish_reason == Some(FinishReason::Incomplete) {
            (self.message, self.said) = (None, 0);
            return;
        }
        let whole = text_of(&message.content);
        if self.message.is_some_and(|own| own != message.id) {
            self.said = 0;
        }
        let rest = whole.get(self.said..).unwrap_or_default();
        (self.message, self.said) = (None, 0);
        if !rest.is_empty() {
            self.event(frame, "message.delta", json!({"delta": rest}), out);
        }
        if !whole.is_empty() {
            self.output = whole;
        }
    }

    fn started(&self, frame: &Frame, call: &ToolCall, out: &mut String) {
        if !label::is_hidden(&call.name) {
            let preview = label::preview(&call.arguments);
            let fields = json!({"tool": call.name, "preview": preview, "tool_call_id": call.id});
            self.event(frame, "tool.started", fields, out);
            if call.execution == Execution::Client {
                let fields = handed::client_call(frame.event.session_id, call);
                self.event(frame, "tool.handed_over", fields, out);
            }
        }
    }

    fn completed(&self, frame: &Frame, call: &ToolCall, out: &mut String) {
        if label::is_hidden(&call.name) {
            return;
        }
        let span = call.started_at.zip(call.finished_at).map(|(from, to)| to.since(from));
        let failed = call.status != CallStatus::Succeeded || call.exit_code.is_some_and(|code| code != 0);
        let fields = json!({"tool": call.name, "duration": span.map_or(0.0, |span| span.as_secs_f64()),
            "error": failed, "outcome": call.status, "tool_call_id": call.id});
        self.event(frame, "tool.completed", fields, out);
    }

    fn asked(&self, frame: &Frame, approval: &Approval, out: &mut String) {
        let fields = run_status::request(&self.run_id, frame.event.at, question::request(approval));
        self.event(frame, "approval.request", fields, out);
    }

    fn settled(&self, frame: &Frame, approval: &Approval, out: &mut String) {
        let choice = approval.decision.as_ref().map(|decision| decision.choice);
        let fields = json!({"choice": choice, "resolved": 1, "status": approval.status, "request_id": approval.id,
            "approval_id": approval.id});
        let name = if choice.is_some() {
            "approval.responded"
        } else {
            "approval.closed"
        };
        self.event(frame, name, fields, out);
    }

    fn failed(&self, frame: &Frame, turn: &Turn, out: &mut String) -> bool {
        self.event(frame, "run.failed", json!({"error": ending::why(turn)}), out);
        closed(out)
    }

    fn stopped(&self, frame: &Frame, turn: &Turn, out: &mut String) -> bool {
        self.event(frame, "run.cancelled", json!({"reason": turn.stop_reason}), out);
        closed(out)
    }
}

pub(super) fn closed(out: &mut String) -> bool {
    out.push_str(": stream closed\n\n");
    true
}

impl Encode for RunEvents {
    fn begin(&mut self, _: &mut String) {}

    fn frame(&mut self, frame: &Frame, out: &mut String) -> bool {
        match &frame.event.body {
            EventBody::MessageDelta(data) => self.say(frame, data.message_id, &data.text, out),
            EventBody::MessageCompleted(data) if data.message.role == Role::Assistant => {
                self.said(frame, &data.message, out);
            }
            // What was not completed is void.
            EventBody::TurnResumed(_) | EventBody::ModelRetrying(_) if 0 < self.said => {
                (self.message, self.said) = (None, 0);
                self.event(frame, "message.discarded", json!({}), out);
            }
            EventBody::ReasoningCompleted(data) => {
                self.event(frame, "reasoning.available", json!({"text": data.text}), out);
            }
            EventBody::ToolCallStarted(data) => self.started(frame, &data.tool_call, out),
            EventBody::ToolCallCompleted(data)
            | EventBody::ToolCallDenied(data)
            | EventBody::ToolCallCancelled(data)
            | EventBody::ToolCallUnknown(data) => self.completed(frame, &data.tool_call, out),
            EventBody::ApprovalRequested(data) => self.asked(frame, &data.approval, out),
            EventBody::ApprovalResolved(data)
            | EventBody::ApprovalExpired(data)
            | EventBody::ApprovalSuperseded(data)
            | EventBody::ApprovalCancelled(data) => self.settled(frame, &data.approval, out),
            EventBody::QuestionAsked(data) => {
                self.event(frame, "clarify.request", handed::question(&data.question), out);
            }
            EventBody::QuestionAnswered(data)
            | EventBody::QuestionExpired(data)
            | EventBody::QuestionCancelled(data) => {
                self.event(frame, "clarify.responded", handed::question(&data.question), out);
            }
            EventBody::TurnSteered(_) => self.event(frame, "run.steered", json!({"accepted": true}), out),
            EventBody::TurnCompleted(data) => {
                let fields = json!({"output": self.output, "usage": ending::usage(&data.turn.usage)});
                self.event(frame, "run.completed", fields, out);
                return closed(out);
            }
            EventBody::TurnFailed(data) => return self.failed(frame, &data.turn, out),
            EventBody::TurnCancelled(data) | EventBody::TurnInterrupted(data) | EventBody::TurnRolledBack(data) => {
                return self.stopped(frame, &data.turn, out);
            }
            _ => {}
        }
        false
    }

    fn broken_off(&mut self, out: &mut String) {
        out.push_str(": the server ends this stream; come back with the last id\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_cursor_that_may_lie_within_a_message() {
        for (text, cursor, said) in [("7", (7, 0), 0), ("7.2", (7, 2), 0), ("7.2.40", (7, 2), 40)] {
            let place: Place = text.parse().unwrap();
            assert_eq!(
                ((place.cursor.seq, place.cursor.d), place.said),
                (cursor, said),
                "{text}"
            );
        }
        let within: Place = "7.2.40".parse().unwrap();
        assert_eq!(within.to_string(), "7.2.40");
        for wrong in ["", "x", "7.x", "7.2.x", "7.2.-1", "7.2.3.4"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
