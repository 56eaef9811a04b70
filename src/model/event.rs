//! Events: the append-only log of a session as clients read it, and the live
//! frames that refine it. Durable events have a number; live frames do not.

mod details;
mod frames;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::approval::Approval;
use super::artifact::ArtifactData;
use super::background::{ProcessData, ProcessMatchData, ProcessWatchData};
use super::budget::Budget;
use super::call::ToolCall;
use super::checkpoint::RestoredData;
use super::id::{CallId, MessageId, SessionId, TurnId};
use super::lineage::Subagent;
use super::message::Message;
use super::question::Question;
use super::session::Session;
use super::turn::{SteerView, Turn, Usage};
use crate::base::Timestamp;

pub use details::{MemoryData, OutputRiskData, RetryData, TodoData};
pub use frames::{HeartbeatData, HelloData, ResetData};

/// The types of durable events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum EventType {
    #[serde(rename = "session.created")]
    SessionCreated,
    #[serde(rename = "session.updated")]
    SessionUpdated,
    #[serde(rename = "session.archived")]
    SessionArchived,
    #[serde(rename = "session.status")]
    SessionStatus,
    #[serde(rename = "turn.queued")]
    TurnQueued,
    #[serde(rename = "turn.started")]
    TurnStarted,
    #[serde(rename = "turn.steered")]
    TurnSteered,
    #[serde(rename = "turn.waiting")]
    TurnWaiting,
    #[serde(rename = "turn.resumed")]
    TurnResumed,
    #[serde(rename = "turn.completed")]
    TurnCompleted,
    #[serde(rename = "turn.failed")]
    TurnFailed,
    #[serde(rename = "turn.cancelled")]
    TurnCancelled,
    #[serde(rename = "turn.interrupted")]
    TurnInterrupted,
    #[serde(rename = "turn.rolled_back")]
    TurnRolledBack,
    #[serde(rename = "message.completed")]
    MessageCompleted,
    #[serde(rename = "reasoning.completed")]
    ReasoningCompleted,
    #[serde(rename = "tool_call.proposed")]
    ToolCallProposed,
    #[serde(rename = "tool_call.started")]
    ToolCallStarted,
    #[serde(rename = "tool_call.completed")]
    ToolCallCompleted,
    #[serde(rename = "tool_call.denied")]
    ToolCallDenied,
    #[serde(rename = "tool_call.cancelled")]
    ToolCallCancelled,
    #[serde(rename = "tool_call.unknown")]
    ToolCallUnknown,
    #[serde(rename = "approval.requested")]
    ApprovalRequested,
    #[serde(rename = "approval.resolved")]
    ApprovalResolved,
    #[serde(rename = "approval.expired")]
    ApprovalExpired,
    #[serde(rename = "approval.superseded")]
    ApprovalSuperseded,
    #[serde(rename = "approval.cancelled")]
    ApprovalCancelled,
    #[serde(rename = "question.asked")]
    QuestionAsked,
    #[serde(rename = "question.answered")]
    QuestionAnswered,
    #[serde(rename = "question.expired")]
    QuestionExpired,
    #[serde(rename = "question.cancelled")]
    QuestionCancelled,
    #[serde(rename = "subagent.started")]
    SubagentStarted,
    #[serde(rename = "subagent.completed")]
    SubagentCompleted,
    #[serde(rename = "usage.updated")]
    UsageUpdated,
    #[serde(rename = "budget.warning")]
    BudgetWarning,
    #[serde(rename = "budget.exceeded")]
    BudgetExceeded,
    #[serde(rename = "todo.updated")]
    TodoUpdated,
    #[serde(rename = "memory.updated")]
    MemoryUpdated,
    #[serde(rename = "process.started")]
    ProcessStarted,
    #[serde(rename = "process.exited")]
    ProcessExited,
    #[serde(rename = "process.matched")]
    ProcessMatched,
    #[serde(rename = "process.watch_changed")]
    ProcessWatchChanged,
    #[serde(rename = "artifact.created")]
    ArtifactCreated,
    #[serde(rename = "checkpoint.restored")]
    CheckpointRestored,
    #[serde(rename = "tool.output_risk")]
    ToolOutputRisk,
    #[serde(rename = "model.retrying")]
    ModelRetrying,
}

