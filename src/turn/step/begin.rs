//! The beginning of a turn: at once, or from the queue's head.

use serde_json::json;

use super::Step;
use crate::model::event::EventType;
use crate::model::memory::Target;
use crate::model::message::{Part, Role};
use crate::model::record::MessageRecord;
use crate::model::session::Metadata;
use crate::model::turn::TurnStatus;
use crate::tool::memory_entries;

impl Step<'_> {
    /// The turn is new and starts at once.
    pub fn begin_new(&mut self) {
        self.writes.new_turns.push(self.state.turn.clone());
        self.begin();
    }

    /// The turn is new and waits its turn.
    pub fn enqueue(&mut self) {
        self.state.turn.status = TurnStatus::Queued;
        self.writes.new_turns.push(self.state.turn.clone());
        let event = self.turn_event(EventType::TurnQueued, json!({}));
        self.writes.events.push(event);
    }

    /// The queued turn says something else now. Clients learn it by the event
    /// that put it into the queue, given again.
    pub fn edit_queued(&mut self, input: Option<Vec<Part>>, metadata: Option<Metadata>) {
        let turn = &mut self.state.turn;
        if let Some(input) = input {
            turn.input = input;
        }
        if let Some(metadata) = metadata {
            turn.options.metadata = metadata;
        }
        self.writes.edited_turns.push(self.state.turn.clone());
        let event = self.turn_event(EventType::TurnQueued, json!({}));
        self.writes.events.push(event);
    }

    /// The turn starts on this process; its input becomes a message.
    pub fn begin(&mut self) {
        let now = self.world.now;
        if self.world.owner.is_some() && self.state.session.node_id != Some(self.world.node) {
            // The files begin here; where it stood in another data directory
            // lies outside the workspace and counts for nothing.
            self.state.session.node_id = Some(self.world.node);
        }
        self.recall();
        let turn = &mut self.state.turn;
        turn.status = TurnStatus::Running;
        turn.owner = self.world.owner;
        turn.epoch += 1;
        turn.started_at = Some(now);
        turn.active_since = Some(now);
        let input = turn.input.clone();
        let started = self.turn_event(EventType::TurnStarted, json!({}));
        self.writes.events.push(started);
        self.push_input(input, false);
        self.settle();
    }

    /// The prompt shows the memory as it is at the session's first turn, so that
    /// what a model server keeps of its beginning stays of use.
    fn recall(&mut self) {
        if self.state.session.memory_block.is_some() || self.world.tools.get("memory").is_none() {
            return;
        }
        let blocks = Target::ALL.into_iter().filter_map(|target| {
            let limit = self.world.rules.memory.of(target);
            memory_entries::block(target, self.state.memories.of(target), limit)
        });
        let block = blocks.collect::<Vec<_>>().join("\n\n");
        self.state.session.memory_block = Some(block.clone());
        self.writes.memory_block = Some(block);
    }

    /// A user's words in the next place of the transcript.
    pub(super) fn push_input(&mut self, content: Vec<Part>, steered: bool) {
        let message = MessageRecord {
            position: self.state.session.next_position,
            message_id: self.world.id(),
            turn_id: self.state.turn.turn_id,
            role: Role::User,
            content,
            reasoning: None,
            finish_reason: None,
            call_id: None,
            steered,
            created_at: self.world.now,
        };
        self.state.session.next_position += 1;
        self.push_message(message);
    }

    pub(super) fn push_message(&mut self, message: MessageRecord) {
        let data = json!({"message_id": message.message_id});
        let event = self.event(EventType::MessageCompleted, data);
        self.writes.messages.push(message);
        self.writes.events.push(event);
    }
}
