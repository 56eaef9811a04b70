//! The pure middle of the engine: what a change of a turn's record writes.
//!
//! A [`Step`] starts from the record under the session's lock, takes one thing
//! that happened (an answer, results, a decision, …), and leaves the new record
//! and the [`Writes`] that one transaction carries out. After every change it
//! asks `next` and draws the consequence in the same transaction, so no wake-up
//! can be lost between two commits.

mod answer;
mod artifacts;
mod begin;
mod budget;
mod decide;
mod delegate;
mod edit;
mod finish;
mod gate;
mod nested;
mod park;
mod pending;
mod plan;
mod recover;
mod results;
mod review;
mod steer;
mod takeover;
#[cfg(test)]
mod tests;
mod trail;

pub use answer::AnswerIn;
pub use decide::DecisionIn;
pub use edit::Edit;
pub use finish::Partial;
pub use nested::NestedIn;
pub use park::ClientResult;
pub(super) use plan::missing_argument;
pub use plan::{Hooked, read_call};
pub use review::ReviewIn;

use serde_json::json;

use super::next::{Next, next};
use super::state::State;
use super::world::World;
use crate::model::call::CallStatus;
use crate::model::event::EventType;
use crate::model::id::CallId;
use crate::model::record::{NewEvent, Writes};
use crate::model::session::SessionStatus;
use crate::model::turn::TurnStatus;

pub struct Step<'a> {
    pub state: State,
    pub writes: Writes,
    world: &'a World<'a>,
    /// The status clients were last told.
    told: SessionStatus,
    /// The turn's row is written back at the end.
    touched: bool,
    /// Why a parked turn goes on, as its event says.
    woken_by: &'static str,
}

impl<'a> Step<'a> {
    pub fn new(world: &'a World<'a>, state: State) -> Self {
        let told = state.session.status;
        Self {
            state,
            writes: Writes::default(),
            world,
            told,
            touched: false,
            woken_by: "decided",
        }
    }

    /// Asks `next` until nothing more follows by itself: starts what may start,
    /// parks or ends the turn.
    fn settle(&mut self) {
        self.touched = true;
        while !self.state.turn.status.is_terminal() {
            match next(&self.state, self.world.rules.max_steps) {
                // Without an owner nothing starts: who takes the turn over does it.
                Next::Run(ids) if self.has_somebody_to_run() => ids.into_iter().for_each(|id| self.start_call(id)),
                next @ (Next::Run(_) | Next::Await | Next::CallModel { .. }) => {
                    self.resume();
                    if matches!(next, Next::CallModel { .. }) {
                        self.deliver_steers();
                    }
                    break;
                }
                Next::Park => {
                    self.park();
                    break;
                }
                Next::AskBudget => self.ask_budget(),
                Next::Finish(outcome) => self.finish(outcome),
            }
        }
        self.tell_session();
    }

    /// A turn that runs without an owner is taken over first: what was started
    /// for nobody would count as having run.
    fn has_somebody_to_run(&self) -> bool {
        let turn = &self.state.turn;
        self.world.owner.is_some() && (turn.owner.is_some() || turn.status == TurnStatus::Waiting)
    }

    /// The turn runs on this process, if it did not already.
    fn resume(&mut self) {
        let turn = &mut self.state.turn;
        if turn.status == TurnStatus::Waiting {
            turn.status = TurnStatus::Running;
            turn.owner = self.world.owner;
            turn.epoch += 1;
            turn.active_since = Some(self.world.now);
            let place = self.first_start();
            let event = self.turn_event(EventType::TurnResumed, json!({"reason": self.woken_by}));
            self.writes.events.insert(place, event);
        }
    }

    /// Where `turn.resumed` belongs: before the calls that this step starts.
    fn first_start(&self) -> usize {
        let events = &self.writes.events;
        events
            .iter()
            .position(|event| event.kind == EventType::ToolCallStarted)
            .unwrap_or(events.len())
    }

    /// Rows only from now on: no owner, no time counted.
    fn park(&mut self) {
        if self.state.turn.status == TurnStatus::Running {
            self.stop_counting();
            self.state.turn.status = TurnStatus::Waiting;
            self.state.turn.owner = None;
            let event = self.turn_event(EventType::TurnWaiting, json!({}));
            self.writes.events.push(event);
        }
    }

