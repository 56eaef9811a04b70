//! A turn as the named events of a session's chat. Each counts on from 1 and names
//! its run, which can be looked at, answered and stopped by that id.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::run_status;
use super::session_shape;
use crate::api::compat::ending::{self, Ending};
use crate::api::compat::stream::Encode;
use crate::api::compat::{handed, label, question};
use crate::base::Timestamp;
use crate::live::follow::Frame;
use crate::model::approval::Approval;
use crate::model::call::{CallStatus, Execution, ToolCall};
use crate::model::event::EventBody;
use crate::model::id::MessageId;
use crate::model::message::{FinishReason, Message, Part, Role, text_of};
use crate::model::turn::{Turn, TurnStatus};

pub(super) struct SessionEvents {
    session: String,
    run_id: String,
    /// One for the whole turn, as in the original.
    message_id: String,
    begun_at: Timestamp,
    input: Value,
    seq: u64,
    /// The message that is being said, and how many bytes of it were.
    message: Option<(MessageId, usize)>,
    open: bool,
    said: bool,
    cut: bool,
    output: String,
    rows: Vec<Message>,
}

impl SessionEvents {
    pub(super) fn new(session: String, run_id: String, turn: &Turn) -> Self {
        Self {
            session,
            message_id: run_id.replacen("run_", "msg_", 1),
            run_id,
            begun_at: turn.created_at,
            input: json!({"role": "user", "content": text_of(&turn.input)}),
            seq: 0,
            message: None,
            open: false,
            said: false,
            cut: false,
            output: String::new(),
            rows: Vec::new(),
        }
    }

    fn event(&mut self, at: Timestamp, name: &str, fields: Value, out: &mut String) {
        self.seq += 1;
        let mut event = Map::new();
        event.insert("session_id".to_owned(), json!(self.session));
        event.insert("run_id".to_owned(), json!(self.run_id));
        event.insert("seq".to_owned(), json!(self.seq));
        event.insert("ts".to_owned(), json!(question::seconds(at)));
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        // Writing to a String cannot fail.
        let _written = write!(out, "event: {name}\ndata: {}\n\n", Value::Object(event));
    }

    fn say(&mut self, at: Timestamp, message: MessageId, text: &str, out: &mut String) {
        if text.is_empty() {
            return;
        }
        match &mut self.message {
            Some((own, bytes)) if *own == message => *bytes += text.len(),
            _ => self.message = Some((message, text.len())),
        }
        (self.open, self.said) = (true, true);
        let fields = json!({"message_id": self.message_id, "delta": text});
        self.event(at, "assistant.delta", fields, out);
    }

    fn completed(&mut self, at: Timestamp, message: &Message, out: &mut String) {
        self.cut = message.finish_reason == Some(FinishReason::Length);
        if message.finish_reason != Some(FinishReason::Incomplete) {
            let whole = text_of(&message.content);
            let said = self
                .message
                .filter(|(own, _)| *own == message.id)
                .map_or(0, |(_, bytes)| bytes);
            let rest = whole.get(said..).unwrap_or_default().to_owned();
            self.say(at, message.id, &rest, out);
            if !whole.is_empty() {
                self.output = whole;
            }
        }
        self.open = false;
        self.rows.push(message.clone());
    }

    fn tool(&mut self, at: Timestamp, name: &str, call: &ToolCall, out: &mut String) {
        if label::is_hidden(&call.name) {
            return;
        }
        let is_start = name == "tool.started";
        let preview = if is_start {
            label::preview(&call.arguments)
        } else {
            None
        };
        let args = if is_start { call.arguments.clone() } else { Value::Null };
        let fields = json!({"message_id": self.message_id, "tool_name": call.name, "preview": preview,
            "args": args, "tool_call_id": call.id, "outcome": call.status});
        self.event(at, name, fields, out);
    }

    /// A call that the client carries out, or one of the server's that begins.
    fn started(&mut self, frame: &Frame, call: &ToolCall, out: &mut String) {
        self.tool(frame.event.at, "tool.started", call, out);
        if call.execution == Execution::Client {
            let fields = handed::client_call(frame.event.session_id, call);
            self.event(frame.event.at, "tool.handed_over", fields, out);
        }
    }

    fn settled_call(&mut self, at: Timestamp, call: &ToolCall, out: &mut String) {
        let name = if call.status == CallStatus::Succeeded {
            "tool.completed"
        } else {
            "tool.failed"
        };
        self.tool(at, name, call, out);
        // Calls of a program are no part of the transcript.
        if call.parent_call_id.is_none() {
            self.rows.push(result(call, at));
        }
    }

    fn asked(&mut self, at: Timestamp, approval: &Approval, out: &mut String) {
        let fields = run_status::request(&self.run_id, at, question::request(approval));
        self.event(at, "approval.request", fields, out);
    }

