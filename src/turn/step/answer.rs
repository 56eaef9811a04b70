//! The model's answer: words end the turn, calls are parsed, judged, planned,
//! and started where nothing stands in the way.

use serde_json::Value;

use super::Step;
use super::plan::{self, Hooked, Planned};
use crate::model::artifact::Kept;
use crate::model::call::{CallStatus, Effect, Execution, Footprint};
use crate::model::event::EventType;
use crate::model::guardrail::{Action, Signature};
use crate::model::id::{CallId, MessageId};
use crate::model::message::FinishReason;
use crate::model::record::{CallRecord, LastAnswer};
use crate::model::usage::Spent;
use crate::provider::{Answer, Call, Finish};
use crate::tool::error_text;
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
    /// What hooks made of its calls, in their order.
    pub hooked: Vec<Option<Hooked>>,
    /// Results of the calls before it that were too long beside each other.
    pub artifacts: Vec<(CallId, Kept)>,
    /// What the prompt said of the project, when it was read for this answer.
    pub context: Option<String>,
}

/// A call that has its result already: how it is settled, and the text.
type Unrun = (CallId, CallStatus, String);

impl Step<'_> {
    /// Stores an answer and goes on.
    pub fn answer(&mut self, input: AnswerIn) {
        let AnswerIn {
            message_id,
            answer,
            with_tools,
            spent,
            hooked,
            artifacts,
            context,
        } = input;
        if let Some(context) = context {
            self.state.session.context_block = Some(context.clone());
            self.writes.context_block = Some(context);
        }
        for (call, kept) in artifacts {
            self.keep_artifact(call, kept);
        }
        let progress = &mut self.state.turn.progress;
        progress.steps += 1;
        progress.recoveries = 0;
        let finish = finish_reason(&answer.finish);
        if with_tools && !answer.calls.is_empty() {
            self.calls(message_id, answer, spent, hooked);
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

    fn calls(&mut self, message_id: MessageId, answer: Answer, spent: Option<Spent>, hooked: Vec<Option<Hooked>>) {
        let planned = self.plan(answer.calls, hooked);
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
        self.state.turn.progress.asks.clear();
        self.state.turn.progress.traces.clear();
        self.state.turn.progress.forms.clear();
        self.state.turn.progress.staged.clear();
        let mut errors = Vec::new();
        for ((planned, slot), position) in planned.into_iter().zip(slots).zip(first..) {
            let call = self.call(message_id, planned, slot, position, &mut errors);
            self.writes.new_calls.push(call.clone());
            self.state.calls.push(call);
        }
        self.judge_all(errors);
    }

    fn judge_all(&mut self, mut errors: Vec<Unrun>) {
        let ids: Vec<_> = self.state.calls.iter().map(|call| call.call_id).collect();
        for id in &ids {
            self.push_call_event(EventType::ToolCallProposed, *id);
        }
        for id in ids {
            match errors.iter().position(|(failed, ..)| *failed == id) {
                Some(place) => {
                    let (_, status, text) = errors.swap_remove(place);
                    let kind = match status {
                        CallStatus::Denied => EventType::ToolCallDenied,
                        _ => EventType::ToolCallCompleted,
                    };
                    self.settle_call(id, status, kind, text);
                }
                None => match self.loop_block(id) {
                    Some(text) => self.settle_call(id, CallStatus::Failed, EventType::ToolCallCompleted, text),
                    None => self.propose(id),
                },
            }
        }
    }

    /// The result of a call that was made too often to be made again.
    fn loop_block(&self, id: CallId) -> Option<String> {
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

    /// Each call read, with what hooks made of it; exact repetitions dropped.
    fn plan(&self, calls: Vec<Call>, hooked: Vec<Option<Hooked>>) -> Vec<Planned> {
        let mut seen: Vec<(String, String)> = Vec::with_capacity(calls.len());
        let mut all = Vec::with_capacity(calls.len());
        let hooked = hooked.into_iter().chain(std::iter::repeat_with(|| None));
        for (call, hooked) in calls.into_iter().zip(hooked) {
            let wrote = (call.name.clone(), call.arguments.clone());
            if !seen.contains(&wrote) {
                seen.push(wrote);
                all.push(plan::planned(self.world.tools, call).hooked(self.world.tools, hooked));
            }
        }
        all
    }

    fn footprints(&self, planned: &[Planned]) -> Vec<Footprint> {
        let session = &self.state.session;
        let place = self.world.place(session.cwd.as_deref(), &session.environment.backend);
        let footprint = |planned: &Planned| match self.world.tools.get(&planned.name) {
            Some(tool) if !planned.is_settled() => tool.footprint(&Value::Object(planned.arguments.clone()), &place),
            // Settled at once: it runs nothing.
            _ => Footprint::Parallel,
        };
        planned.iter().map(footprint).collect()
    }

    fn call(
        &mut self,
        message_id: MessageId,
        planned: Planned,
        slot: segments::Slot,
        position: i64,
        errors: &mut Vec<Unrun>,
    ) -> CallRecord {
        let hooked = planned.hooked.as_ref();
        let call_id = hooked.map_or_else(|| self.world.id(), |hooked| hooked.call_id);
        if let Some(hooked) = hooked {
            self.note_hooked(call_id, &hooked.before);
        }
        let blocked = planned.blocked().map(error_text::envelope);
        match (planned.error, blocked) {
            (Some(error), _) => errors.push((call_id, CallStatus::Failed, error)),
            (None, Some(text)) => errors.push((call_id, CallStatus::Denied, text)),
            (None, None) => {}
        }
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
