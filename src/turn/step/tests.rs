//! The pure middle without a store: a turn played by hand, on tools that do
//! nothing. After every step the invariants are checked, whatever the case is
//! about.

mod budgets;
mod cases;
mod circles;
mod edits;
mod kept;
mod next;
mod parked;
mod properties;

use std::collections::HashMap;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{AnswerIn, Step};
use crate::base::{Clock, Id, Timestamp};
use crate::guard::{Finding, Severity, Span};
use crate::model::approval::{ApprovalStatus, OnAsk, OnExpiry, Recovery};
use crate::model::budget::{Budgets, SessionBudget};
use crate::model::call::{CallStatus, Effect, Footprint};
use crate::model::event::EventType;
use crate::model::grant::Grant;
use crate::model::id::{ApprovalId, CallId, NodeId, ProcessId};
use crate::model::message::{Part, Role, text_of};
use crate::model::record::{MessageRecord, SessionRecord, TurnRecord, Writes};
use crate::model::session::{ApprovalMode, ApprovalPolicy, EnvironmentSpec, SessionStatus, ToolsetSelection};
use crate::model::turn::{TurnOptions, TurnStatus, Usage};
use crate::model::usage::{Prices, Spent};
use crate::provider::{Answer, Call as ModelCall, Finish};
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Entry;
use crate::tool::session_tools::SessionTools;
use crate::tool::testing::Bench;
use crate::tool::{Call, Done, Host, Judged, Place, Spec, Tool};
use crate::turn::state::State;
use crate::turn::world::{Rules, World};

/// A tool of which only its declarations matter. Arguments say how a call is
/// judged: `ask` names the key of a finding, `away` asks only outside the
/// workspace, `never` is beyond any approval.
struct Fake {
    name: &'static str,
    effect: Effect,
    footprint: Footprint,
}

/// Reads, side by side with anything but `act`.
static LOOK: Fake = Fake {
    name: "look",
    effect: Effect::Read,
    footprint: Footprint::Parallel,
};
/// Changes something, side by side.
static SIDE: Fake = Fake {
    name: "side",
    effect: Effect::Write,
    footprint: Footprint::Parallel,
};
/// Changes something, alone; wants `n`.
static ACT: Fake = Fake {
    name: "act",
    effect: Effect::Write,
    footprint: Footprint::Alone,
};

impl Tool for Fake {
    fn spec(&self) -> Spec {
        Spec {
            name: self.name,
            toolset: "test",
            emoji: "",
            description: "",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        let required: &[&str] = if self.name == "act" { &["n"] } else { &[] };
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": required})
    }

    fn example(&self) -> Value {
        json!({"n": 1})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        self.effect
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        self.footprint.clone()
    }

    fn unavailable(&self, _host: &Host) -> Option<String> {
        None
    }

    fn judge(&self, arguments: &Value, place: &Place<'_>, _host: &Host) -> Judged {
        let finding = |key: &str| Finding {
            rule: key.to_owned(),
            key: key.to_owned(),
            description: key.to_owned(),
            severity: Severity::High,
            span: Span { start: 0, end: 0 },
            argv: Vec::new(),
        };
        if arguments["never"] == true {
            return Judged::Deny {
                message: "never".to_owned(),
            };
        }
        match (
            arguments["ask"].as_str(),
            arguments["away"] == true && place.cwd != place.workspace,
        ) {
            (Some(key), _) => Judged::Ask {
                findings: vec![finding(key)],
            },
            (None, true) => Judged::Ask {
                findings: vec![finding("away")],
            },
            (None, false) => Judged::Allow,
        }
    }

    fn subject(&self, arguments: &Value) -> String {
        arguments.to_string()
    }

    fn run(&self, _call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async { Done::default() })
    }
}

/// A turn that began, and everything that was written for it since.
struct Game {
    bench: Bench,
    clock: Clock,
    tools: SessionTools,
    rules: Rules,
    grants: Vec<Grant>,
    owner: Option<ProcessId>,
    state: State,
    messages: Vec<MessageRecord>,
    events: Vec<EventType>,
    approvals: HashMap<ApprovalId, ApprovalStatus>,
}