    fn stop_counting(&mut self) {
        let turn = &mut self.state.turn;
        if let Some(since) = turn.active_since.take() {
            let ran = i64::try_from(self.world.now.since(since).as_millis()).unwrap_or(i64::MAX);
            turn.active_ms = turn.active_ms.saturating_add(ran);
        }
    }

    /// Tells clients when the session's status changed.
    pub fn tell_session(&mut self) {
        let active = !self.state.turn.status.is_terminal();
        let pends = self.state.pending().next().is_some()
            || self.state.pending_questions().next().is_some()
            || self.state.with_client().next().is_some();
        let session = &mut self.state.session;
        session.active_turn_id = active.then_some(self.state.turn.turn_id);
        session.status = match (active, pends) {
            (false, _) => SessionStatus::Idle,
            (true, true) => SessionStatus::RequiresAction,
            (true, false) => SessionStatus::Running,
        };
        if session.status != self.told {
            self.told = session.status;
            let event = self.session_event(EventType::SessionStatus);
            self.writes.events.push(event);
        }
    }

    /// A session's event with the state that changes by itself.
    fn session_event(&self, kind: EventType) -> NewEvent {
        let session = &self.state.session;
        let actions = self.state.required_actions();
        let state = json!({"status": session.status, "required_actions": actions,
            "active_turn_id": session.active_turn_id, "usage": session.usage, "updated_at": self.world.now});
        NewEvent {
            kind,
            turn_id: None,
            epoch: 0,
            data: json!({"state": state}),
        }
    }

    fn turn_event(&self, kind: EventType, extra: serde_json::Value) -> NewEvent {
        let turn = &self.state.turn;
        let mut data = json!({"turn_id": turn.turn_id, "state": {"status": turn.status,
            "stop_reason": turn.stop_reason, "usage": turn.usage, "error": turn.error,
            "pending_steers": turn.steers.len(),
            "started_at": turn.started_at, "finished_at": turn.finished_at}});
        if let (Some(data), serde_json::Value::Object(extra)) = (data.as_object_mut(), extra) {
            data.extend(extra);
        }
        self.event(kind, data)
    }

    fn event(&self, kind: EventType, data: serde_json::Value) -> NewEvent {
        NewEvent {
            kind,
            turn_id: Some(self.state.turn.turn_id),
            epoch: self.state.turn.epoch,
            data,
        }
    }

    /// A call's event with its state as of now.
    fn call_event(&self, kind: EventType, id: CallId) -> NewEvent {
        let state = self.state.call(id).map(|call| {
            json!({"status": call.status, "exit_code": call.exit_code, "started_at": call.started_at,
                "finished_at": call.finished_at})
        });
        self.event(kind, json!({"call_id": id, "state": state}))
    }

    fn push_call_event(&mut self, kind: EventType, id: CallId) {
        let event = self.call_event(kind, id);
        self.writes.events.push(event);
    }

    fn call_mut(&mut self, id: CallId) -> Option<&mut crate::model::record::CallRecord> {
        self.state.calls.iter_mut().find(|call| call.call_id == id)
    }

    /// The new record, and everything the transaction has to write.
    pub fn done(mut self) -> (State, Writes) {
        if self.touched
            && !self
                .writes
                .new_turns
                .iter()
                .any(|turn| turn.turn_id == self.state.turn.turn_id)
        {
            self.writes.turns.push(self.state.turn.clone());
        } else if let Some(new) = self
            .writes
            .new_turns
            .iter_mut()
            .find(|turn| turn.turn_id == self.state.turn.turn_id)
        {
            *new = self.state.turn.clone();
        }
        // Calls that are new in this step are inserted as they are now.
        let changed = std::mem::take(&mut self.writes.calls);
        for call in changed {
            let now = self.state.call(call.call_id).cloned().unwrap_or(call);
            match self.writes.new_calls.iter_mut().find(|new| new.call_id == now.call_id) {
                Some(new) => *new = now,
                None if self.writes.calls.iter().any(|seen| seen.call_id == now.call_id) => {}
                None => self.writes.calls.push(now),
            }
        }
        (self.state, self.writes)
    }

    fn mark(&mut self, id: CallId, status: CallStatus) {
        let now = self.world.now;
        if let Some(call) = self.call_mut(id) {
            call.status = status;
            match status {
                CallStatus::Running => call.started_at = Some(now),
                status if status.is_settled() => call.finished_at = Some(now),
                _ => {}
            }
            let call = call.clone();
            self.writes.calls.push(call);
        }
    }
}
