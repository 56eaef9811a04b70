//! Calls that a running program makes: stored, judged and started like those of
//! an answer, and over when the program is.

use serde_json::{Map, Value};

use super::Step;
use super::plan::missing_argument;
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::call::{CallStatus, Effect, Execution};
use crate::model::event::EventType;
use crate::model::id::CallId;
use crate::model::record::{CallRecord, Nested};
use crate::tool::hook::Before;
use crate::tool::{coerce, error_text};

/// A call that a program wants to make.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedIn {
    pub call_id: CallId,
    pub parent: CallId,
    pub name: String,
    pub arguments: Map<String, Value>,
    pub before: Before,
}

impl Step<'_> {
    /// Takes a program's call in and goes on. Where the program does not run any
    /// more there is nothing to take.
    pub fn nested(&mut self, input: NestedIn) {
        self.touched = true;
        let parent = self.state.call(input.parent);
        let Some(parent) = parent.filter(|call| call.status == CallStatus::Running).cloned() else {
            return;
        };
        let (id, parameters) = (input.call_id, self.world.tools.parameters(&input.name));
        let wanted = input.before.arguments.clone().unwrap_or(input.arguments);
        let arguments = match &parameters {
            Some(parameters) => coerce::coerce(parameters, wanted),
            None => wanted,
        };
        let missing = parameters.and_then(|parameters| missing_argument(&parameters, &arguments));
        let siblings = self
            .state
            .calls
            .iter()
            .filter(|call| call.parent() == Some(parent.call_id));
        let arguments = Value::Object(arguments);
        let call = CallRecord {
            call_id: id,
            batch_index: u32::try_from(siblings.count()).unwrap_or(u32::MAX),
            effect: match self.world.tools.get(&input.name) {
                Some(tool) => tool.effect(&arguments),
                None => Effect::Read,
            },
            name: input.name,
            provider_id: String::new(),
            arguments_raw: String::new(),
            arguments,
            edited: None,
            execution: Execution::Server,
            status: CallStatus::Proposed,
            exit_code: None,
            created_at: self.world.now,
            started_at: None,
            finished_at: None,
            nested: Some(Nested {
                parent: parent.call_id,
                result: None,
            }),
            ..parent
        };
        self.writes.new_calls.push(call.clone());
        self.state.calls.push(call);
        self.forget_hooked();
        self.note_hooked(id, &input.before);
        self.push_call_event(EventType::ToolCallProposed, id);
        match (missing, input.before.blocked) {
            (Some(text), _) => self.settle_call(id, CallStatus::Failed, EventType::ToolCallCompleted, text),
            (None, Some(why)) => {
                let text = error_text::envelope(&why);
                self.settle_call(id, CallStatus::Denied, EventType::ToolCallDenied, text);
            }
            (None, None) => self.propose(id),
        }
        self.settle();
    }

    /// What hooks made of a call counts as long as it is open, and is told with
    /// its result.
    pub(super) fn note_hooked(&mut self, id: CallId, before: &Before) {
        let progress = &mut self.state.turn.progress;
        if !before.asks.is_empty() {
            progress.asks.insert(id, before.asks.clone());
        }
        if !before.trace.is_empty() {
            progress.traces.insert(id, before.trace.clone());
        }
    }

    /// A program may make many calls: those that are over are told of already.
    fn forget_hooked(&mut self) {
        let over = |call: &&CallRecord| call.nested.is_some() && call.status.is_settled();
        for call in self.state.calls.iter().filter(over) {
            self.state.turn.progress.asks.remove(&call.call_id);
            self.state.turn.progress.traces.remove(&call.call_id);
            self.state.turn.progress.forms.remove(&call.call_id);
        }
    }

    /// The program is gone, and with it whoever waited for its calls.
    pub(super) fn close_nested(&mut self, parent: CallId, why: &str) {
        let calls = self.state.calls.iter();
        let open: Vec<CallRecord> = calls
            .filter(|call| call.parent() == Some(parent) && !call.status.is_settled())
            .cloned()
            .collect();
        for call in open {
            let asked = self.state.pending().find(|own| own.tool_call_id == Some(call.call_id));
            if let Some(approval) = asked.cloned() {
                let settled = Approval {
                    status: ApprovalStatus::Superseded,
                    ..approval
                };
                self.replace(&settled, EventType::ApprovalSuperseded);
            }
            let (status, kind, text) = match (call.status, call.effect) {
                (CallStatus::Running, Effect::Write) => (
                    CallStatus::Unknown,
                    EventType::ToolCallUnknown,
                    format!("[Interrupted: {why} while this call ran. Its effect is unknown: it may have happened.]"),
                ),
                _ => (
                    CallStatus::Cancelled,
                    EventType::ToolCallCancelled,
                    format!("[Not run to its end: {why}.]"),
                ),
            };
            self.settle_call(call.call_id, status, kind, text);
        }
    }

    /// What a program reads: its call's result as it is, with a word where a
    /// person changed the arguments.
    pub(super) fn told_program(call: &CallRecord, text: String) -> String {
        if call.edited.is_none() {
            return text;
        }
        match serde_json::from_str(&text) {
            Ok(Value::Object(mut fields)) => {
                fields.insert("arguments_changed_by".to_owned(), Value::from("user"));
                Value::Object(fields).to_string()
            }
            _ => text,
        }
    }
}
