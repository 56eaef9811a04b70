//! Calls that were running when their server stopped, where the policy wants a
//! person to say what became of them. The call waits like one that was never
//! run, but whatever ends the wait, nobody is told that it did not run.

use super::Step;
use super::gate::title;
use crate::guard::Finding;
use crate::model::approval::{Approval, ApprovalKind, ApprovalStatus, Choice, OnAsk, Recovery};
use crate::model::call::{CallStatus, Effect};
use crate::model::event::EventType;
use crate::model::id::CallId;
use crate::model::record::CallRecord;
use crate::tool::Judged;

impl Step<'_> {
    pub(super) fn asks_what_became(&self) -> bool {
        let rules = self.world.rules;
        rules.recovery == Recovery::Ask && rules.on_ask == OnAsk::Wait
    }

    /// Parks the call behind the question what became of it.
    pub(super) fn ask_what_became(&mut self, id: CallId) {
        let Some(call) = self.state.call(id).cloned() else {
            return;
        };
        let (findings, may_run) = self.judged_again(&call);
        let mut choices = vec![Choice::Retry, Choice::Skip, Choice::MarkDone];
        choices.retain(|choice| may_run || *choice != Choice::Retry);
        let arguments = call.effective_arguments();
        let digest = self.digest_of(&call.name, arguments, &findings);
        let subject = self.world.tools.get(&call.name).map(|tool| tool.subject(arguments));
        let shown = title(&call.name, subject.as_deref().unwrap_or_default());
        let approval = Approval {
            kind: ApprovalKind::Recovery,
            title: format!("interrupted, outcome unknown: {shown}"),
            choices,
            ..self.approval(&call, findings, digest)
        };
        self.put(&call, approval);
    }

    /// What the guard finds in the call now, and whether it may run at all.
    fn judged_again(&self, call: &CallRecord) -> (Vec<Finding>, bool) {
        let Some(tool) = self.world.tools.get(&call.name) else {
            return (Vec::new(), false);
        };
        let session = &self.state.session;
        let place = self.world.place(session.cwd.as_deref(), &session.environment.backend);
        match self.judged(call, tool, call.effective_arguments(), &place) {
            Judged::Allow => (Vec::new(), true),
            Judged::Ask { findings } => (findings, true),
            Judged::Deny { .. } => (Vec::new(), false),
        }
    }

    /// Carries out what a person answered. To run it again is consent to what
    /// was shown and to nothing else: the gate compares.
    pub(super) fn recover(&mut self, id: CallId, choice: Choice, reason: Option<&str>) {
        // A person moved the turn on: takeovers are counted anew.
        self.state.turn.progress.recoveries = 0;
        let said = reason.map_or_else(String::new, |reason| format!(" The person said: {reason}"));
        match choice {
            Choice::Retry => self.mark(id, CallStatus::Proposed),
            Choice::MarkDone => {
                let text = format!(
                    "[The server stopped while this call ran, so there is no output. A person confirmed that it took \
                     effect; do not do it again.{said}]"
                );
                self.settle_call(id, CallStatus::Succeeded, EventType::ToolCallCompleted, text);
            }
            _ => {
                let text = format!(
                    "[Interrupted: the server stopped while this call ran. A person decided to go on without running it \
                     again. Its effect is unknown: it may have happened in part or in full.{said}]"
                );
                self.settle_call(id, CallStatus::Unknown, EventType::ToolCallUnknown, text);
            }
        }
    }

    /// The question is over without an answer.
    pub(super) fn leave_unknown(&mut self, approval: &Approval, why: &str) {
        if let Some(id) = approval.tool_call_id {
            let text = format!(
                "[Interrupted: the server stopped while this call ran, and {why}. Its effect is unknown: it may have \
                 happened in part or in full. Check before doing it again.]"
            );
            self.settle_call(id, CallStatus::Unknown, EventType::ToolCallUnknown, text);
        }
    }

    /// Whether the call may have had its effect although it is not running.
    pub(super) fn may_have_run(&self, id: CallId) -> bool {
        let asked = self.state.approvals.iter().any(|approval| {
            let settled = [ApprovalStatus::Denied, ApprovalStatus::Expired].contains(&approval.status);
            approval.tool_call_id == Some(id) && approval.kind == ApprovalKind::Recovery && !settled
        });
        asked && self.state.call(id).is_some_and(|call| call.effect == Effect::Write)
    }
}
