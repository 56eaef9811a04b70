//! The model's answer: words end the turn, calls are parsed, judged, planned,
//! and started where nothing stands in the way.

use serde_json::{Map, Value, json};

use super::Step;
use crate::model::call::{CallStatus, Effect, Execution, Footprint};
use crate::model::event::EventType;
use crate::model::guardrail::{Action, Signature};
use crate::model::id::MessageId;
use crate::model::message::FinishReason;
use crate::model::record::{CallRecord, LastAnswer};
use crate::model::usage::Spent;
use crate::provider::{Answer, Call, Finish};
use crate::tool::{arguments, coerce, error_text, name_repair};
use crate::turn::segments;

/// An answer that is to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerIn {
    pub message_id: MessageId,
    pub answer: Answer,
    /// Tools were offered; otherwise only the words count.
    pub with_tools: bool,
    /// Nothing where no model was asked.
    pub spent: Option<Spent>,
}

/// A call before it is stored: what to run, or why it cannot be.
struct Planned {
    call: Call,
    name: String,
    arguments: Map<String, Value>,
    /// The text of the result of a call that cannot run.
    error: Option<String>,
    unknown: bool,
}

impl Step<'_> {
    /// Stores an answer and goes on.
    pub fn answer(&mut self, input: AnswerIn) {
        let AnswerIn {
            message_id,
            answer,
            with_tools,
            spent,
        } = input;
        let progress = &mut self.state.turn.progress;
        progress.steps += 1;
        progress.recoveries = 0;
        let finish = finish_reason(&answer.finish);
        if with_tools && !answer.calls.is_empty() {
            self.calls(message_id, answer, spent);
        } else {
            let progress = &mut self.state.turn.progress;
            progress.last = match answer.finish {
                Finish::Length => LastAnswer::Cut,
                Finish::ContentFilter => LastAnswer::Filtered,
                Finish::Stop | Finish::ToolCalls | Finish::Unknown(_) => LastAnswer::Text,
            };
            progress.continuations = if progress.last == LastAnswer::Cut {
                progress.continuations + 1
            } else {
                0
            };
            progress.invalid_rounds = 0;
            self.push_answer(message_id, answer.text, answer.reasoning, finish, 0);
            spent.into_iter().for_each(|spent| self.spend(spent));
        }
        self.settle();
    }

    fn calls(&mut self, message_id: MessageId, answer: Answer, spent: Option<Spent>) {
        let planned = self.plan(answer.calls);
        let progress = &mut self.state.turn.progress;
        progress.last = LastAnswer::Calls;
        progress.continuations = 0;
        let all_unknown = planned.iter().all(|planned| planned.unknown);
        progress.invalid_rounds = if all_unknown { progress.invalid_rounds + 1 } else { 0 };
        let first = self.state.session.next_position + 1;
        let n_calls = i64::try_from(planned.len()).unwrap_or(i64::MAX);
        self.push_answer(
            message_id,
            answer.text,
            answer.reasoning,
            FinishReason::ToolCalls,
            n_calls,
        );
        spent.into_iter().for_each(|spent| self.spend(spent));
        let slots = segments::plan(&self.footprints(&planned));
        self.state.calls.clear();
        let mut errors = Vec::new();
        for ((planned, slot), position) in planned.into_iter().zip(slots).zip(first..) {
            let call = self.call(message_id, planned, slot, position, &mut errors);
            self.writes.new_calls.push(call.clone());
            self.state.calls.push(call);
        }
        self.judge_all(errors);
    }

    fn judge_all(&mut self, mut errors: Vec<(crate::model::id::CallId, String)>) {
        let ids: Vec<_> = self.state.calls.iter().map(|call| call.call_id).collect();
        for id in &ids {
            self.push_call_event(EventType::ToolCallProposed, *id);
        }
        for id in ids {
            match errors.iter().position(|(failed, _)| *failed == id) {
                Some(place) => {
                    let (_, text) = errors.swap_remove(place);
                    self.settle_call(id, CallStatus::Failed, EventType::ToolCallCompleted, text);
                }
                None => match self.loop_block(id) {
                    Some(text) => self.settle_call(id, CallStatus::Failed, EventType::ToolCallCompleted, text),
                    None => self.propose(id),
                },
            }
        }
    }

    /// The result of a call that was made too often to be made again.
    fn loop_block(&self, id: crate::model::id::CallId) -> Option<String> {
        let call = self.state.call(id)?;
        let signature = Signature::of(&call.name, &call.arguments);
        let verdict = self
            .state
            .turn
            .progress
            .guardrail
            .before(&signature, &self.world.rules.guardrail);
        (verdict.action == Action::Block).then(|| verdict.blocked(&signature))
    }

    /// Names repaired, arguments parsed and coerced, exact repetitions dropped.
    fn plan(&self, calls: Vec<Call>) -> Vec<Planned> {
        let mut planned: Vec<Planned> = Vec::with_capacity(calls.len());
        for call in calls {
            let repeated = planned
                .iter()
                .any(|seen| seen.call.name == call.name && seen.call.arguments == call.arguments);
            if !repeated {
                planned.push(self.plan_one(call));
            }
        }
        planned
    }

    fn plan_one(&self, call: Call) -> Planned {
        let known = self.world.tools.names();
        let name = if known.contains(&call.name.as_str()) {
            None
        } else {
            name_repair::repair(&call.name, &known)
        };
        let name = name.unwrap_or(call.name.as_str()).to_owned();
        let Some(parameters) = self.world.tools.parameters(&name) else {
            let error = unknown_tool(&call.name, &known);
            return Planned {
                call,
                name,
                arguments: Map::new(),
                error: Some(error),
                unknown: true,
            };
        };
        match arguments::parse(&call.arguments) {
            Ok(parsed) => {
                let arguments = coerce::coerce(&parameters, parsed);
                let error = missing_argument(&parameters, &arguments);
                Planned {
                    call,
                    name,
                    arguments,
                    error,
                    unknown: false,
                }
            }
            Err(unreadable) => {
                let error = json!({"error": "Invalid tool arguments", "message": unreadable.to_string()}).to_string();
                Planned {
                    call,
                    name,
                    arguments: Map::new(),
                    error: Some(error),
                    unknown: false,
                }
            }
        }
    }

    fn footprints(&self, planned: &[Planned]) -> Vec<Footprint> {
        let session = &self.state.session;
        let place = self.world.place(session.cwd.as_deref(), &session.environment.backend);
        let footprint = |planned: &Planned| match self.world.tools.get(&planned.name) {
            Some(tool) if planned.error.is_none() => tool.footprint(&Value::Object(planned.arguments.clone()), &place),
            // Settled at once: it runs nothing.
            _ => Footprint::Parallel,
        };
        planned.iter().map(footprint).collect()
    }

    fn call(
        &self,
        message_id: MessageId,
        planned: Planned,
        slot: segments::Slot,
        position: i64,
        errors: &mut Vec<(crate::model::id::CallId, String)>,
    ) -> CallRecord {
        let call_id = self.world.id();
        errors.extend(planned.error.map(|error| (call_id, error)));
        let arguments = Value::Object(planned.arguments);
        let (effect, execution) = match self.world.tools.get(&planned.name) {
            Some(tool) => (tool.effect(&arguments), tool.execution()),
            None if self.world.tools.client(&planned.name).is_some() => (Effect::Write, Execution::Client),
            None => (Effect::Read, Execution::Server),
        };
        CallRecord {
            call_id,
            turn_id: self.state.turn.turn_id,
            message_id,
            batch_index: u32::try_from(self.state.calls.len()).unwrap_or(u32::MAX),
            position,
            name: planned.name,
            provider_id: planned.call.id,
            arguments_raw: planned.call.arguments,
            arguments,
            edited: None,
            effect,
            execution,
            segment: slot.segment,
            parallel: slot.parallel,
            status: CallStatus::Proposed,
            exit_code: None,
            created_at: self.world.now,
            started_at: None,
            finished_at: None,
            nested: None,
        }
    }
}

fn finish_reason(finish: &Finish) -> FinishReason {
    match finish {
        Finish::Stop | Finish::Unknown(_) => FinishReason::Stop,
        Finish::ToolCalls => FinishReason::ToolCalls,
        Finish::Length => FinishReason::Length,
        Finish::ContentFilter => FinishReason::ContentFilter,
    }
}

fn unknown_tool(name: &str, known: &[&str]) -> String {
    let shown = crate::base::text::first_chars(name, 100);
    error_text::envelope(&format!("Unknown tool: {shown}. Available tools: {}", known.join(", ")))
}

/// The error of a call that lacks a required argument or has one of a wrong
/// type that coercion could not mend.
pub(super) fn missing_argument(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let required = schema.get("required").and_then(Value::as_array);
    let mut names = required.into_iter().flatten().filter_map(Value::as_str);
    let missing = names.find(|name| arguments.get(*name).is_none_or(Value::is_null))?;
    let text = format!("missing required argument `{missing}`");
    Some(json!({"error": "Invalid tool arguments", "message": text}).to_string())
}