impl Game {
    async fn new() -> Self {
        let clock = Clock::stepped(Timestamp(1_800_000_000_000));
        let state = State {
            session: session(&clock),
            turn: turn(&clock),
            calls: Vec::new(),
            approvals: Vec::new(),
            risen: Vec::new(),
            questions: Vec::new(),
            budgets: Vec::new(),
            queue_is_empty: false,
            jobs: Vec::new(),
            waiting_writes: 0,
            memories: crate::model::memory::Memories::default(),
        };
        let mut game = Self {
            bench: Bench::new().await,
            owner: Some(Id::new(&clock)),
            clock,
            tools: SessionTools::new(
                [&LOOK, &SIDE, &ACT].map(|tool| Entry::built_in(tool).unwrap()).to_vec(),
                Vec::new(),
            ),
            rules: rules(),
            grants: Vec::new(),
            state,
            messages: Vec::new(),
            events: Vec::new(),
            approvals: HashMap::new(),
        };
        game.step(|step| step.begin_new());
        game
    }

    /// One transaction.
    fn step(&mut self, change: impl FnOnce(&mut Step<'_>)) -> Writes {
        let world = World {
            now: self.clock.now(),
            ids: &self.clock,
            node: NodeId::from_bits(1),
            owner: self.owner,
            tools: &self.tools,
            host: &self.bench.host,
            workspace: "/data/work".into(),
            grants: &self.grants,
            policies: &[],
            rules: &self.rules,
            unread: None,
        };
        let mut step = Step::new(&world, self.state.clone());
        change(&mut step);
        let (state, writes) = step.done();
        self.state = state;
        self.take(&writes);
        self.check();
        writes
    }

    fn take(&mut self, writes: &Writes) {
        let over = self.events.iter().any(|kind| is_terminal(*kind));
        assert!(
            !over || writes.events.is_empty(),
            "events after the end: {:?}",
            writes.events
        );
        self.messages.extend(writes.messages.iter().cloned());
        self.events.extend(writes.events.iter().map(|event| event.kind));
        self.grants.extend(writes.new_grants.iter().cloned());
        for approval in &writes.new_approvals {
            assert!(self.approvals.insert(approval.id, ApprovalStatus::Pending).is_none());
        }
        for update in &writes.approvals {
            let before = self.approvals.insert(update.id, update.status).unwrap();
            let once = match update.status {
                ApprovalStatus::Superseded => matches!(before, ApprovalStatus::Pending | ApprovalStatus::Allowed),
                _ => before == ApprovalStatus::Pending,
            };
            assert!(once, "settled twice: {before:?}, then {:?}", update.status);
        }
    }

    /// What holds after every transaction.
    fn check(&self) {
        let State {
            session, turn, calls, ..
        } = &self.state;
        let open: Vec<i64> = calls
            .iter()
            .filter(|call| !call.status.is_settled())
            .map(|call| call.position)
            .collect();
        let mut places: Vec<i64> = self
            .messages
            .iter()
            .map(|message| message.position)
            .chain(open)
            .collect();
        places.sort_unstable();
        assert_eq!(
            places,
            (0..session.next_position).collect::<Vec<_>>(),
            "places are dense, one message each"
        );
        for (place, call) in calls.iter().enumerate() {
            let results = self
                .messages
                .iter()
                .filter(|message| message.call_id == Some(call.call_id))
                .count();
            assert_eq!(
                results,
                usize::from(call.status.is_settled()),
                "one result for each settled call"
            );
            let blocked = calls
                .iter()
                .take(place)
                .any(|other| !other.status.is_settled() && (other.segment < call.segment || !call.parallel));
            assert!(
                !(blocked && call.status == CallStatus::Running),
                "runs before its turn: {call:?}"
            );
            let waits = self
                .state
                .pending()
                .any(|approval| approval.tool_call_id == Some(call.call_id));
            let waits = waits || call.is_handed_over();
            assert_eq!(waits, call.status == CallStatus::Waiting, "{call:?}");
        }
        let runs = calls.iter().any(|call| call.status == CallStatus::Running);
        let pends = !self.state.required_actions().is_empty();
        match turn.status {
            TurnStatus::Waiting => assert!(pends && !runs && turn.owner.is_none()),
            // Begun or woken while draining: for another process.
            TurnStatus::Running => assert!(turn.owner.is_some() || !runs),
            status if status.is_terminal() => {
                assert!(!self.state.has_open_calls() && !pends && turn.owner.is_none());
                assert_eq!(self.events.iter().filter(|kind| is_terminal(**kind)).count(), 1);
                assert!(turn.stop_reason.is_some());
            }
            status => panic!("{status:?}"),
        }
        let status = match (turn.status.is_terminal(), pends) {
            (true, _) => SessionStatus::Idle,
            (false, true) => SessionStatus::RequiresAction,
            (false, false) => SessionStatus::Running,
        };
        assert_eq!(session.status, status);
    }

    /// Whether this process begins new work.
    fn draining(&mut self, draining: bool, owner: Option<ProcessId>) {
        self.owner = if draining { None } else { owner };
    }

    /// The model answers with calls.
    fn calls(&mut self, calls: &[(&str, Value)]) -> Writes {
        let calls = calls.iter().enumerate().map(|(number, (name, arguments))| ModelCall {
            id: format!("c{number}"),
            name: (*name).to_owned(),
            arguments: match arguments {
                Value::String(raw) => raw.clone(),
                arguments => arguments.to_string(),
            },
        });
        let answer = Answer {
            calls: calls.collect(),
            finish: Finish::ToolCalls,
            ..said("")
        };
        self.answer(answer, true)
    }

    fn answer(&mut self, answer: Answer, with_tools: bool) -> Writes {
        let message_id = Id::new(&self.clock);
        let spent = Spent::in_turn("m", answer.usage, &Prices::default());
        self.step(|step| {
            step.answer(AnswerIn {
                message_id,
                answer,
                with_tools,
                spent: Some(spent),
                hooked: Vec::new(),
                artifacts: Vec::new(),
                context: None,
            });
        })
    }

    fn result(&mut self, index: usize, done: Done) -> Writes {
        let id = self.id(index);
        self.step(|step| step.results(vec![(id, done)]))
    }

    fn id(&self, index: usize) -> CallId {
        self.state.calls[index].call_id
    }

    fn statuses(&self) -> Vec<CallStatus> {
        self.state.calls.iter().map(|call| call.status).collect()
    }

    /// The text of a call's result.
    fn told(&self, index: usize) -> String {
        let id = self.id(index);
        let result = self.messages.iter().find(|message| message.call_id == Some(id));
        text_of(&result.expect("the call has a result").content)
    }

    fn pending(&self) -> Vec<ApprovalId> {
        self.state.pending().map(|approval| approval.id).collect()
    }

    fn said_last(&self) -> String {
        let last = self.messages.iter().rfind(|message| message.role == Role::Assistant);
        text_of(&last.unwrap().content)
    }
}

fn is_terminal(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::TurnCompleted
            | EventType::TurnFailed
            | EventType::TurnCancelled
            | EventType::TurnInterrupted
            | EventType::TurnRolledBack
    )
}

