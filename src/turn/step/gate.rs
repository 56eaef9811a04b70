//! Whether a call may run: judged when it is proposed and again when it starts,
//! by the same function, since the world may have moved in between.

use serde_json::{Value, json};

use super::Step;
use super::trail::Instead;
use crate::base::Timestamp;
use crate::guard::{Finding, flow};
use crate::model::approval::{Approval, ApprovalKind, ApprovalStatus, Choice, HUMAN, OnAsk, SMART};
use crate::model::call::CallStatus;
use crate::model::event::EventType;
use crate::model::grant::{Asked, Grant, GrantUse};
use crate::model::id::{CallId, GrantId};
use crate::model::lineage::Ancestor;
use crate::model::record::CallRecord;
use crate::model::session::ApprovalMode;
use crate::tool::memory_entries;
use crate::tool::registry::Entry;
use crate::tool::skill::scan;
use crate::tool::{Judged, Place};

/// What the guard, the settings, the grants and the decisions say together.
enum Gate {
    Run,
    /// It runs, and the change of the memory that it asks for waits for a person.
    RunStaged,
    /// It runs by what stands for a person's answer.
    RunInstead {
        instead: Instead,
        findings: Vec<Finding>,
    },
    /// A person has to decide on what is shown here.
    Ask {
        findings: Vec<Finding>,
        digest: String,
        /// Who is asked first.
        reviewer: &'static str,
    },
    /// It does not run; the text tells the model why.
    Refuse {
        text: String,
        verdict: &'static str,
        findings: Vec<Finding>,
    },
}

impl Gate {
    /// No answer could allow it.
    fn denied(text: String) -> Self {
        Self::Refuse {
            text,
            verdict: "deny",
            findings: Vec::new(),
        }
    }
}

