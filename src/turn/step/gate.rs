//! Whether a call may run: judged when it is proposed and again when it starts,
//! by the same function, since the world may have moved in between.

use serde_json::json;

use super::Step;
use crate::base::Timestamp;
use crate::guard::Finding;
use crate::model::approval::{Approval, ApprovalKind, ApprovalStatus, Choice, OnAsk};
use crate::model::call::CallStatus;
use crate::model::event::EventType;
use crate::model::id::{CallId, GrantId};
use crate::model::record::{ApprovalUpdate, CallRecord};
use crate::model::session::ApprovalMode;
use crate::tool::Judged;

/// What the guard, the settings, the grants and the decisions say together.
enum Gate {
    Run {
        grant: Option<GrantId>,
    },
    /// A person has to decide on what is shown here.
    Ask {
        findings: Vec<Finding>,
        digest: String,
    },
    /// It does not run; the text tells the model why.
    Refuse {
        text: String,
    },
}

impl Step<'_> {
    /// Judges a proposed call without starting it.
    pub(super) fn propose(&mut self, id: CallId) {
        match self.gate(id) {
            Gate::Run { .. } => {}
            Gate::Ask { findings, digest } => self.ask(id, findings, digest),
            Gate::Refuse { text } => self.refuse(id, text),
        }
    }

    /// Starts a call whose turn it is, unless the world says otherwise now.
    pub(super) fn start_call(&mut self, id: CallId) {
        match self.gate(id) {
            Gate::Run { grant } => {
                self.writes.used_grants.extend(grant);
                self.mark(id, CallStatus::Running);
                self.push_call_event(EventType::ToolCallStarted, id);
            }
            Gate::Ask { findings, digest } => {
                self.supersede(id);
                self.ask(id, findings, digest);
            }
            Gate::Refuse { text } => self.refuse(id, text),
        }
    }

    fn gate(&self, id: CallId) -> Gate {
        let Some(call) = self.state.call(id) else {
            return Gate::Refuse {
                text: refusal("the call is unknown", None),
            };
        };
        // Offered to this turn or not: what the model calls is checked, not what
        // it was told.
        let Some(tool) = self.world.tools.get(&call.name) else {
            return Gate::Refuse {
                text: refusal(&format!("the tool `{}` is not available to this turn", call.name), None),
            };
        };
        let arguments = call.effective_arguments();
        let backend = self.state.session.environment.backend.as_str();
        let place = self.world.place(self.state.session.cwd.as_deref(), backend);
        match tool.judge(arguments, &place, self.world.host) {
            Judged::Allow => Gate::Run { grant: None },
            Judged::Deny { message } => Gate::Refuse {
                text: refusal(&message, None),
            },
            Judged::Ask { findings } => {
                let digest = self.digest_of(&call.name, arguments, &findings);
                self.asked(call, &tool.subject(arguments), findings, digest)
            }
        }
    }

    fn asked(&self, call: &CallRecord, subject: &str, findings: Vec<Finding>, digest: String) -> Gate {
        let rules = self.world.rules;
        let approved = self
            .state
            .approval_of(call.call_id)
            .filter(|approval| approval.status == ApprovalStatus::Allowed);
        if approved.is_some_and(|approval| approval.decided_digest() == digest) {
            return Gate::Run { grant: None };
        }
        let backend = self.state.session.environment.backend.as_str();
        let grant = self
            .world
            .grants
            .iter()
            .find(|grant| grant.covers(&call.name, backend, subject, &findings));
        if let Some(grant) = grant {
            return Gate::Run { grant: Some(grant.id) };
        }
        if rules.mode == ApprovalMode::Off || is_listed(&rules.allowlist, subject, &findings) {
            return Gate::Run { grant: None };
        }
        match rules.on_ask {
            OnAsk::Wait => Gate::Ask { findings, digest },
            OnAsk::Deny => {
                let reasons: Vec<&str> = findings.iter().map(|finding| finding.key.as_str()).collect();
                let why = format!(
                    "this needs a person's approval ({}) and nobody is there to give it",
                    reasons.join(", ")
                );
                Gate::Refuse {
                    text: refusal(&why, None),
                }
            }
        }
    }

    fn ask(&mut self, id: CallId, findings: Vec<Finding>, digest: String) {
        let Some(call) = self.state.call(id).cloned() else {
            return;
        };
        let rules = self.world.rules;
        let subject = self
            .world
            .tools
            .get(&call.name)
            .map(|tool| tool.subject(call.effective_arguments()));
        let backend = self.state.session.environment.backend.clone();
        let cwd = self
            .world
            .place(self.state.session.cwd.as_deref(), &backend)
            .cwd
            .to_string_lossy()
            .into_owned();
        let choices = [Choice::Once, Choice::Session, Choice::Always, Choice::Deny];
        let offered = choices
            .into_iter()
            .filter(|choice| *choice != Choice::Always || rules.allow_permanent);
        let approval = Approval {
            id: self.world.id(),
            session_id: self.state.session.session_id,
            turn_id: self.state.turn.turn_id,
            tool_call_id: Some(id),
            batch_id: Some(call.message_id),
            index: call.batch_index,
            kind: ApprovalKind::ToolCall,
            status: ApprovalStatus::Pending,
            tool: Some(call.name.clone()),
            title: title(&call.name, subject.as_deref().unwrap_or_default()),
            arguments: call.effective_arguments().clone(),
            cwd: Some(cwd),
            backend,
            findings,
            choices: offered.collect(),
            digest,
            requester: self.state.turn.user_id.clone(),
            reviewer: "human".to_owned(),
            requested_at: self.world.now,
            expires_at: self.expiry(),
            on_expiry: rules.on_expiry,
            decision: None,
        };
        self.mark(id, CallStatus::Waiting);
        self.request(approval);
    }

    /// Until when somebody may answer what is asked now.
    pub(super) fn expiry(&self) -> Option<Timestamp> {
        let timeout = self.world.rules.approval_timeout_ms;
        (timeout != 0).then(|| Timestamp(self.world.now.0.saturating_add(timeout)))
    }

    /// Asks a person.
    pub(super) fn request(&mut self, approval: Approval) {
        let event = self.approval_event(EventType::ApprovalRequested, &approval);
        self.writes.events.push(event);
        self.writes.new_approvals.push(approval.clone());
        self.state.approvals.push(approval);
    }

    /// An answer that was given for a world that is gone.
    fn supersede(&mut self, id: CallId) {
        let allowed =
            |approval: &&mut Approval| approval.tool_call_id == Some(id) && approval.status == ApprovalStatus::Allowed;
        let Some(approval) = self.state.approvals.iter_mut().find(allowed) else {
            return;
        };
        approval.status = ApprovalStatus::Superseded;
        let approval = approval.clone();
        self.settle_approval(&approval, EventType::ApprovalSuperseded);
    }

    /// Writes an approval's new status and tells it.
    pub(super) fn settle_approval(&mut self, approval: &Approval, kind: EventType) {
        let event = self.approval_event(kind, approval);
        self.writes.events.push(event);
        self.writes.approvals.push(ApprovalUpdate {
            approval_id: approval.id,
            status: approval.status,
            decision: approval.decision.clone(),
        });
    }

    fn approval_event(&self, kind: EventType, approval: &Approval) -> crate::model::record::NewEvent {
        let state = json!({"status": approval.status, "decision": approval.decision});
        self.event(kind, json!({"approval_id": approval.id, "state": state}))
    }

    pub(super) fn refuse(&mut self, id: CallId, text: String) {
        self.settle_call(id, CallStatus::Denied, EventType::ToolCallDenied, text);
    }
}

