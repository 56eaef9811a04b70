//! What a step leaves in the audit trail, as data like all that it writes: names
//! and ids, never what was said, called with or answered.

use super::Step;
use crate::guard::Finding;
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::audit::{Actor, AuditAction, Audited};
use crate::model::call::CallStatus;
use crate::model::id::{CallId, GrantId};

/// Why a call runs, or does not, although somebody would have to be asked.
pub(super) enum Instead {
    Grant(GrantId),
    /// By the setting of that name.
    Exempted(&'static str),
    /// The guard refuses it: `deny`, or `ask` where nobody is there.
    Refused(&'static str),
}

impl Step<'_> {
    /// An entry about a call, done for whom the turn runs.
    fn of_call(&self, action: AuditAction, id: CallId) -> Audited {
        let turn = &self.state.turn;
        Audited {
            actor: Some(Actor {
                user: turn.user_id.clone(),
                key: turn.options.key_id,
            }),
            session_id: Some(self.state.session.session_id),
            turn_id: Some(turn.turn_id),
            tool_call_id: Some(id),
            tool: self.state.call(id).map(|call| call.name.clone()),
            ..Audited::new(action, &self.state.session.user_id)
        }
    }

    pub(super) fn trail_instead(&mut self, id: CallId, instead: &Instead, findings: &[Finding]) {
        let (action, verdict) = match instead {
            Instead::Grant(_) => (AuditAction::GrantUsed, "ask"),
            Instead::Exempted(_) => (AuditAction::CallExempted, "ask"),
            Instead::Refused(verdict) => (AuditAction::CallRefused, *verdict),
        };
        let entry = Audited {
            grant_id: match instead {
                Instead::Grant(grant) => Some(*grant),
                _ => None,
            },
            decision: match instead {
                Instead::Exempted(setting) => Some((*setting).to_owned()),
                _ => None,
            },
            rules: keys(findings),
            verdict: Some(verdict),
            ..self.of_call(action, id)
        };
        self.writes.audited.push(entry);
    }

    /// A call that a person, or the lack of one, refused.
    pub(super) fn trail_refused(&mut self, id: CallId) {
        let entry = self.with_approval(id, self.of_call(AuditAction::CallRefused, id));
        self.writes.audited.push(entry);
    }

    /// A call that ran and has its last status now.
    pub(super) fn trail_executed(&mut self, id: CallId, status: CallStatus) {
        let exit_code = self.state.call(id).and_then(|call| call.exit_code);
        let entry = Audited {
            outcome: Some(status.name()),
            exit_code,
            ..self.with_approval(id, self.of_call(AuditAction::CallExecuted, id))
        };
        self.writes.audited.push(entry);
    }

    /// The newest question about the call, and what was answered.
    fn with_approval(&self, id: CallId, entry: Audited) -> Audited {
        let Some(approval) = self.state.approval_of(id) else {
            return entry;
        };
        Audited {
            approval_id: Some(approval.id),
            rules: keys(&approval.findings),
            verdict: Some("ask"),
            decision: answer(approval),
            ..entry
        }
    }

    /// An approval that was asked, or is settled now: by whoever this
    /// transaction is for.
    pub(super) fn trail_approval(&mut self, approval: &Approval) {
        let action = match approval.status {
            ApprovalStatus::Pending => AuditAction::ApprovalRequested,
            ApprovalStatus::Allowed | ApprovalStatus::Denied => AuditAction::ApprovalDecided,
            ApprovalStatus::Expired => AuditAction::ApprovalExpired,
            ApprovalStatus::Superseded => AuditAction::ApprovalSuperseded,
            ApprovalStatus::Cancelled => AuditAction::ApprovalCancelled,
        };
        let edited = approval.decision.as_ref().is_some_and(|decision| decision.edited);
        let entry = Audited {
            actor: None,
            session_id: Some(approval.session_id),
            turn_id: Some(approval.turn_id),
            tool_call_id: approval.tool_call_id,
            approval_id: Some(approval.id),
            grant_id: approval.decision.as_ref().and_then(|decision| decision.grant_id),
            tool: approval.tool.clone(),
            rules: keys(&approval.findings),
            verdict: (!approval.findings.is_empty()).then_some("ask"),
            decision: answer(approval),
            fields: edited.then(|| "arguments".to_owned()).into_iter().collect(),
            ..Audited::new(action, &self.state.session.user_id)
        };
        let asked_for = (approval.status == ApprovalStatus::Pending).then(|| Actor {
            user: self.state.turn.user_id.clone(),
            key: self.state.turn.options.key_id,
        });
        self.writes.audited.push(Audited {
            actor: asked_for,
            ..entry
        });
    }
}

fn answer(approval: &Approval) -> Option<String> {
    let given = approval.decision.as_ref()?;
    Some(given.choice.name().to_owned())
}

/// Each key once.
fn keys(findings: &[Finding]) -> Vec<String> {
    let mut keys: Vec<String> = findings.iter().map(|finding| finding.key.clone()).collect();
    keys.sort();
    keys.dedup();
    keys
}
