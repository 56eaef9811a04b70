//! Taking over a turn whose owner is gone, and trying the model again.

use std::time::Duration;

use serde_json::json;

use super::Step;
use crate::model::call::{CallStatus, Effect};
use crate::model::event::EventType;
use crate::model::id::CallId;
use crate::model::problem::Problem;
use crate::model::record::CallRecord;
use crate::model::usage::Spent;
use crate::turn::next::{Next, next};

impl Step<'_> {
    /// This process goes on with the turn. Calls that were running: those that
    /// only read run again; of the others nobody knows whether they took
    /// effect: model and client are told so, or a person is asked.
    pub fn take_over(&mut self) {
        let turn = &mut self.state.turn;
        turn.owner = self.world.owner;
        turn.epoch += 1;
        turn.progress.recoveries += 1;
        // Time without an owner was not spent running.
        turn.active_since = Some(self.world.now);
        let event = self.turn_event(EventType::TurnResumed, json!({"reason": "recovered"}));
        self.writes.events.push(event);
        // Programs are gone: nobody waits for their calls.
        let calls = self.state.calls.iter();
        let programs: Vec<CallId> = calls.filter_map(CallRecord::parent).collect();
        for program in programs {
            self.close_nested(program, "the server stopped");
        }
        let running: Vec<(CallId, Effect)> = self
            .state
            .calls
            .iter()
            .filter(|call| call.status == CallStatus::Running)
            .map(|call| (call.call_id, call.effect))
            .collect();
        for (id, effect) in running {
            match effect {
                Effect::Read | Effect::Internal => self.mark(id, CallStatus::Proposed),
                Effect::Write if self.asks_what_became() => self.ask_what_became(id),
                Effect::Write => {
                    let text = "[Interrupted: the server stopped while this call ran. Its effect is unknown: it may \
                        have happened in part or in full. Check before doing it again.]";
                    self.settle_call(id, CallStatus::Unknown, EventType::ToolCallUnknown, text.to_owned());
                }
            }
        }
        self.settle();
    }

    /// The model is asked again; what was in flight is void. An answer that
    /// cannot be used was paid for all the same, and may have been the last that
    /// a budget allows.
    pub fn retrying(&mut self, attempt: u32, delay: Duration, error: &Problem, spent: Option<Spent>) {
        self.touched = true;
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let data = json!({"attempt": attempt, "delay_ms": delay, "error": error});
        let event = self.event(EventType::ModelRetrying, data);
        self.writes.events.push(event);
        let Some(spent) = spent else { return };
        self.spend(spent);
        // The request is made already: what follows is the next try of it, or
        // something else.
        if !matches!(next(&self.state, self.world.rules.max_steps), Next::CallModel { .. }) {
            self.settle();
        }
    }
}
