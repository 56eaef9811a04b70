//! What the store keeps of a turn, a call and a message beyond what clients
//! see: ownership, fencing, the model's raw text, places in the transcript.
//! The engine works on these; the API shows the wire shapes made from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::approval::{Approval, Choice, Review};
use super::artifact::NewArtifact;
use super::audit::Audited;
use super::background::BackgroundRecord;
use super::budget::{BudgetGrant, SessionBudget};
use super::call::{CallStatus, Effect, Execution, ToolCall};
use super::client_tool::ClientTool;
use super::event::EventType;
use super::grant::{Grant, GrantUse};
use super::guardrail::Guardrail;
use super::id::{
    ApprovalId, CallId, JobId, KeyId, MessageId, NodeId, ProcessId, QuestionId, SessionId, TenantId, TurnId,
};
use super::job::Job;
use super::lineage::{Lineage, NewChild};
use super::memory::Target;
use super::message::{FinishReason, Message, Part, Role};
use super::pending::PendingWrite;
use super::preview::preview;
use super::problem::Problem;
use super::question::{Question, QuestionAnswer, QuestionStatus};
use super::sampling::Sampling;
use super::session::{ApprovalPolicy, EnvironmentSpec, SessionStatus, ToolsetSelection};
use super::trace::Trace;
use super::turn::{CancelReason, Steer, StopReason, Turn, TurnOptions, TurnStatus, Usage};
use super::usage::{Foreseen, UsageRecord};
use crate::base::Timestamp;
use crate::guard::Finding;

/// The state of a session under its lock, and what a turn needs of its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    pub tenant_id: TenantId,
    pub session_id: SessionId,
    pub user_id: String,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub preset: String,
    pub toolsets: ToolsetSelection,
    pub environment: EnvironmentSpec,
    pub approvals: ApprovalPolicy,
    /// Of turns that say nothing else.
    pub sampling: Box<Sampling>,
    /// Tools that the client carries out.
    pub tools: Vec<ClientTool>,
    pub budget: SessionBudget,
    pub status: SessionStatus,
    pub head_seq: i64,
    pub next_position: i64,
    pub active_turn_id: Option<TurnId>,
    pub usage: Usage,
    /// JSON of the todo list.
    pub todo: String,
    /// JSON of what the model was shown of files; empty before the first.
    pub seen_files: String,
    /// What the prompt shows of the user's memory, as of the first turn; nothing
    /// before it.
    pub memory_block: Option<String>,
    /// What the prompt shows of the workspace's context file, as of the first
    /// answer of the model; nothing before it.
    pub context_block: Option<String>,
    pub cwd: Option<String>,
    /// The data directory that holds the session's files, once it has any.
    pub node_id: Option<NodeId>,
    /// Whose work it does, if not its user's own.
    pub lineage: Option<Box<Lineage>>,
    /// Set when the session was deleted while a turn was active.
    pub deleted_at: Option<Timestamp>,
}

impl SessionRecord {
    /// The session that holds the files and the grants: the root of delegated
    /// work.
    pub fn home(&self) -> SessionId {
        let root = self.lineage.as_ref().and_then(|lineage| lineage.root());
        root.map_or(self.session_id, |root| root.session_id)
    }
}

/// How far the model's side of a turn has come; kept with the turn so that a
/// successor decides as its predecessor would have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Model calls whose answer is stored.
    pub steps: u32,
    pub last: LastAnswer,
    /// Rounds in a row in which every call named an unknown tool.
    pub invalid_rounds: u32,
    /// Answers in a row that were cut at the length limit and continued.
    pub continuations: u32,
    /// Takeovers since a step was last stored.
    pub recoveries: u32,
    /// What the next model call takes at least.
    #[serde(default)]
    pub foreseen: Foreseen,
    /// Budgets that a warning was given for, one bit each.
    #[serde(default)]
    pub warned: u16,
    /// What tells whether the turn goes round in circles.
    #[serde(default, skip_serializing_if = "Guardrail::is_empty")]
    pub guardrail: Guardrail,
    /// Why the turn ends, when it went round too often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted: Option<String>,
    /// What hooks want a person to decide on, by call of the newest answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asks: BTreeMap<CallId, Vec<Finding>>,
    /// The forms of tools that could be replaced, as they were judged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub forms: BTreeMap<CallId, String>,
    /// What hooks did to them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub traces: BTreeMap<CallId, Vec<Trace>>,
    /// Changes of the memory that started in order to wait for a person.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub staged: BTreeSet<CallId>,
    /// Changes of the memory that failed since it was full.
    #[serde(default)]
    pub memory_overflows: u32,
}

/// What the newest stored answer was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastAnswer {
    #[default]
    None,
    /// A finished answer in words.
    Text,
    /// Words cut at the length limit.
    Cut,
    /// Tool calls.
    Calls,
    /// The content filter of the model ended it.
    Filtered,
}

