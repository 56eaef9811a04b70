//! A turn as chunks of a UI message. The reader's schema takes no members that it
//! does not know, so what is ours alone travels in data parts and metadata.

use std::collections::HashSet;
use std::fmt::Write;

use axum::response::Response;
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::api::compat::ending;
use crate::api::compat::object::set;
use crate::api::compat::stream::{self, Encode, Watched};
use crate::api::compat::{handed, ids, label, question};
use crate::live::follow::Frame;
use crate::model::approval::Approval;
use crate::model::call::{CallStatus, ToolCall};
use crate::model::event::EventBody;
use crate::model::id::{CallId, MessageId};
use crate::model::message::{FinishReason, Message, Role, text_of};
use crate::model::turn::{Turn, TurnStatus};

/// By this the reader knows the protocol.
const PROTOCOL: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-vercel-ai-ui-message-stream"),
    HeaderValue::from_static("v1"),
);

/// The stream as a response.
pub(in crate::api) fn response(watched: Watched<UiStream>) -> Response {
    let mut response = stream::response(watched);
    let (name, value) = PROTOCOL;
    response.headers_mut().insert(name, value);
    response
}

pub(in crate::api) struct UiStream {
    message_id: String,
    metadata: Value,
    /// A step is an answer of the model with the calls it makes.
    step: bool,
    /// The text under way, and how many bytes of it were said.
    text: Option<(MessageId, usize)>,
    reasoning: Option<MessageId>,
    thought: HashSet<MessageId>,
    told: HashSet<CallId>,
    /// A call of the step has its result: what is said next is another step.
    ran: bool,
    /// Calls that the page has, and gave nothing for yet.
    handed: HashSet<CallId>,
    /// The message goes on behind what its reader gave.
    is_continued: bool,
}

impl UiStream {
    /// `message_id` is the id of the message that the parts belong to.
    pub(in crate::api) fn new(turn: &Turn, message_id: Option<String>) -> Self {
        Self {
            is_continued: message_id.is_some(),
            handed: HashSet::new(),
            message_id: message_id.unwrap_or_else(|| ids::run(turn.id).replacen("run_", "msg_", 1)),
            metadata: json!({"session_id": turn.session_id, "turn_id": turn.id, "run_id": ids::run(turn.id)}),
            step: false,
            text: None,
            reasoning: None,
            thought: HashSet::new(),
            told: HashSet::new(),
            ran: false,
        }
    }

    fn begin_step(&mut self, out: &mut String) {
        if std::mem::take(&mut self.ran) {
            self.end_step(out);
        }
        if !self.step {
            self.step = true;
            part(out, &json!({"type": "start-step"}));
        }
    }

    fn end_step(&mut self, out: &mut String) {
        self.end_text(out);
        if std::mem::take(&mut self.step) {
            part(out, &json!({"type": "finish-step"}));
        }
    }

    fn end_text(&mut self, out: &mut String) {
        if let Some(id) = self.reasoning.take() {
            part(out, &json!({"type": "reasoning-end", "id": thought_id(id)}));
        }
        if let Some((id, _)) = self.text.take() {
            part(out, &json!({"type": "text-end", "id": id}));
        }
    }

    fn say(&mut self, id: MessageId, text: &str, out: &mut String) {
        if text.is_empty() {
            return;
        }
        match &mut self.text {
            Some((own, said)) if *own == id => *said += text.len(),
            _ => {
                self.end_text(out);
                self.begin_step(out);
                self.text = Some((id, text.len()));
                part(out, &json!({"type": "text-start", "id": id}));
            }
        }
        part(out, &json!({"type": "text-delta", "id": id, "delta": text}));
    }

    fn think(&mut self, id: MessageId, text: &str, out: &mut String) {
        if text.is_empty() {
            return;
        }
        if self.reasoning != Some(id) {
            self.end_text(out);
            self.begin_step(out);
            self.reasoning = Some(id);
            self.thought.insert(id);
            part(out, &json!({"type": "reasoning-start", "id": thought_id(id)}));
        }
        part(
            out,
            &json!({"type": "reasoning-delta", "id": thought_id(id), "delta": text}),
        );
    }

    fn completed(&mut self, message: &Message, out: &mut String) {
        if message.finish_reason != Some(FinishReason::Incomplete) {
            let whole = text_of(&message.content);
            let said = self
                .text
                .filter(|(own, _)| *own == message.id)
                .map_or(0, |(_, said)| said);
            self.say(message.id, whole.get(said..).unwrap_or_default(), out);
        }
        self.end_text(out);
        if message.tool_calls.is_empty() {
            self.end_step(out);
        }
    }

    fn proposed(&mut self, call: &ToolCall, out: &mut String) {
        if label::is_hidden(&call.name) || !self.told.insert(call.id) {
            return;
        }
        self.begin_step(out);
        // What is not executed here, the page executes: a client's own tool, and a
        // question, which the page puts to its user.
        let here = !handed::is_elsewhere(call);
        part(
            out,
            &json!({"type": "tool-input-start", "toolCallId": call.id, "toolName": call.name, "dynamic": true,
                "providerExecuted": here}),
        );
        part(
            out,
            &json!({"type": "tool-input-available", "toolCallId": call.id, "toolName": call.name,
                "input": call.arguments, "dynamic": true, "providerExecuted": here}),
        );
    }

