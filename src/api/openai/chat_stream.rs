//! A turn as chunks of a chat completion, within the grammar of strict clients:
//! one choice in every chunk, the role first, texts, usage on the chunk that
//! finishes, `hermes.tool.progress` the only named event unless the client asked
//! for more, and nothing behind `[DONE]`.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::compat::ending::{self, Ending};
use crate::api::compat::object::set;
use crate::api::compat::stream::Encode;
use crate::api::compat::{handed, ids, label, question};
use crate::base::text::first_chars;
use crate::live::follow::Frame;
use crate::model::approval::Approval;
use crate::model::call::{Execution, ToolCall};
use crate::model::event::EventBody;
use crate::model::id::{CallId, MessageId};
use crate::model::message::{FinishReason, Role, text_of};
use crate::model::question::Question;
use crate::model::turn::{Turn, Usage};
use crate::tool::registry::Registry;

/// A strict client takes less than 64 Ki characters in a frame, and an escape is
/// up to six.
const MAX_DELTA_CHARS: usize = 8_000;

/// The members that every chunk of an answer has alike.
pub(super) struct Completion {
    id: String,
    created: i64,
    model: String,
}

impl Completion {
    pub(super) fn of(turn: &Turn, asked: Option<&str>, configured: &str) -> Self {
        Self {
            id: ids::completion(turn.id),
            created: turn.created_at.0 / 1000,
            model: asked.unwrap_or(configured).to_owned(),
        }
    }

    pub(super) fn whole(&self, content: &str, finish_reason: &str, usage: &Usage) -> Value {
        json!({"id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content, "refusal": null},
                "logprobs": null, "finish_reason": finish_reason}],
            "usage": ending::chat_usage(usage)})
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        json!({"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
    }
}

pub(super) struct ChatStream {
    registry: Arc<Registry>,
    completion: Completion,
    /// Approvals are events of their own as well.
    approval_events: bool,
    /// The message that is being said, and how many bytes of it were.
    message: Option<(MessageId, usize)>,
    /// It may still turn out void.
    open: bool,
    said: bool,
    /// A tool ran since the last text: what follows is a paragraph of its own.
    apart: bool,
    cut: bool,
    shown: HashSet<CallId>,
}

impl ChatStream {
    pub(super) fn new(registry: Arc<Registry>, completion: Completion, approval_events: bool) -> Self {
        Self {
            registry,
            completion,
            approval_events,
            message: None,
            open: false,
            said: false,
            apart: false,
            cut: false,
            shown: HashSet::new(),
        }
    }

    fn say(&mut self, message: MessageId, text: &str, out: &mut String) {
        if text.is_empty() {
            return;
        }
        match &mut self.message {
            Some((own, bytes)) if *own == message => *bytes += text.len(),
            _ => {
                self.apart |= self.message.is_some();
                self.message = Some((message, text.len()));
            }
        }
        if self.said && self.apart {
            self.content("\n\n", out);
        }
        (self.apart, self.open) = (false, true);
        self.content(text, out);
    }

    fn content(&mut self, text: &str, out: &mut String) {
        self.said = true;
        let mut rest = text;
        while !rest.is_empty() {
            let piece = first_chars(rest, MAX_DELTA_CHARS);
            data(out, &self.completion.chunk(&json!({"content": piece}), None));
            rest = rest.get(piece.len()..).unwrap_or_default();
        }
    }

    fn progress(&mut self, call: &ToolCall, is_start: bool, out: &mut String) {
        if label::is_hidden(&call.name) {
            return;
        }
        self.apart = true;
        let fields = if is_start {
            self.shown.insert(call.id);
            let emoji = self.registry.get(&call.name).map_or("", |tool| tool.emoji());
            let label = label::preview(&call.arguments).unwrap_or_else(|| call.name.clone());
            json!({"tool": call.name, "emoji": emoji, "label": label, "toolCallId": call.id, "status": "running"})
        } else if self.shown.remove(&call.id) {
            json!({"tool": call.name, "toolCallId": call.id, "status": "completed", "outcome": call.status})
        } else {
            return;
        };
        named(out, "hermes.tool.progress", &self.as_chunk(fields));
    }

    /// What a named event tells, with the members of a chunk that adds nothing:
    /// the clients of OpenAI take every event for a chunk, whatever its name.
    fn as_chunk(&self, fields: Value) -> Value {
        let mut chunk = self.completion.chunk(&json!({"content": ""}), None);
        if let (Value::Object(chunk), Value::Object(fields)) = (&mut chunk, fields) {
            chunk.extend(fields);
        }
        chunk
    }

    /// An object more in a chunk that is valid without it.
    fn asked(&self, approval: &Approval, event: &str, out: &mut String) {
        let mut told = question::request(approval);
        if let Some(decision) = &approval.decision {
            set(&mut told, "choice", json!(decision.choice));
        }
        set(&mut told, "event", json!(event));
        self.additional("approval", event, &told, out);
    }

    fn question(&self, question: &Question, event: &str, out: &mut String) {
        let mut told = handed::question(question);
        set(&mut told, "event", json!(event));
        self.additional("question", event, &told, out);
    }