impl EventType {
    /// The name on the wire and in the store.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionCreated => "session.created",
            Self::SessionUpdated => "session.updated",
            Self::SessionArchived => "session.archived",
            Self::SessionStatus => "session.status",
            Self::TurnQueued => "turn.queued",
            Self::TurnStarted => "turn.started",
            Self::TurnSteered => "turn.steered",
            Self::TurnWaiting => "turn.waiting",
            Self::TurnResumed => "turn.resumed",
            Self::TurnCompleted => "turn.completed",
            Self::TurnFailed => "turn.failed",
            Self::TurnCancelled => "turn.cancelled",
            Self::TurnInterrupted => "turn.interrupted",
            Self::TurnRolledBack => "turn.rolled_back",
            Self::MessageCompleted => "message.completed",
            Self::ReasoningCompleted => "reasoning.completed",
            Self::ToolCallProposed => "tool_call.proposed",
            Self::ToolCallStarted => "tool_call.started",
            Self::ToolCallCompleted => "tool_call.completed",
            Self::ToolCallDenied => "tool_call.denied",
            Self::ToolCallCancelled => "tool_call.cancelled",
            Self::ToolCallUnknown => "tool_call.unknown",
            Self::ApprovalRequested => "approval.requested",
            Self::ApprovalResolved => "approval.resolved",
            Self::ApprovalExpired => "approval.expired",
            Self::ApprovalSuperseded => "approval.superseded",
            Self::ApprovalCancelled => "approval.cancelled",
            Self::QuestionAsked => "question.asked",
            Self::QuestionAnswered => "question.answered",
            Self::QuestionExpired => "question.expired",
            Self::QuestionCancelled => "question.cancelled",
            Self::SubagentStarted => "subagent.started",
            Self::SubagentCompleted => "subagent.completed",
            Self::UsageUpdated => "usage.updated",
            Self::BudgetWarning => "budget.warning",
            Self::BudgetExceeded => "budget.exceeded",
            Self::TodoUpdated => "todo.updated",
            Self::MemoryUpdated => "memory.updated",
            Self::ProcessStarted => "process.started",
            Self::ProcessExited => "process.exited",
            Self::ProcessMatched => "process.matched",
            Self::ProcessWatchChanged => "process.watch_changed",
            Self::ArtifactCreated => "artifact.created",
            Self::CheckpointRestored => "checkpoint.restored",
            Self::ToolOutputRisk => "tool.output_risk",
            Self::ModelRetrying => "model.retrying",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
    }

    /// Its body is the session.
    pub fn shows_session(self) -> bool {
        matches!(self, Self::SessionCreated | Self::SessionUpdated | Self::SessionStatus)
    }

    /// The last event of a turn.
    pub fn ends_turn(self) -> bool {
        matches!(
            self,
            Self::TurnCompleted | Self::TurnFailed | Self::TurnCancelled | Self::TurnInterrupted | Self::TurnRolledBack
        )
    }
}