impl Step<'_> {
    /// Judges a proposed call without starting it.
    pub(super) fn propose(&mut self, id: CallId) {
        match self.gate(id) {
            Gate::Run | Gate::RunStaged | Gate::RunInstead { .. } => {}
            Gate::Ask {
                findings,
                digest,
                reviewer,
            } => self.ask(id, findings, digest, reviewer),
            Gate::Refuse {
                text,
                verdict,
                findings,
            } => self.refuse_instead(id, text, &Instead::Refused(verdict), &findings),
        }
    }

    /// Starts a call whose turn it is, unless the world says otherwise now.
    pub(super) fn start_call(&mut self, id: CallId) {
        match self.gate(id) {
            Gate::Run => self.run(id),
            Gate::RunStaged => {
                self.state.turn.progress.staged.insert(id);
                self.run(id);
            }
            Gate::RunInstead { instead, findings } => {
                if let Instead::Grant(grant) = instead {
                    self.use_grant(grant, id);
                }
                self.trail_instead(id, &instead, &findings);
                self.run(id);
            }
            Gate::Ask {
                findings,
                digest,
                reviewer,
            } => {
                self.supersede(id);
                self.ask(id, findings, digest, reviewer);
            }
            Gate::Refuse {
                text,
                verdict,
                findings,
            } => self.refuse_instead(id, text, &Instead::Refused(verdict), &findings),
        }
    }

    fn run(&mut self, id: CallId) {
        let call = self.state.call(id);
        match call.and_then(|call| self.waits_for(call)) {
            None => {}
            Some(Ok(park)) => return self.hand_over(id, park),
            Some(Err(text)) => {
                return self.settle_call(id, CallStatus::Failed, EventType::ToolCallCompleted, text);
            }
        }
        let tool = self.state.call(id).and_then(|call| self.world.tools.get(&call.name));
        if let Some(form) = tool.and_then(|tool| tool.form()) {
            self.state.turn.progress.forms.insert(id, form);
        }
        self.mark(id, CallStatus::Running);
        self.push_call_event(EventType::ToolCallStarted, id);
    }

    fn gate(&self, id: CallId) -> Gate {
        let Some(call) = self.state.call(id) else {
            return Gate::denied(refusal("the call is unknown", None));
        };
        // What the client does is its own business.
        if self.world.tools.client(&call.name).is_some() {
            return Gate::Run;
        }
        // Offered to this turn or not: what the model calls is checked, not what
        // it was told.
        let Some(tool) = self.world.tools.get(&call.name) else {
            let why = format!("the tool `{}` is not available to this turn", call.name);
            return Gate::denied(refusal(&why, None));
        };
        let arguments = call.effective_arguments();
        let backend = self.state.session.environment.backend.as_str();
        let place = self.world.place(self.state.session.cwd.as_deref(), backend);
        match self.judged(call, tool, arguments, &place) {
            Judged::Allow => Gate::Run,
            Judged::Deny { message } => Gate::denied(refusal(&message, None)),
            Judged::Ask { findings } => {
                let digest = self.digest_of(&call.name, arguments, &findings);
                let asked = Asked {
                    tool: &call.name,
                    backend,
                    subject: &tool.subject(arguments),
                    arguments,
                    findings: &findings,
                    workspace: &self.world.workspace,
                    paths: &|| tool.paths(arguments, &place, self.world.host),
                    now: self.world.now,
                };
                self.asked(call, &asked, digest)
            }
        }
    }

    /// What the guard says, and what hooks want a person to decide.
    pub(super) fn judged(&self, call: &CallRecord, tool: &Entry, arguments: &Value, place: &Place<'_>) -> Judged {
        let asks = self.state.turn.progress.asks.get(&call.call_id);
        match (tool.judge(arguments, place, self.world.host), asks) {
            (Judged::Allow, Some(asks)) => Judged::Ask { findings: asks.clone() },
            (Judged::Ask { mut findings }, Some(asks)) => {
                findings.extend(asks.iter().cloned());
                Judged::Ask { findings }
            }
            (judged, _) => judged,
        }
    }

    fn asked(&self, call: &CallRecord, asked: &Asked<'_>, digest: String) -> Gate {
        let rules = self.world.rules;
        let approved = self
            .state
            .approval_of(call.call_id)
            .filter(|approval| approval.status == ApprovalStatus::Allowed);
        if approved.is_some_and(|approval| approval.decided_digest() == digest) {
            return Gate::Run;
        }
        let instead = |instead| Gate::RunInstead {
            instead,
            findings: asked.findings.to_vec(),
        };
        let mut grants = self.world.grants.iter();
        let grant = grants.find(|grant| self.has_uses_left(grant) && grant.covers(asked));
        // Modes are about what a call does now. What it keeps for later sessions a
        // person sees where that is wanted: no mode lifts it, and no model answers.
        let keeps = asked.findings.iter().any(keeps);
        let asks_nobody = rules.mode == ApprovalMode::Off;
        let case = flow::Case {
            text: asked.subject,
            findings: asked.findings,
            mode: match keeps {
                true => flow::Mode::Manual,
                false => flow_mode(rules.mode),
            },
            unattended: rules.on_ask == OnAsk::Deny || (keeps && asks_nobody),
            allowlist: &rules.allowlist,
            granted: grant.is_some(),
            review: None,
            allow_permanent: rules.allow_permanent,
        };
        let ask = |reviewer| Gate::Ask {
            findings: asked.findings.to_vec(),
            digest,
            reviewer,
        };
        match (flow::decide(&case), grant) {
            (flow::Step::Exempt(setting), _) => instead(Instead::Exempted(setting)),
            (flow::Step::Granted, Some(grant)) => instead(Instead::Grant(grant.id)),
            // What is only remembered waits for somebody, and is no command.
            (flow::Step::Unattended, _) if may_wait(asked.findings, asks_nobody) => Gate::RunStaged,
            (flow::Step::Unattended, _) => unattended(asked.findings),
            (flow::Step::Review, _) => ask(SMART),
            _ => ask(HUMAN),
        }
    }

    /// Calls that this very step starts count as well.
    fn has_uses_left(&self, grant: &Grant) -> bool {
        let taken = self
            .writes
            .used_grants
            .iter()
            .filter(|taken| taken.grant_id == grant.id);
        grant.has_uses_left(taken.count())
    }

    fn use_grant(&mut self, grant_id: GrantId, id: CallId) {
        let tool = self.state.call(id).map(|call| call.name.clone());
        self.writes.used_grants.push(GrantUse {
            grant_id,
            tool_call_id: id,
            session_id: self.state.session.session_id,
            turn_id: self.state.turn.turn_id,
            tool: tool.unwrap_or_default(),
            used_at: self.world.now,
        });
    }

    fn ask(&mut self, id: CallId, findings: Vec<Finding>, digest: String, reviewer: &str) {
        let Some(call) = self.state.call(id).cloned() else {
            return;
        };
        let approval = Approval {
            reviewer: reviewer.to_owned(),
            ..self.approval(&call, findings, digest)
        };
        self.put(&call, approval);
    }

    /// What a person is asked about the call as it stands.
    pub(super) fn approval(&self, call: &CallRecord, findings: Vec<Finding>, digest: String) -> Approval {
        let rules = self.world.rules;
        let arguments = call.effective_arguments();
        let subject = self.world.tools.get(&call.name).map(|tool| tool.subject(arguments));
        let backend = self.state.session.environment.backend.clone();
        let place = self.world.place(self.state.session.cwd.as_deref(), &backend);
        let cwd = place.cwd.to_string_lossy().into_owned();
        let offer = flow::offer(&findings, rules.allow_permanent);
        let choices = [Choice::Once, Choice::Session, Choice::Always, Choice::Deny];
        let offered = choices
            .into_iter()
            .filter(|choice| *choice != Choice::Always || offer.always);
        let (at, origin) = self.asking();
        Approval {
            id: self.world.id(),
            session_id: at.session_id,
            turn_id: at.turn_id,
            origin,
            tool_call_id: Some(call.call_id),
            batch_id: Some(call.message_id),
            index: call.batch_index,
            kind: ApprovalKind::ToolCall,
            status: ApprovalStatus::Pending,
            tool: Some(call.name.clone()),
            title: title(&call.name, subject.as_deref().unwrap_or_default()),
            arguments: arguments.clone(),
            cwd: Some(cwd),
            backend,
            findings,
            choices: offered.collect(),
            digest,
            requester: self.state.turn.user_id.clone(),
            reviewer: HUMAN.to_owned(),
            requested_at: self.world.now,
            expires_at: self.expiry(),
            on_expiry: rules.on_expiry,
            decision: None,
            review: None,
        }
    }

    /// Where a person is asked: at the root of all work. With who asks, if that is
    /// not the root itself.
    pub(super) fn asking(&self) -> (Ancestor, Option<Ancestor>) {
        let own = Ancestor {
            session_id: self.state.session.session_id,
            turn_id: self.state.turn.turn_id,
        };
        let lineage = self.state.session.lineage.as_ref();
        match lineage.and_then(|lineage| lineage.root()) {
            Some(root) => (root, Some(own)),
            None => (own, None),
        }
    }

    /// Until when somebody may answer what is asked now.
    pub(super) fn expiry(&self) -> Option<Timestamp> {
        self.until(self.world.rules.approval_timeout_ms)
    }

    /// The instant after so many milliseconds; 0 is never.
    pub(super) fn until(&self, timeout_ms: i64) -> Option<Timestamp> {
        (timeout_ms != 0).then(|| Timestamp(self.world.now.0.saturating_add(timeout_ms)))
    }

    /// Asks a person about a call, and lets it wait.
    pub(super) fn put(&mut self, call: &CallRecord, approval: Approval) {
        self.mark(call.call_id, CallStatus::Waiting);
        self.request(approval);
    }

    /// Asks a person.
    pub(super) fn request(&mut self, approval: Approval) {
        let event = self.approval_event(EventType::ApprovalRequested, &approval);
        self.writes.events.push(event);
        self.trail_approval(&approval);
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
        self.trail_approval(approval);
        self.writes.approvals.push(approval.clone());
    }

    pub(super) fn approval_event(&self, kind: EventType, approval: &Approval) -> crate::model::record::NewEvent {
        let mut state = json!({"status": approval.status, "decision": approval.decision});
        // A review changes them later.
        if let (true, Some(fields)) = (approval.kind == ApprovalKind::ToolCall, state.as_object_mut()) {
            fields.insert("reviewer".to_owned(), json!(approval.reviewer));
            fields.insert("choices".to_owned(), json!(approval.choices));
            fields.insert("review".to_owned(), json!(approval.review));
        }
        self.event(kind, json!({"approval_id": approval.id, "state": state}))
    }

    pub(super) fn refuse(&mut self, id: CallId, text: String) {
        let text = self.with_first_run(id, text);
        self.trail_refused(id);
        self.settle_call(id, CallStatus::Denied, EventType::ToolCallDenied, text);
    }

    /// Without anybody having been asked.
    fn refuse_instead(&mut self, id: CallId, text: String, instead: &Instead, findings: &[Finding]) {
        self.trail_instead(id, instead, findings);
        let text = self.with_first_run(id, text);
        self.settle_call(id, CallStatus::Denied, EventType::ToolCallDenied, text);
    }

    /// A refusal of a call that ran before says so.
    fn with_first_run(&self, id: CallId, text: String) -> String {
        match self.may_have_run(id) {
            true => format!("{text}\n[The server stopped while this call ran before: that run may have taken effect.]"),
            false => text,
        }
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

/// Whether it is about what later sessions begin with.
fn keeps(finding: &Finding) -> bool {
    [memory_entries::WRITE_RULE, scan::DANGEROUS].contains(&finding.rule.as_str())
}

/// Whether a change of the memory waits for a person: nothing else about it wants
/// one, or the mode asks nobody about that.
fn may_wait(findings: &[Finding], asks_nobody: bool) -> bool {
    let mut of_memory = findings
        .iter()
        .map(|finding| finding.rule == memory_entries::WRITE_RULE);
    match asks_nobody {
        true => of_memory.any(|own| own),
        false => of_memory.all(|own| own),
    }
}

/// Nobody is there to ask.
fn unattended(findings: &[Finding]) -> Gate {
    let reasons: Vec<&str> = findings.iter().map(|finding| finding.key.as_str()).collect();
    let why = format!(
        "this needs a person's approval ({}) and nobody is there to give it",
        reasons.join(", ")
    );
    Gate::Refuse {
        text: refusal(&why, None),
        verdict: "ask",
        findings: findings.to_vec(),
    }
}

fn flow_mode(mode: ApprovalMode) -> flow::Mode {
    match mode {
        ApprovalMode::Manual => flow::Mode::Manual,
        ApprovalMode::Smart => flow::Mode::Smart,
        ApprovalMode::Off => flow::Mode::Off,
    }
}

/// One line of at most 200 characters: long enough to tell pending approvals
/// apart in a list, while the arguments hold the whole.
pub(super) fn title(tool: &str, subject: &str) -> String {
    let line = subject
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim();
    let cut = crate::base::text::first_chars(line, 200);
    let more = if cut.len() < subject.trim().len() { " …" } else { "" };
    format!("{tool}: {cut}{more}")
}
