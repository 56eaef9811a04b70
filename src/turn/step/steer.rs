//! Messages for a turn that runs. Each waits on the turn's row until the model
//! is asked next after a batch of calls, and then stands behind the results. What
//! the turn did not come to read becomes turns of its own at the queue's head, in
//! the transaction that ends it.

use serde_json::json;

use super::Step;
use crate::model::event::EventType;
use crate::model::record::{LastAnswer, NewEvent, TurnRecord};
use crate::model::turn::Steer;

impl Step<'_> {
    /// A message for the active turn. It starts nothing: a batch that waits for a
    /// person goes on waiting, and a model that writes is not disturbed.
    pub fn steer(&mut self, steer: Steer) {
        self.touched = true;
        let shown = json!(steer.view());
        self.state.turn.steers.push(steer);
        let event = self.turn_event(EventType::TurnSteered, json!({"steer": shown}));
        self.writes.events.push(event);
    }

    /// The model is about to be asked: after a batch of calls it reads what was
    /// said meanwhile. An answer that is continued is not broken into.
    pub(super) fn deliver_steers(&mut self) {
        if self.state.turn.progress.last != LastAnswer::Calls {
            return;
        }
        for steer in std::mem::take(&mut self.state.turn.steers) {
            self.push_input(steer.input, true);
        }
    }

    /// What was not delivered becomes queued turns in the order it came. They go
    /// before all others; where that is, the transaction finds out.
    pub fn release_steers(&mut self) {
        self.touched = true;
        for steer in std::mem::take(&mut self.state.turn.steers) {
            let session = self.state.session.session_id;
            let turn = TurnRecord {
                key_id: steer.key_id,
                ..TurnRecord::queued(
                    steer.turn_id,
                    session,
                    steer.user_id,
                    steer.input,
                    steer.options,
                    steer.created_at,
                )
            };
            self.writes.events.push(NewEvent {
                kind: EventType::TurnQueued,
                turn_id: Some(turn.turn_id),
                epoch: 0,
                data: json!({"turn_id": turn.turn_id, "state": {"status": turn.status}}),
            });
            self.writes.new_turns.push(turn);
        }
    }
}