    fn settled(&mut self, call: &ToolCall, out: &mut String) {
        if label::is_hidden(&call.name) {
            return;
        }
        self.handed.remove(&call.id);
        self.ran = true;
        if handed::is_elsewhere(call) && call.started_at.is_some() && self.is_continued {
            // The message has the output already: the page put it there.
            return;
        }
        let result = call.result.clone().unwrap_or_default();
        let told = match call.status {
            CallStatus::Succeeded => json!({"type": "tool-output-available", "toolCallId": call.id,
                "output": result, "dynamic": true, "providerExecuted": !handed::is_elsewhere(call)}),
            CallStatus::Denied => json!({"type": "tool-output-denied", "toolCallId": call.id}),
            _ => json!({"type": "tool-output-error", "toolCallId": call.id, "errorText": result, "dynamic": true,
                "providerExecuted": !handed::is_elsewhere(call)}),
        };
        part(out, &told);
    }

    fn asked(&mut self, approval: &Approval, out: &mut String) {
        if let Some(call) = approval.tool_call_id {
            part(
                out,
                &json!({"type": "tool-approval-request", "approvalId": approval.id, "toolCallId": call}),
            );
        }
        self.approval(approval, out);
    }

    /// All of an approval; the newest of an id stands.
    fn approval(&self, approval: &Approval, out: &mut String) {
        let mut data = question::request(approval);
        set(
            &mut data,
            "decision",
            json!(approval.decision.as_ref().map(|decision| decision.choice)),
        );
        part(out, &json!({"type": "data-approval", "id": approval.id, "data": data}));
    }

    /// Nothing goes on before the page gives the outputs of its calls.
    fn finish(&mut self, turn: &Turn, out: &mut String) -> bool {
        self.end_step(out);
        match turn.status {
            TurnStatus::Completed | TurnStatus::Waiting => {}
            TurnStatus::Failed => part(out, &json!({"type": "error", "errorText": ending::why(turn)})),
            _ => part(out, &json!({"type": "abort"})),
        }
        let mut metadata = self.metadata.clone();
        set(&mut metadata, "status", json!(turn.status));
        set(&mut metadata, "stop_reason", json!(turn.stop_reason));
        set(&mut metadata, "usage", ending::usage(&turn.usage));
        part(out, &json!({"type": "finish", "messageMetadata": metadata}));
        out.push_str("data: [DONE]\n\n");
        true
    }
}

impl Encode for UiStream {
    fn begin(&mut self, out: &mut String) {
        part(
            out,
            &json!({"type": "start", "messageId": self.message_id, "messageMetadata": self.metadata}),
        );
    }

    fn frame(&mut self, frame: &Frame, out: &mut String) -> bool {
        match &frame.event.body {
            EventBody::MessageDelta(data) => self.say(data.message_id, &data.text, out),
            EventBody::ReasoningDelta(data) => self.think(data.message_id, &data.text, out),
            EventBody::ReasoningCompleted(data) if !self.thought.contains(&data.message_id) => {
                self.think(data.message_id, &data.text, out);
            }
            EventBody::MessageCompleted(data) if data.message.role == Role::Assistant => {
                self.completed(&data.message, out);
            }
            // What was not completed is void, and cannot be taken back here.
            EventBody::TurnResumed(_) | EventBody::ModelRetrying(_) => {
                if let Some((id, _)) = self.text {
                    self.say(id, "\n\n[This broke off; what follows begins again.]", out);
                }
                self.end_text(out);
            }
            EventBody::ToolCallProposed(data) => self.proposed(&data.tool_call, out),
            EventBody::ToolCallStarted(data) if handed::is_elsewhere(&data.tool_call) => {
                self.handed.insert(data.tool_call.id);
            }
            EventBody::QuestionAsked(data) => {
                let id = data.question.id;
                part(
                    out,
                    &json!({"type": "data-question", "id": id, "data": handed::question(&data.question)}),
                );
            }
            EventBody::TurnWaiting(data) if !self.handed.is_empty() => return self.finish(&data.turn, out),
            EventBody::ToolCallCompleted(data)
            | EventBody::ToolCallDenied(data)
            | EventBody::ToolCallCancelled(data)
            | EventBody::ToolCallUnknown(data) => self.settled(&data.tool_call, out),
            EventBody::ApprovalRequested(data) => self.asked(&data.approval, out),
            EventBody::ApprovalResolved(data)
            | EventBody::ApprovalExpired(data)
            | EventBody::ApprovalSuperseded(data)
            | EventBody::ApprovalCancelled(data) => self.approval(&data.approval, out),
            EventBody::MessageStarted(_) => self.end_step(out),
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
        self.end_step(out);
        let text = "the server ended this stream; the turn goes on";
        part(out, &json!({"type": "error", "errorText": text}));
        out.push_str("data: [DONE]\n\n");
    }
}

fn thought_id(id: MessageId) -> String {
    format!("{id}-reasoning")
}

fn part(out: &mut String, value: &Value) {
    // Writing to a String cannot fail.
    let _written = write!(out, "data: {value}\n\n");
}
