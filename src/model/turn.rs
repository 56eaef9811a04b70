//! A turn: one input from a client and everything that follows until the
//! outcome.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::approval::OnAsk;
use super::budget::BudgetUnit;
use super::client_tool::ClientTool;
use super::id::{KeyId, SessionId, TurnId};
use super::message::Part;
use super::problem::Problem;
use super::sampling::Sampling;
use super::session::{Metadata, ToolsetSelection};
use crate::base::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Queued,
    Running,
    /// Parked: rows only, until a decision, an answer, a result or an expiry wakes
    /// it.
    Waiting,
    Completed,
    Failed,
    Cancelled,
    Interrupted,
    RolledBack,
}

impl TurnStatus {
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::RolledBack => "rolled_back",
        }
    }
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    MaxSteps,
    Timeout,
    Budget,
    Refusal,
    /// A person's denial asked for the turn to stop.
    Denied,
    ApprovalExpired,
    CancelledByUser,
    ClientDisconnected,
    Superseded,
    RecoveryExhausted,
    EnvironmentLost,
    StoreUnavailable,
    Error,
}

/// Why a turn that runs is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    CancelledByUser,
    ClientDisconnected,
    /// A new message takes its place.
    Interrupted,
    /// So it does, and the model forgets the turn.
    RolledBack,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_input_tokens: u64,
    pub reasoning_tokens: u64,
    /// Calls of the model.
    pub steps: u32,
    /// What they cost by the server's prices, in billionths of its currency.
    #[serde(default)]
    #[schema(required = true)]
    pub cost_nanos: u64,
}

impl Usage {
    /// The figures are a model server's word, so they may be anything.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(other.cached_input_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
        self.steps = self.steps.saturating_add(other.steps);
        self.cost_nanos = self.cost_nanos.saturating_add(other.cost_nanos);
    }

    /// What came since it was `before`.
    pub fn since(&self, before: &Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_sub(before.cached_input_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(before.reasoning_tokens),
            steps: self.steps.saturating_sub(before.steps),
            cost_nanos: self.cost_nanos.saturating_sub(before.cost_nanos),
        }
    }

    /// What counts against a budget.
    pub fn of(&self, unit: BudgetUnit) -> u64 {
        match unit {
            BudgetUnit::Tokens => self.input_tokens.saturating_add(self.output_tokens),
            BudgetUnit::CostNanos => self.cost_nanos,
        }
    }
}

/// What to do when the session already has a running or waiting turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// Refuse the new turn.
    #[default]
    Reject,
    /// It waits in the queue.
    Enqueue,
    /// The model of the active turn reads the input after the results of the
    /// calls it made; if the turn ends first, the input becomes the turn at the
    /// queue's head.
    Steer,
    /// The active turn ends; the new one goes to the head of the queue.
    Interrupt,
    /// As `interrupt`, and the model does not see the active turn any more; what
    /// it did stays done.
    Rollback,
}

/// What happens to the turn when the client that streams its creation leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    #[default]
    Continue,
    Cancel,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnLimits {
    /// Model calls; the server's own limit caps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Wall time while running; parked time does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Tokens sent to the model and received from it, all calls together. At the
    /// ceiling somebody is asked for more. The server's own budget caps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The same for what the calls cost, in billionths of the currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_nanos: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnApprovals {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_ask: Option<OnAsk>,
}

/// The script that the run of a job begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunScript {
    /// A relative path inside the tenant's folder of scripts.
    pub file: String,
    /// What it prints is the answer; no model is asked.
    pub alone: bool,
}

/// What a turn was created with, beside its input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnOptions {
    pub on_disconnect: OnDisconnect,
    pub model: Option<String>,
    /// Said to the model behind the session's own instructions, in this turn only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    pub toolsets: Option<ToolsetSelection>,
    pub limits: TurnLimits,
    pub approvals: TurnApprovals,
    #[serde(flatten)]
    pub sampling: Box<Sampling>,
    /// Tools that the client carries out, beside the session's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    #[schema(value_type = Object)]
    pub metadata: Metadata,
    /// In the run of a job that has a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<RunScript>,
    /// Tools the principal may use at most; `None` is no ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_ceiling: Option<Vec<String>>,
    /// The API key that began the turn; nothing for tokens and the key of the
    /// environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<KeyId>,
}

impl TurnOptions {
    /// Whether the turn is a job's run.
    pub fn is_run_of_job(&self) -> bool {
        self.metadata.contains_key(super::job::JOB_ID)
    }
}

/// A message for a turn that runs, until the model reads it; with all that it
/// needs to become a turn of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steer {
    /// Of the turn that it becomes if the active one ends first.
    pub turn_id: TurnId,
    pub user_id: String,
    #[serde(default)]
    pub key_id: Option<KeyId>,
    pub input: Vec<Part>,
    pub options: TurnOptions,
    pub created_at: Timestamp,
}

impl Steer {
    /// The shape clients see.
    pub fn view(&self) -> SteerView {
        SteerView {
            turn_id: self.turn_id,
            user_id: self.user_id.clone(),
            input: self.input.clone(),
            created_at: self.created_at,
        }
    }
}

/// A message that waits to be read by the model of the turn that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SteerView {
    /// Id of the turn that it becomes if the turn it is for ends first.
    pub turn_id: TurnId,
    pub user_id: String,
    pub input: Vec<Part>,
    pub created_at: Timestamp,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A turn as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Turn {
    pub id: TurnId,
    pub session_id: SessionId,
    pub user_id: String,
    pub status: TurnStatus,
    pub stop_reason: Option<StopReason>,
    pub input: Vec<Part>,
    #[serde(flatten)]
    pub options: TurnOptions,
    pub usage: Usage,
    /// Messages that wait until the model reads them (`on_busy: steer`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pending_steers: usize,
    pub error: Option<Problem>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}
