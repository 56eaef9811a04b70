//! What a response holds, built up from the events of its turn. Each step also
//! says what a stream tells of it. Pure: who reads and who streams fold alike.

use serde_json::{Value, json};

use crate::api::compat::ending::{self, why};
use crate::api::compat::object::{set, set_in};
use crate::api::compat::{handed, label, question};
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::call::{CallStatus, ToolCall};
use crate::model::event::EventBody;
use crate::model::id::{CallId, MessageId};
use crate::model::message::{FinishReason, Message, Role, text_of};
use crate::model::turn::{StopReason, Turn, TurnStatus, Usage};

/// An event of a stream before it has its number.
pub(super) type Told = (&'static str, Value);

/// The message that is being said.
struct Open {
    id: Option<MessageId>,
    index: usize,
    said: String,
}

pub(super) struct Fold {
    response: Value,
    output: Vec<Value>,
    open: Option<Open>,
    cut: bool,
    pending: Vec<Value>,
    /// Calls that the client has, and gave nothing for yet.
    handed: Vec<CallId>,
    /// What the turn had taken before the response began.
    before: Usage,
}

impl Fold {
    /// Of a response of which nothing is known yet. `whole` has the fields that do
    /// not change.
    pub(super) fn new(response: Value, before: Usage) -> Self {
        Self {
            before,
            response,
            output: Vec::new(),
            open: None,
            cut: false,
            pending: Vec::new(),
            handed: Vec::new(),
        }
    }

    /// The response as it is now.
    pub(super) fn response(&self) -> Value {
        let mut response = self.response.clone();
        let kept = self
            .output
            .iter()
            .filter(|item| item["status"] != "incomplete" || item["kept"] == true);
        let output: Vec<Value> = kept.cloned().map(without_mark).collect();
        set(&mut response, "output", json!(output));
        if !self.pending.is_empty() {
            set_in(&mut response, "hermes", "approvals", json!(self.pending));
        }
        response
    }

    pub(super) fn begun(&self) -> [Told; 2] {
        let response = self.response();
        [
            ("response.created", json!({"response": response})),
            ("response.in_progress", json!({"response": response})),
        ]
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// A client comes back that was told of a message under way.
    pub(super) fn reopen(&mut self) {
        let index = self.output.len();
        self.output.push(json!({"status": "incomplete"}));
        self.open = Some(Open {
            id: None,
            index,
            said: String::new(),
        });
    }

    /// The turn waits for a person: who does not follow it has all there is.
    pub(super) fn rests(&mut self, turn: &Turn) {
        set(&mut self.response, "status", json!("completed"));
        self.took(turn);
        set_in(&mut self.response, "hermes", "status", json!("waiting_for_approval"));
    }

    /// What the response took, which is not what its turn took where it goes on
    /// behind another.
    fn took(&mut self, turn: &Turn) {
        let usage = turn.usage.since(&self.before);
        set(&mut self.response, "usage", ending::usage(&usage));
    }

    /// What an event adds, and whether it was the last.
    pub(super) fn take(&mut self, body: &EventBody, told: &mut Vec<Told>) -> bool {
        match body {
            EventBody::TurnQueued(_) => set(&mut self.response, "status", json!("queued")),
            EventBody::TurnStarted(_) => set(&mut self.response, "status", json!("in_progress")),
            EventBody::MessageDelta(data) => self.say(data.message_id, &data.text, told),
            EventBody::MessageCompleted(data) if data.message.role == Role::Assistant => {
                self.completed(&data.message, told);
            }
            EventBody::TurnResumed(_) | EventBody::ModelRetrying(_) => self.void(told),
            EventBody::ToolCallProposed(data) if label::is_item(&data.tool_call) => {
                self.proposed(&data.tool_call, told);
            }
            EventBody::ToolCallStarted(data) if handed::is_elsewhere(&data.tool_call) => {
                self.handed_over(&data.tool_call, told);
            }
            EventBody::TurnWaiting(data) if !self.handed.is_empty() => {
                self.hands_over(&data.turn, told);
                return true;
            }
            EventBody::ToolCallCompleted(data)
            | EventBody::ToolCallDenied(data)
            | EventBody::ToolCallCancelled(data)
            | EventBody::ToolCallUnknown(data)
                if label::is_item(&data.tool_call) =>
            {
                self.settled(&data.tool_call, told);
            }
            EventBody::ApprovalRequested(data) => self.asked(&data.approval, told),
            EventBody::ApprovalResolved(data)
            | EventBody::ApprovalExpired(data)
            | EventBody::ApprovalSuperseded(data)
            | EventBody::ApprovalCancelled(data) => self.answered(&data.approval),
            EventBody::TurnCompleted(data)
            | EventBody::TurnFailed(data)
            | EventBody::TurnCancelled(data)
            | EventBody::TurnInterrupted(data)
            | EventBody::TurnRolledBack(data) => {
                self.finish(&data.turn, told);
                return true;
            }
            _ => {}
        }
        false
    }

    fn say(&mut self, id: MessageId, text: &str, told: &mut Vec<Told>) {
        if text.is_empty() {
            return;
        }
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.id.is_some_and(|own| own != id))
        {
            self.void(told);
        }
        let index = match &mut self.open {
            Some(open) => {
                open.id = Some(id);
                open.index
            }
            None => self.begin_message(id, told),
        };
        if let Some(open) = &mut self.open {
            open.said.push_str(text);
        }
        told.push((
            "response.output_text.delta",
            json!({"item_id": item_id(id), "output_index": index, "content_index": 0, "delta": text, "logprobs": []}),
        ));
    }

    fn begin_message(&mut self, id: MessageId, told: &mut Vec<Told>) -> usize {
        let index = self.output.len();
        let item = message(id, "in_progress", None);
        told.push((
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
        ));
        let part = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
        told.push((
            "response.content_part.added",
            json!({"item_id": item_id(id), "output_index": index, "content_index": 0, "part": part}),
        ));
        self.output.push(json!({"status": "incomplete"}));
        self.open = Some(Open {
            id: Some(id),
            index,
            said: String::new(),
        });
        index
    }

    fn completed(&mut self, message: &Message, told: &mut Vec<Told>) {
        self.cut = message.finish_reason == Some(FinishReason::Length);
        let whole = text_of(&message.content);
        if message.finish_reason == Some(FinishReason::Incomplete) || whole.is_empty() {
            return self.void(told);
        }
        let is_other = self
            .open
            .as_ref()
            .is_some_and(|open| open.id.is_some_and(|own| own != message.id));
        if is_other {
            self.void(told);
        }
        let comes_back = self.open.as_ref().is_some_and(|open| open.id.is_none());
        let said = self.open.as_ref().map_or(0, |open| open.said.len());
        // Who came back in the middle knows its part; the end has the whole.
        let rest = whole
            .get(said..)
            .filter(|rest| !rest.is_empty() && !comes_back && self.is_joined(&whole));
        if let Some(rest) = rest {
            self.say(message.id, rest, told);
        }
        let Some(Open { index, .. }) = self.open.take() else {
            return;
        };
        close(message.id, index, &whole, told);
        let item = self::message(message.id, "completed", Some(&whole));
        told.push((
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        ));
        self.put(index, item);
    }

    /// What was said of the open message is how it begins.
    fn is_joined(&self, whole: &str) -> bool {
        self.open.as_ref().is_none_or(|open| whole.starts_with(&open.said))
    }

    /// What was not completed does not count.
    fn void(&mut self, told: &mut Vec<Told>) {
        let Some(Open {
            id: Some(id),
            index,
            said,
        }) = self.open.take()
        else {
            return;
        };
        let item = message(id, "incomplete", Some(&said));
        told.push((
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        ));
    }

    fn proposed(&mut self, call: &ToolCall, told: &mut Vec<Told>) {
        let index = self.output.len();
        let item = function_call(call, "in_progress");
        told.push((
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
        ));
        self.output.push(
            json!({"kept": true, "id": call_item(call), "type": "function_call", "name": call.name,
            "call_id": call.id, "arguments": call.arguments.to_string(), "status": "in_progress"}),
        );
    }

    /// The call is the client's now: there is no more to its item.
    fn handed_over(&mut self, call: &ToolCall, told: &mut Vec<Told>) {
        self.handed.push(call.id);
        let id = call_item(call);
        let Some(index) = self.output.iter().position(|item| item["id"] == id.as_str()) else {
            return;
        };
        let item = function_call(call, "completed");
        told.push((
            "response.function_call_arguments.done",
            json!({"item_id": id, "output_index": index, "name": call.name,
                "arguments": call.arguments.to_string()}),
        ));
        told.push((
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        ));
        self.put(index, item);
    }

    /// Nothing goes on before the client gives the outputs of its calls, and what
    /// then follows is another response.
    fn hands_over(&mut self, turn: &Turn, told: &mut Vec<Told>) {
        self.void(told);
        set(&mut self.response, "status", json!("completed"));
        self.took(turn);
        set_in(&mut self.response, "hermes", "status", json!("waiting_for_input"));
        told.push(("response.completed", json!({"response": self.response()})));
    }

    fn settled(&mut self, call: &ToolCall, told: &mut Vec<Told>) {
        self.handed.retain(|own| *own != call.id);
        if handed::is_elsewhere(call) && call.started_at.is_some() {
            // What it came to is the client's own word, and no output of ours.
            return;
        }
        let id = call_item(call);
        let Some(index) = self.output.iter().position(|item| item["id"] == id.as_str()) else {
            return self.result(call, told);
        };
        let item = function_call(call, "completed");
        told.push((
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        ));
        self.put(index, item);
        self.result(call, told);
    }

    fn result(&mut self, call: &ToolCall, told: &mut Vec<Told>) {
        let index = self.output.len();
        let text = call.result.clone().unwrap_or_default();
        let status = match call.status {
            CallStatus::Cancelled | CallStatus::Unknown => "incomplete",
            _ => "completed",
        };
        let mut item = json!({"id": format!("fco_{}", digits(&call.id.to_string())), "type": "function_call_output",
            "call_id": call.id, "output": text, "status": status, "outcome": call.status});
        let mut streamed = item.clone();
        set(&mut streamed, "output", json!([{"type": "input_text", "text": text}]));
        told.push((
            "response.output_item.added",
            json!({"output_index": index, "item": streamed}),
        ));
        told.push((
            "response.output_item.done",
            json!({"output_index": index, "item": streamed}),
        ));
        set(&mut item, "kept", json!(true));
        self.output.push(item);
    }

    fn asked(&mut self, approval: &Approval, told: &mut Vec<Told>) {
        let index = self.output.len();
        let item = json!({"id": approval_item(approval), "type": "mcp_approval_request", "server_label": "hermes",
            "name": approval.tool.as_deref().unwrap_or("hermes"), "arguments": approval.arguments.to_string(),
            "approval_id": approval.id, "hermes": question::request(approval)});
        told.push((
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
        ));
        told.push((
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        ));
        self.output.push(item);
        if approval.status == ApprovalStatus::Pending {
            self.pending.push(question::request(approval));
        }
    }

    fn answered(&mut self, approval: &Approval) {
        let id = json!(approval.id);
        self.pending.retain(|asked| asked["approval_id"] != id);
    }

    fn finish(&mut self, turn: &Turn, told: &mut Vec<Told>) {
        self.void(told);
        self.pending.clear();
        let cut = self.cut || turn.stop_reason == Some(StopReason::MaxSteps);
        let (status, event) = match turn.status {
            TurnStatus::Completed if cut => ("incomplete", "response.incomplete"),
            TurnStatus::Completed => ("completed", "response.completed"),
            TurnStatus::Cancelled => ("cancelled", "response.failed"),
            TurnStatus::Interrupted | TurnStatus::RolledBack => ("incomplete", "response.incomplete"),
            _ => ("failed", "response.failed"),
        };
        set(&mut self.response, "status", json!(status));
        self.took(turn);
        set(
            &mut self.response,
            "completed_at",
            json!(turn.finished_at.map(|at| at.0 / 1000)),
        );
        match status {
            "incomplete" => {
                let reason = if cut { "max_output_tokens" } else { "interrupted" };
                set(&mut self.response, "incomplete_details", json!({"reason": reason}));
            }
            "failed" | "cancelled" => {
                let code = turn
                    .error
                    .as_ref()
                    .map_or(json!("server_error"), |problem| json!(problem.code));
                set(
                    &mut self.response,
                    "error",
                    json!({"code": code, "type": "server_error", "message": why(turn)}),
                );
            }
            _ => {}
        }
        told.push((event, json!({"response": self.response()})));
    }

    fn put(&mut self, index: usize, item: Value) {
        if let Some(place) = self.output.get_mut(index) {
            *place = item;
        }
    }
}

/// Our own mark is no part of an item.
fn without_mark(mut item: Value) -> Value {
    if let Some(fields) = item.as_object_mut() {
        fields.remove("kept");
    }
    item
}

fn close(id: MessageId, index: usize, whole: &str, told: &mut Vec<Told>) {
    let place = |mut fields: Value| {
        set(&mut fields, "item_id", json!(item_id(id)));
        set(&mut fields, "output_index", json!(index));
        set(&mut fields, "content_index", json!(0));
        fields
    };
    told.push((
        "response.output_text.done",
        place(json!({"text": whole, "logprobs": []})),
    ));
    let part = json!({"type": "output_text", "text": whole, "annotations": [], "logprobs": []});
    told.push(("response.content_part.done", place(json!({"part": part}))));
}

fn message(id: MessageId, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text
        .map(|text| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}))
        .into_iter()
        .collect();
    json!({"id": item_id(id), "type": "message", "status": status, "role": "assistant", "content": content})
}

fn function_call(call: &ToolCall, status: &str) -> Value {
    json!({"id": call_item(call), "type": "function_call", "name": call.name, "call_id": call.id,
        "arguments": call.arguments.to_string(), "status": status})
}

fn item_id(id: MessageId) -> String {
    id.to_string()
}

fn call_item(call: &ToolCall) -> String {
    format!("fc_{}", digits(&call.id.to_string()))
}

/// As clients answer it.
fn approval_item(approval: &Approval) -> String {
    format!("mcpr_{}", digits(&approval.id.to_string()))
}

fn digits(id: &str) -> &str {
    id.split_once('_').map_or(id, |(_, digits)| digits)
}