/// A turn as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRecord {
    pub turn_id: TurnId,
    pub session_id: SessionId,
    pub user_id: String,
    /// The stored key that the turn was asked for with, if it was.
    pub key_id: Option<KeyId>,
    pub status: TurnStatus,
    pub stop_reason: Option<StopReason>,
    pub input: Vec<Part>,
    pub options: TurnOptions,
    pub owner: Option<ProcessId>,
    /// Grows with every change of owner.
    pub epoch: i64,
    /// Grows with every commit of the owner.
    pub step: i64,
    /// Why the turn is asked to stop, once it is: from then on nothing starts.
    pub cancel_reason: Option<CancelReason>,
    pub progress: Progress,
    pub usage: Usage,
    pub error: Option<Problem>,
    /// Time spent running before `active_since`.
    pub active_ms: i64,
    pub active_since: Option<Timestamp>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// The turn's first and last event.
    pub first_seq: i64,
    pub last_seq: Option<i64>,
    /// Place in the queue; those of the same place in the order of their ids.
    pub queue_place: i64,
    /// Messages that the model has not read yet, oldest first.
    pub steers: Vec<Steer>,
}

impl TurnRecord {
    /// A turn that waits and has done nothing yet.
    pub fn queued(
        turn_id: TurnId,
        session_id: SessionId,
        user_id: String,
        input: Vec<Part>,
        options: TurnOptions,
        created_at: Timestamp,
    ) -> Self {
        Self {
            turn_id,
            session_id,
            user_id,
            key_id: None,
            status: TurnStatus::Queued,
            stop_reason: None,
            input,
            options,
            owner: None,
            epoch: 0,
            step: 0,
            cancel_reason: None,
            progress: Progress::default(),
            usage: Usage::default(),
            error: None,
            active_ms: 0,
            active_since: None,
            created_at,
            started_at: None,
            finished_at: None,
            first_seq: 0,
            last_seq: None,
            queue_place: 0,
            steers: Vec::new(),
        }
    }

    /// The shape clients see.
    pub fn view(&self) -> Turn {
        Turn {
            id: self.turn_id,
            session_id: self.session_id,
            user_id: self.user_id.clone(),
            status: self.status,
            stop_reason: self.stop_reason,
            input: self.input.clone(),
            options: self.options.clone(),
            usage: self.usage,
            pending_steers: self.steers.len(),
            error: self.error.clone(),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
        }
    }
}

/// A message as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRecord {
    pub position: i64,
    pub message_id: MessageId,
    pub turn_id: TurnId,
    pub role: Role,
    pub content: Vec<Part>,
    pub reasoning: Option<String>,
    pub finish_reason: Option<FinishReason>,
    pub call_id: Option<CallId>,
    /// A user's message that came while its turn ran.
    pub steered: bool,
    /// Its name where it comes from.
    pub external_id: Option<String>,
    pub created_at: Timestamp,
}

impl MessageRecord {
    /// The shape clients see, with the calls that the message made.
    pub fn view(self, tool_calls: Vec<ToolCall>) -> Message {
        Message {
            id: self.message_id,
            turn_id: self.turn_id,
            role: self.role,
            content: self.content,
            reasoning: self.reasoning,
            tool_calls,
            tool_call_id: self.call_id,
            finish_reason: self.finish_reason,
            hidden: false,
            steered: self.steered,
            external_id: self.external_id,
            created_at: self.created_at,
        }
    }
}

/// A tool call as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    pub call_id: CallId,
    pub turn_id: TurnId,
    pub message_id: MessageId,
    pub batch_index: u32,
    /// Place of the result in the transcript.
    pub position: i64,
    pub name: String,
    /// The id the model gave the call; its server expects it back.
    pub provider_id: String,
    /// The arguments as the model wrote them.
    pub arguments_raw: String,
    /// The arguments as parsed and coerced.
    pub arguments: serde_json::Value,
    /// The arguments as a person replaced them.
    pub edited: Option<serde_json::Value>,
    pub effect: Effect,
    pub execution: Execution,
    pub segment: u32,
    /// Whether calls of the same segment run together.
    pub parallel: bool,
    pub status: CallStatus,
    pub exit_code: Option<i64>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// Of a call that a program of another call makes.
    pub nested: Option<Nested>,
}

/// A call beneath another. It is no part of the transcript, so its result stands
/// with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Nested {
    pub parent: CallId,
    pub result: Option<Arc<str>>,
}

impl CallRecord {
    /// The result of a call beneath another, once it has one.
    pub fn nested_result(&self) -> Option<String> {
        self.nested.as_ref()?.result.as_deref().map(str::to_owned)
    }

    /// The call whose program made this one.
    pub fn parent(&self) -> Option<CallId> {
        self.nested.as_ref().map(|nested| nested.parent)
    }

    /// Whoever carries it out has it; it is neither run here nor decided on.
    pub fn is_handed_over(&self) -> bool {
        self.execution != Execution::Server && self.status == CallStatus::Waiting && self.started_at.is_some()
    }

