//! Work that is handed to children, and what comes back of it.

use serde_json::json;

use super::Step;
use crate::model::artifact::Kept;
use crate::model::call::{CallStatus, Execution};
use crate::model::event::EventType;
use crate::model::id::CallId;
use crate::model::lineage::{Ancestor, Lineage, NewChild, Subagent, Task};
use crate::model::turn::{TurnStatus, Usage};
use crate::tool::error_text;
use crate::tool::park::Park;

impl Step<'_> {
    /// Whether the rules let these tasks be delegated from here.
    pub(super) fn delegable(&self, park: Park) -> Result<Park, String> {
        let lineage = self.state.session.lineage.as_deref();
        let refusal = match &park {
            Park::Children(tasks) => self.world.rules.delegation.refusal(lineage, tasks),
            Park::Question(_) | Park::Client => None,
        };
        match refusal {
            Some(why) => Err(error_text::envelope(&why)),
            None => Ok(park),
        }
    }

    /// Each task is a session of its own, which begins in this transaction.
    pub(super) fn delegate(&mut self, call: CallId, tasks: Vec<Task>) {
        let above = self.state.session.lineage.as_ref();
        let mut ancestors = above.map(|lineage| lineage.ancestors.clone()).unwrap_or_default();
        ancestors.push(Ancestor {
            session_id: self.state.session.session_id,
            turn_id: self.state.turn.turn_id,
        });
        for (index, task) in (0..).zip(tasks) {
            let child = NewChild {
                session_id: self.world.id(),
                turn_id: self.world.id(),
                lineage: Lineage {
                    ancestors: ancestors.clone(),
                    tool_call_id: call,
                    index,
                    role: task.role,
                },
                task,
            };
            let told = Subagent {
                tool_call_id: call,
                session_id: child.session_id,
                turn_id: child.turn_id,
                index,
                goal: child.task.goal.clone(),
                role: child.task.role,
                status: TurnStatus::Running,
                usage: Usage::default(),
            };
            self.tell_child(EventType::SubagentStarted, &told);
            self.writes.new_children.push(child);
        }
    }

    fn tell_child(&mut self, kind: EventType, child: &Subagent) {
        let event = self.event(kind, json!({"subagent": child}));
        self.writes.events.push(event);
    }

    /// A child is done. With the last of its call comes the result, and the turn
    /// goes on.
    pub fn child_ended(&mut self, child: &Subagent, result: Option<(String, Vec<Kept>)>) {
        self.tell_child(EventType::SubagentCompleted, child);
        let Some((result, kept)) = result else { return };
        self.settle_call(
            child.tool_call_id,
            CallStatus::Succeeded,
            EventType::ToolCallCompleted,
            result,
        );
        for whole in kept {
            self.keep_artifact(child.tool_call_id, whole);
        }
        self.woken_by = "children";
        self.settle();
    }

    /// The log of a child begins like that of any session.
    pub fn tell_created(&mut self) {
        let event = self.session_event(EventType::SessionCreated);
        self.writes.events.push(event);
    }

    /// The call's children have nobody to work for any more.
    pub(super) fn orphan(&mut self, call: CallId) {
        let out = self.state.call(call);
        if out.is_some_and(|call| call.execution == Execution::Children && call.is_handed_over()) {
            self.writes.orphaned.push(call);
        }
    }
}