fn said(text: &str) -> Answer {
    Answer {
        text: text.to_owned(),
        reasoning: String::new(),
        calls: Vec::new(),
        finish: Finish::Stop,
        usage: None,
        response_id: None,
    }
}

fn done(text: &str) -> Done {
    Done {
        result: text.to_owned(),
        ..Done::default()
    }
}

fn rules() -> Rules {
    Rules {
        delegation: crate::turn::delegation::Delegation {
            max_children: 3,
            max_depth: 1,
            orchestrators: true,
            max_steps: 50,
            timeout: None,
            model: None,
            max_summary_chars: 24_000,
            auto_approve: false,
        },
        max_steps: 90,
        mode: ApprovalMode::Manual,
        on_ask: OnAsk::Wait,
        clarify_timeout_ms: 0,
        approval_timeout_ms: 0,
        on_expiry: OnExpiry::Deny,
        recovery: Recovery::Tell,
        allow_permanent: true,
        allowlist: Vec::new(),
        budgets: Budgets::default(),
        guardrail: crate::model::guardrail::Limits::default(),
        memory: crate::model::memory::Limits { memory: 100, user: 100 },
    }
}

fn session(clock: &Clock) -> SessionRecord {
    SessionRecord {
        tenant_id: Id::new(clock),
        session_id: Id::new(clock),
        user_id: "alice".to_owned(),
        model: None,
        instructions: None,
        preset: "test".to_owned(),
        toolsets: ToolsetSelection::default(),
        environment: EnvironmentSpec::default(),
        approvals: ApprovalPolicy::default(),
        sampling: Box::default(),
        tools: Vec::new(),
        budget: SessionBudget::default(),
        status: SessionStatus::Idle,
        head_seq: 0,
        next_position: 0,
        active_turn_id: None,
        usage: Usage::default(),
        todo: "[]".to_owned(),
        seen_files: String::new(),
        memory_block: None,
        context_block: None,
        cwd: None,
        node_id: None,
        lineage: None,
        deleted_at: None,
    }
}

fn turn(clock: &Clock) -> TurnRecord {
    TurnRecord::queued(
        Id::new(clock),
        Id::new(clock),
        "alice".to_owned(),
        vec![Part::text("go")],
        TurnOptions::default(),
        clock.now(),
    )
}
