//! A person's answer, or the lack of one, and what follows from it.

use super::Step;
use super::edit::Edit;
use super::gate::refusal;
use crate::guard::Finding;
use crate::model::approval::{Approval, ApprovalKind, ApprovalStatus, Choice, Decision, OnExpiry};
use crate::model::call::CallStatus;
use crate::model::event::EventType;
use crate::model::grant::{Grant, GrantScope};
use crate::model::id::ApprovalId;
use crate::model::turn::StopReason;
use crate::turn::next::Outcome;

/// An answer, already checked against the choices offered.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionIn {
    pub choice: Choice,
    pub reason: Option<String>,
    pub by: String,
    /// End the turn as well (with `deny`).
    pub stop_turn: bool,
    /// The call gets these arguments (with `once`).
    pub edit: Option<Edit>,
}

impl Step<'_> {
    /// Settles a pending approval with an answer.
    pub fn decide(&mut self, id: ApprovalId, decision: DecisionIn) {
        self.decide_all(vec![(id, decision)]);
    }

    /// Settles pending approvals with answers, all of them before anything
    /// follows from one.
    pub fn decide_all(&mut self, decisions: Vec<(ApprovalId, DecisionIn)>) {
        let (mut any, mut stop_turn) = (false, false);
        for (id, decision) in decisions {
            let stops = decision.stop_turn && !decision.choice.allows();
            if self.take_decision(id, decision) {
                (any, stop_turn) = (true, stop_turn || stops);
            }
        }
        if stop_turn {
            self.end(Outcome::cancelled(StopReason::Denied), Vec::new(), None);
        } else if any {
            self.settle();
        }
    }

    /// `false` when the approval is not pending.
    fn take_decision(&mut self, id: ApprovalId, decision: DecisionIn) -> bool {
        let Some(approval) = self.state.pending().find(|approval| approval.id == id).cloned() else {
            return false;
        };
        let grant = self.grant(&approval, &decision);
        let allowed = decision.choice.allows();
        let answer = Decision {
            choice: decision.choice,
            reason: decision.reason.clone(),
            by: decision.by,
            at: self.world.now,
            grant_id: grant.as_ref().map(|grant| grant.id),
            edited: decision.edit.is_some(),
            digest: decision.edit.as_ref().map(|edit| edit.digest.clone()),
        };
        self.writes.new_grants.extend(grant);
        let status = if allowed {
            ApprovalStatus::Allowed
        } else {
            ApprovalStatus::Denied
        };
        let settled = Approval {
            status,
            decision: Some(answer),
            ..approval
        };
        self.replace(&settled, EventType::ApprovalResolved);
        if settled.kind == ApprovalKind::Budget && allowed {
            self.grant_budget(&settled);
        }
        let Some(call) = settled.tool_call_id else { return true };
        if allowed {
            if let Some(edit) = decision.edit {
                self.apply_edit(call, edit);
            }
            self.mark(call, CallStatus::Proposed);
        } else {
            self.refuse(call, refusal("a person denied it", decision.reason.as_deref()));
        }
        true
    }

    /// Settles a pending approval that nobody answered in time.
    pub fn expire(&mut self, id: ApprovalId) {
        let Some(approval) = self.state.pending().find(|approval| approval.id == id).cloned() else {
            return;
        };
        let halt = approval.on_expiry == OnExpiry::Halt;
        let settled = Approval {
            status: ApprovalStatus::Expired,
            ..approval
        };
        self.replace(&settled, EventType::ApprovalExpired);
        if let Some(call) = settled.tool_call_id {
            self.refuse(
                call,
                refusal("nobody approved it in time, and silence is not consent", None),
            );
        }
        if halt {
            self.end(Outcome::cancelled(StopReason::ApprovalExpired), Vec::new(), None);
        } else {
            self.settle();
        }
    }

    /// Closes what waits for a person, and its calls, because a new message came
    /// instead. The message is kept as the reason; it allows nothing.
    pub fn supersede_pending(&mut self, by: &str, message: &str) {
        let pending: Vec<Approval> = self.state.pending().cloned().collect();
        for approval in pending {
            let decision = Decision {
                choice: Choice::Deny,
                reason: Some(message.to_owned()),
                by: by.to_owned(),
                at: self.world.now,
                grant_id: None,
                edited: false,
                digest: None,
            };
            let settled = Approval {
                status: ApprovalStatus::Superseded,
                decision: Some(decision),
                ..approval
            };
            self.replace(&settled, EventType::ApprovalSuperseded);
            if let Some(call) = settled.tool_call_id {
                let text = "[Not run: a new message came instead of a decision, and a message is no consent.]";
                self.settle_call(
                    call,
                    CallStatus::Cancelled,
                    EventType::ToolCallCancelled,
                    text.to_owned(),
                );
            }
        }
    }

    pub(super) fn replace(&mut self, settled: &Approval, kind: EventType) {
        if let Some(own) = self.state.approvals.iter_mut().find(|own| own.id == settled.id) {
            *own = settled.clone();
        }
        self.settle_approval(settled, kind);
    }

    fn grant(&self, approval: &Approval, decision: &DecisionIn) -> Option<Grant> {
        let scope = match decision.choice {
            Choice::Session => GrantScope::Session,
            Choice::Always => GrantScope::Always,
            Choice::Once | Choice::Deny | Choice::GrantMore | Choice::Stop => return None,
        };
        let tool = approval.tool.clone()?;
        let mut keys: Vec<String> = approval.findings.iter().map(|finding| finding.key.clone()).collect();
        keys.sort();
        keys.dedup();
        // Without a rule's key the grant is for this very text.
        // So it is for text that nobody could read: the key of that covers anything.
        let unread = approval.findings.iter().any(Finding::is_of_unread_text);
        let keyless = unread || keys.is_empty() || keys.iter().any(String::is_empty);
        let subject = self
            .world
            .tools
            .get(&tool)
            .map(|tool| tool.subject(&approval.arguments));
        Some(Grant {
            id: self.world.id(),
            scope,
            session_id: (scope == GrantScope::Session).then_some(approval.session_id),
            tool,
            backend: approval.backend.clone(),
            keys: if keyless { Vec::new() } else { keys },
            exact: if keyless { subject } else { None },
            approval_id: Some(approval.id),
            created_by: decision.by.clone(),
            created_at: self.world.now,
            revoked_at: None,
            uses: 0,
            last_used_at: None,
        })
    }
}