    /// Tells in the member `hermes` of a chunk that is valid without it, and as an
    /// event of its own where the client asked for such.
    fn additional(&self, what: &str, event: &str, told: &Value, out: &mut String) {
        if self.approval_events {
            named(out, &format!("hermes.{event}"), &self.as_chunk(told.clone()));
        }
        let mut chunk = self.completion.chunk(&json!({"content": ""}), None);
        set(&mut chunk, "hermes", json!({what: told}));
        data(out, &chunk);
    }

    fn finish(&mut self, turn: &Turn, out: &mut String) -> bool {
        let ending = Ending::of(turn, self.said, self.cut);
        if let (Some(error), false) = (&ending.error, self.said) {
            self.content(&error.clone(), out);
        }
        let mut chunk = self.completion.chunk(&json!({}), Some(ending.finish_reason));
        set(&mut chunk, "usage", ending::chat_usage(&turn.usage));
        if !ending.completed {
            set(&mut chunk, "hermes", ending.hermes());
        }
        if ending.failed {
            set(
                &mut chunk,
                "error",
                json!({"message": ending.error, "type": ending.error_code}),
            );
        }
        data(out, &chunk);
        out.push_str("data: [DONE]\n\n");
        true
    }
}

impl Encode for ChatStream {
    fn begin(&mut self, out: &mut String) {
        data(
            out,
            &self
                .completion
                .chunk(&json!({"role": "assistant", "content": ""}), None),
        );
    }

    fn frame(&mut self, frame: &Frame, out: &mut String) -> bool {
        match &frame.event.body {
            EventBody::MessageDelta(data) => self.say(data.message_id, &data.text, out),
            EventBody::MessageCompleted(data) if data.message.role == Role::Assistant => {
                let message = &data.message;
                if message.finish_reason != Some(FinishReason::Incomplete) {
                    let whole = text_of(&message.content);
                    let said = self
                        .message
                        .filter(|(own, _)| *own == message.id)
                        .map_or(0, |(_, bytes)| bytes);
                    self.say(message.id, whole.get(said..).unwrap_or_default(), out);
                }
                self.open = false;
                self.cut = message.finish_reason == Some(FinishReason::Length);
            }
            // What was not completed is void, and cannot be taken back here.
            EventBody::TurnResumed(_) | EventBody::ModelRetrying(_) if self.open => {
                (self.message, self.open) = (None, false);
                self.content("\n\n[This broke off; what follows begins again.]\n\n", out);
            }
            EventBody::ToolCallStarted(data) => {
                self.progress(&data.tool_call, true, out);
                if data.tool_call.execution == Execution::Client {
                    let mut told = handed::client_call(frame.event.session_id, &data.tool_call);
                    // What fits no frame stands whole in the transcript.
                    if MAX_DELTA_CHARS < data.tool_call.arguments.to_string().len() {
                        set(&mut told, "arguments", Value::Null);
                    }
                    self.additional("tool_call", "tool.handed_over", &told, out);
                }
            }
            EventBody::ToolCallCompleted(data)
            | EventBody::ToolCallDenied(data)
            | EventBody::ToolCallCancelled(data)
            | EventBody::ToolCallUnknown(data) => self.progress(&data.tool_call, false, out),
            EventBody::ApprovalRequested(data) => self.asked(&data.approval, "approval.request", out),
            EventBody::ApprovalResolved(data)
            | EventBody::ApprovalExpired(data)
            | EventBody::ApprovalSuperseded(data)
            | EventBody::ApprovalCancelled(data) => self.asked(&data.approval, "approval.responded", out),
            EventBody::QuestionAsked(data) => self.question(&data.question, "clarify.request", out),
            EventBody::QuestionAnswered(data)
            | EventBody::QuestionExpired(data)
            | EventBody::QuestionCancelled(data) => self.question(&data.question, "clarify.responded", out),
            EventBody::TurnCompleted(data)
            | EventBody::TurnFailed(data)
            | EventBody::TurnCancelled(data)
            | EventBody::TurnInterrupted(data)
            | EventBody::TurnRolledBack(data) => return self.finish(&data.turn, out),
            _ => {}
        }
        false
    }

    fn broken_off(&mut self, out: &mut String) {
        let said = "the server ended this stream; the turn goes on";
        let mut chunk = self.completion.chunk(&json!({}), Some("error"));
        set(&mut chunk, "error", json!({"message": said, "type": "server_error"}));
        set(
            &mut chunk,
            "hermes",
            json!({"completed": false, "partial": self.said, "failed": true, "error": said,
            "error_code": "stream_ended"}),
        );
        data(out, &chunk);
        out.push_str("data: [DONE]\n\n");
    }
}

fn data(out: &mut String, value: &Value) {
    // Writing to a String cannot fail.
    let _written = write!(out, "data: {value}\n\n");
}

fn named(out: &mut String, event: &str, value: &Value) {
    let _written = write!(out, "event: {event}\ndata: {value}\n\n");
}