/// Why a turn went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumeReason {
    /// A person decided, or the time to decide ran out.
    Decided,
    /// A person answered a question, or the time to answer ran out.
    Answered,
    /// Delegated work is done.
    Children,
    /// The client gave the results of calls that it carries out.
    ToolResults,
    /// Its server stopped; another run took over.
    Recovered,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionData {
    pub session: Session,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnData {
    pub turn: Turn,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ResumeReason>,
    /// With `turn.steered`: the message that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steer: Option<SteerView>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MessageData {
    pub message: Message,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MessageStartedData {
    pub message_id: MessageId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TextData {
    pub message_id: MessageId,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallData {
    pub tool_call: ToolCall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Stdout,
    Stderr,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutputData {
    pub tool_call_id: CallId,
    pub stream: OutputStream,
    pub text: String,
    /// Bytes of earlier output that were dropped before this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalData {
    pub approval: Approval,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuestionData {
    pub question: Question,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SubagentData {
    pub subagent: Subagent,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageData {
    /// Of the turn so far.
    pub turn: Usage,
    /// Of the session so far.
    pub session: Usage,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BudgetData {
    pub budget: Budget,
}

/// What happened, by type. The first part are durable events, the second live
/// frames of items in flight, the third frames of the stream itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", content = "data")]
pub enum EventBody {
    #[serde(rename = "session.created")]
    SessionCreated(SessionData),
    #[serde(rename = "session.updated")]
    SessionUpdated(SessionData),
    #[serde(rename = "session.archived")]
    SessionArchived(SessionData),
    #[serde(rename = "session.status")]
    SessionStatus(SessionData),
    #[serde(rename = "turn.queued")]
    TurnQueued(TurnData),
    #[serde(rename = "turn.started")]
    TurnStarted(TurnData),
    /// A message waits to be read by the model of the turn that runs.
    #[serde(rename = "turn.steered")]
    TurnSteered(TurnData),
    #[serde(rename = "turn.waiting")]
    TurnWaiting(TurnData),
    #[serde(rename = "turn.resumed")]
    TurnResumed(TurnData),
    #[serde(rename = "turn.completed")]
    TurnCompleted(TurnData),
    #[serde(rename = "turn.failed")]
    TurnFailed(TurnData),
    #[serde(rename = "turn.cancelled")]
    TurnCancelled(TurnData),
    #[serde(rename = "turn.interrupted")]
    TurnInterrupted(TurnData),
    #[serde(rename = "turn.rolled_back")]
    TurnRolledBack(TurnData),
    #[serde(rename = "message.completed")]
    MessageCompleted(MessageData),
    #[serde(rename = "reasoning.completed")]
    ReasoningCompleted(TextData),
    #[serde(rename = "tool_call.proposed")]
    ToolCallProposed(CallData),
    #[serde(rename = "tool_call.started")]
    ToolCallStarted(CallData),
    #[serde(rename = "tool_call.completed")]
    ToolCallCompleted(CallData),
    #[serde(rename = "tool_call.denied")]
    ToolCallDenied(CallData),
    #[serde(rename = "tool_call.cancelled")]
    ToolCallCancelled(CallData),
    #[serde(rename = "tool_call.unknown")]
    ToolCallUnknown(CallData),
    #[serde(rename = "approval.requested")]
    ApprovalRequested(ApprovalData),
    #[serde(rename = "approval.resolved")]
    ApprovalResolved(ApprovalData),
    #[serde(rename = "approval.expired")]
    ApprovalExpired(ApprovalData),
    #[serde(rename = "approval.superseded")]
    ApprovalSuperseded(ApprovalData),
    #[serde(rename = "approval.cancelled")]
    ApprovalCancelled(ApprovalData),
    #[serde(rename = "question.asked")]
    QuestionAsked(QuestionData),
    #[serde(rename = "question.answered")]
    QuestionAnswered(QuestionData),
    #[serde(rename = "question.expired")]
    QuestionExpired(QuestionData),
    #[serde(rename = "question.cancelled")]
    QuestionCancelled(QuestionData),
    #[serde(rename = "subagent.started")]
    SubagentStarted(SubagentData),
    #[serde(rename = "subagent.completed")]
    SubagentCompleted(SubagentData),
    #[serde(rename = "usage.updated")]
    UsageUpdated(UsageData),
    #[serde(rename = "budget.warning")]
    BudgetWarning(BudgetData),
    #[serde(rename = "budget.exceeded")]
    BudgetExceeded(BudgetData),
    #[serde(rename = "todo.updated")]
    TodoUpdated(TodoData),
    #[serde(rename = "memory.updated")]
    MemoryUpdated(MemoryData),
    #[serde(rename = "process.started")]
    ProcessStarted(ProcessData),
    #[serde(rename = "process.exited")]
    ProcessExited(ProcessData),
    /// A process printed lines that it is watched for.
    #[serde(rename = "process.matched")]
    ProcessMatched(ProcessMatchData),
    #[serde(rename = "process.watch_changed")]
    ProcessWatchChanged(ProcessWatchData),
    #[serde(rename = "artifact.created")]
    ArtifactCreated(ArtifactData),
    /// The workspace was made what it was before a call.
    #[serde(rename = "checkpoint.restored")]
    CheckpointRestored(RestoredData),
    /// A result that strangers wrote looks like an attempt to give orders.
    #[serde(rename = "tool.output_risk")]
    ToolOutputRisk(OutputRiskData),
    #[serde(rename = "model.retrying")]
    ModelRetrying(RetryData),

    #[serde(rename = "message.started")]
    MessageStarted(MessageStartedData),
    #[serde(rename = "message.delta")]
    MessageDelta(TextData),
    #[serde(rename = "reasoning.delta")]
    ReasoningDelta(TextData),
    #[serde(rename = "tool_call.output_delta")]
    ToolCallOutputDelta(OutputData),

    #[serde(rename = "stream.hello")]
    StreamHello(HelloData),
    #[serde(rename = "stream.reset")]
    StreamReset(ResetData),
    #[serde(rename = "heartbeat")]
    Heartbeat(HeartbeatData),
}

impl EventBody {
    /// The name of the type on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionCreated(_) => "session.created",
            Self::SessionUpdated(_) => "session.updated",
            Self::SessionArchived(_) => "session.archived",
            Self::SessionStatus(_) => "session.status",
            Self::TurnQueued(_) => "turn.queued",
            Self::TurnStarted(_) => "turn.started",
            Self::TurnSteered(_) => "turn.steered",
            Self::TurnWaiting(_) => "turn.waiting",
            Self::TurnResumed(_) => "turn.resumed",
            Self::TurnCompleted(_) => "turn.completed",
            Self::TurnFailed(_) => "turn.failed",
            Self::TurnCancelled(_) => "turn.cancelled",
            Self::TurnInterrupted(_) => "turn.interrupted",
            Self::TurnRolledBack(_) => "turn.rolled_back",
            Self::MessageCompleted(_) => "message.completed",
            Self::ReasoningCompleted(_) => "reasoning.completed",
            Self::ToolCallProposed(_) => "tool_call.proposed",
            Self::ToolCallStarted(_) => "tool_call.started",
            Self::ToolCallCompleted(_) => "tool_call.completed",
            Self::ToolCallDenied(_) => "tool_call.denied",
            Self::ToolCallCancelled(_) => "tool_call.cancelled",
            Self::ToolCallUnknown(_) => "tool_call.unknown",
            Self::ApprovalRequested(_) => "approval.requested",
            Self::ApprovalResolved(_) => "approval.resolved",
            Self::ApprovalExpired(_) => "approval.expired",
            Self::ApprovalSuperseded(_) => "approval.superseded",
            Self::ApprovalCancelled(_) => "approval.cancelled",
            Self::QuestionAsked(_) => "question.asked",
            Self::QuestionAnswered(_) => "question.answered",
            Self::QuestionExpired(_) => "question.expired",
            Self::QuestionCancelled(_) => "question.cancelled",
            Self::SubagentStarted(_) => "subagent.started",
            Self::SubagentCompleted(_) => "subagent.completed",
            Self::UsageUpdated(_) => "usage.updated",
            Self::BudgetWarning(_) => "budget.warning",
            Self::BudgetExceeded(_) => "budget.exceeded",
            Self::TodoUpdated(_) => "todo.updated",
            Self::MemoryUpdated(_) => "memory.updated",
            Self::ProcessStarted(_) => "process.started",
            Self::ProcessExited(_) => "process.exited",
            Self::ProcessMatched(_) => "process.matched",
            Self::ProcessWatchChanged(_) => "process.watch_changed",
            Self::ArtifactCreated(_) => "artifact.created",
            Self::CheckpointRestored(_) => "checkpoint.restored",
            Self::ToolOutputRisk(_) => "tool.output_risk",
            Self::ModelRetrying(_) => "model.retrying",
            Self::MessageStarted(_) => "message.started",
            Self::MessageDelta(_) => "message.delta",
            Self::ReasoningDelta(_) => "reasoning.delta",
            Self::ToolCallOutputDelta(_) => "tool_call.output_delta",
            Self::StreamHello(_) => "stream.hello",
            Self::StreamReset(_) => "stream.reset",
            Self::Heartbeat(_) => "heartbeat",
        }
    }
}

/// An event as clients see it, on a stream and in a page alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// `<seq>` of a durable event, `<seq>.<d>` of a live frame.
    pub id: String,
    /// Number of the event in its session; of a live frame: the durable event
    /// it follows.
    pub seq: i64,
    #[serde(flatten)]
    pub body: EventBody,
    pub session_id: SessionId,
    pub turn_id: Option<TurnId>,
    pub at: Timestamp,
}

#[cfg(test)]
mod tests;