/// The result of a call that does not run. It says that no consent was given,
/// so that the model does not look for another way to the same effect.
pub(super) fn refusal(why: &str, reason: Option<&str>) -> String {
    let mut text = json!({
        "error": format!("The call was not run: {why}. Do not retry it, rephrase it or reach the same effect in \
            another way; go on without it or ask what to do."),
        "status": "denied",
        "user_consent": false,
    });
    if let (Some(fields), Some(reason)) = (text.as_object_mut(), reason) {
        fields.insert("reason".to_owned(), reason.into());
    }
    text.to_string()
}

/// Whether `command_allowlist` settles what would be asked: by the text itself,
/// or by the keys of all findings.
pub fn is_listed(allowlist: &[String], subject: &str, findings: &[Finding]) -> bool {
    let covered = |finding: &Finding| allowlist.contains(&finding.key);
    allowlist.iter().any(|entry| entry == subject.trim()) || (!findings.is_empty() && findings.iter().all(covered))
}

/// One line of at most 200 characters: long enough to tell pending approvals
/// apart in a list, while the arguments hold the whole.
fn title(tool: &str, subject: &str) -> String {
    let line = subject
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim();
    let cut = crate::base::text::first_chars(line, 200);
    let more = if cut.len() < subject.trim().len() { " …" } else { "" };
    format!("{tool}: {cut}{more}")
}