    fn answered(&mut self, at: Timestamp, approval: &Approval, out: &mut String) {
        let choice = approval.decision.as_ref().map(|decision| decision.choice);
        let fields = json!({"choice": choice, "resolved": 1, "status": approval.status, "request_id": approval.id,
            "approval_id": approval.id});
        let name = if choice.is_some() {
            "approval.responded"
        } else {
            "approval.closed"
        };
        self.event(at, name, fields, out);
    }

    fn finish(&mut self, at: Timestamp, turn: &Turn, out: &mut String) -> bool {
        let ending = Ending::of(turn, self.said, self.cut);
        let stopped = [TurnStatus::Cancelled, TurnStatus::Interrupted, TurnStatus::RolledBack].contains(&turn.status);
        let fields = json!({"message_id": self.message_id, "content": self.output, "completed": ending.completed,
            "partial": ending.partial, "interrupted": stopped});
        self.event(at, "assistant.completed", fields, out);
        if ending.failed {
            let fields = json!({"message": ending.error, "error_code": ending.error_code});
            self.event(at, "error", fields, out);
        } else {
            let rows = session_shape::messages(&self.session, &self.rows);
            let fields = json!({"message_id": self.message_id, "completed": ending.completed, "messages": rows,
                "usage": ending::usage(&turn.usage)});
            self.event(at, "run.completed", fields, out);
        }
        self.event(at, "done", json!({}), out);
        true
    }
}

/// The row of a call's result.
fn result(call: &ToolCall, at: Timestamp) -> Message {
    Message {
        id: call.batch_id,
        external_id: None,
        turn_id: crate::base::Id::from_bits(0),
        role: Role::Tool,
        content: vec![Part::text(call.result.clone().unwrap_or_default())],
        reasoning: None,
        tool_calls: Vec::new(),
        tool_call_id: Some(call.id),
        finish_reason: None,
        hidden: false,
        steered: false,
        created_at: call.finished_at.unwrap_or(at),
    }
}

impl Encode for SessionEvents {
    fn begin(&mut self, out: &mut String) {
        let (at, message) = (self.begun_at, self.input.take());
        self.event(at, "run.started", json!({"user_message": message}), out);
        let fields = json!({"message": {"id": self.message_id, "role": "assistant"}});
        self.event(at, "message.started", fields, out);
    }

    fn frame(&mut self, frame: &Frame, out: &mut String) -> bool {
        let at = frame.event.at;
        match &frame.event.body {
            EventBody::MessageDelta(data) => self.say(at, data.message_id, &data.text, out),
            EventBody::MessageCompleted(data) if data.message.role == Role::Assistant => {
                self.completed(at, &data.message, out);
            }
            EventBody::TurnResumed(_) | EventBody::ModelRetrying(_) if self.open => {
                (self.message, self.open) = (None, false);
                self.event(at, "assistant.discarded", json!({"message_id": self.message_id}), out);
            }
            EventBody::ReasoningCompleted(data) => {
                let fields = json!({"message_id": self.message_id, "tool_name": "_thinking", "delta": data.text});
                self.event(at, "tool.progress", fields, out);
            }
            EventBody::ToolCallStarted(data) => self.started(frame, &data.tool_call, out),
            EventBody::ToolCallCompleted(data)
            | EventBody::ToolCallDenied(data)
            | EventBody::ToolCallCancelled(data)
            | EventBody::ToolCallUnknown(data) => self.settled_call(at, &data.tool_call, out),
            EventBody::ApprovalRequested(data) => self.asked(at, &data.approval, out),
            EventBody::ApprovalResolved(data)
            | EventBody::ApprovalExpired(data)
            | EventBody::ApprovalSuperseded(data)
            | EventBody::ApprovalCancelled(data) => self.answered(at, &data.approval, out),
            EventBody::QuestionAsked(data) => {
                self.event(at, "clarify.request", handed::question(&data.question), out);
            }
            EventBody::QuestionAnswered(data)
            | EventBody::QuestionExpired(data)
            | EventBody::QuestionCancelled(data) => {
                self.event(at, "clarify.responded", handed::question(&data.question), out);
            }
            EventBody::TurnCompleted(data)
            | EventBody::TurnFailed(data)
            | EventBody::TurnCancelled(data)
            | EventBody::TurnInterrupted(data)
            | EventBody::TurnRolledBack(data) => return self.finish(at, &data.turn, out),
            _ => {}
        }
        false
    }

    fn broken_off(&mut self, out: &mut String) {
        let at = self.begun_at;
        let said = "the server ended this stream; the run goes on";
        self.event(at, "error", json!({"message": said, "error_code": "stream_ended"}), out);
        self.event(at, "done", json!({}), out);
    }
}