    /// What the tool is called with.
    pub fn effective_arguments(&self) -> &serde_json::Value {
        self.edited.as_ref().unwrap_or(&self.arguments)
    }

    /// The shape clients see.
    pub fn view(&self, result: Option<String>) -> ToolCall {
        ToolCall {
            id: self.call_id,
            batch_id: self.message_id,
            parent_call_id: self.parent(),
            index: self.batch_index,
            name: self.name.clone(),
            arguments: self.effective_arguments().clone(),
            preview: preview(self.effective_arguments()),
            effect: self.effect,
            execution: self.execution,
            status: self.status,
            result,
            exit_code: self.exit_code,
            started_at: self.started_at,
            finished_at: self.finished_at,
        }
    }
}

/// An event before it has its number. `data` holds ids and the small state as
/// of the event; bodies are joined when it is rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    pub kind: EventType,
    pub turn_id: Option<TurnId>,
    pub epoch: i64,
    pub data: serde_json::Value,
}

/// What becomes of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct QuestionUpdate {
    pub question_id: QuestionId,
    pub status: QuestionStatus,
    pub answer: Option<QuestionAnswer>,
}

/// What a review makes of an approval that is pending.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewUpdate {
    pub approval_id: ApprovalId,
    pub reviewer: String,
    pub choices: Vec<Choice>,
    pub review: Review,
}

/// What becomes of a job of the user.
#[derive(Clone, Debug, PartialEq)]
pub enum JobWrite {
    Add(Box<Job>),
    Change(Box<Job>),
    Remove(JobId),
}

/// Everything one transaction writes, as data: decided by pure code under the
/// session's lock, carried out by the store in a few statements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes {
    pub events: Vec<NewEvent>,
    pub new_turns: Vec<TurnRecord>,
    /// Turns whose changeable columns are written back.
    pub turns: Vec<TurnRecord>,
    /// Queued turns whose input and options are replaced.
    pub edited_turns: Vec<TurnRecord>,
    pub messages: Vec<MessageRecord>,
    pub new_calls: Vec<CallRecord>,
    /// Calls whose changeable columns are written back.
    pub calls: Vec<CallRecord>,
    pub new_approvals: Vec<Approval>,
    /// Written before the answers.
    pub reviews: Vec<ReviewUpdate>,
    /// As they are settled.
    pub approvals: Vec<Approval>,
    pub new_questions: Vec<Question>,
    pub questions: Vec<QuestionUpdate>,
    pub new_grants: Vec<Grant>,
    pub used_grants: Vec<GrantUse>,
    pub audited: Vec<Audited>,
    /// Model calls that were made.
    pub usage: Vec<UsageRecord>,
    pub artifacts: Vec<NewArtifact>,
    pub budget_grants: Vec<BudgetGrant>,
    /// What the session has seen of files, when that changed.
    pub seen_files: Option<String>,
    /// Sessions that begin to work for this one.
    pub new_children: Vec<NewChild>,
    pub jobs: Vec<JobWrite>,
    /// Calls whose children have nobody to work for any more.
    pub orphaned: Vec<CallId>,
    /// The block of memory that the session's prompt has from now on.
    pub memory_block: Option<String>,
    /// What the session's prompt says of the project from now on.
    pub context_block: Option<String>,
    /// Lists of the user's memory that are replaced.
    pub memories: Vec<(Target, Vec<String>)>,
    /// Processes that go on in the background.
    pub processes: Vec<BackgroundRecord>,
    /// Changes that wait for a person.
    pub pending: Vec<PendingWrite>,
}

impl Writes {
    /// What comes after, in the same transaction.
    pub fn append(&mut self, more: Writes) {
        self.events.extend(more.events);
        self.pending.extend(more.pending);
        self.new_turns.extend(more.new_turns);
        self.turns.extend(more.turns);
        self.edited_turns.extend(more.edited_turns);
        self.messages.extend(more.messages);
        self.new_calls.extend(more.new_calls);
        self.calls.extend(more.calls);
        self.new_approvals.extend(more.new_approvals);
        self.reviews.extend(more.reviews);
        self.approvals.extend(more.approvals);
        self.new_questions.extend(more.new_questions);
        self.questions.extend(more.questions);
        self.new_grants.extend(more.new_grants);
        self.used_grants.extend(more.used_grants);
        self.audited.extend(more.audited);
        self.usage.extend(more.usage);
        self.artifacts.extend(more.artifacts);
        self.budget_grants.extend(more.budget_grants);
        self.seen_files = more.seen_files.or(self.seen_files.take());
        self.new_children.extend(more.new_children);
        self.orphaned.extend(more.orphaned);
        self.jobs.extend(more.jobs);
        self.memory_block = more.memory_block.or(self.memory_block.take());
        self.context_block = more.context_block.or(self.context_block.take());
        self.memories.extend(more.memories);
        self.processes.extend(more.processes);
    }
}
