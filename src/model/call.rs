//! A tool call: what the model asked for, what became of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{CallId, MessageId};
use crate::base::Timestamp;

/// What running a call may do to the world; decides whether a call found
/// running after a crash may run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Reads only: running it twice is harmless.
    Read,
    /// Writes our own rows, committed together with the result: never half done.
    Internal,
    /// Changes something outside the store.
    Write,
}

/// Who carries a call out. What is not the server's is handed over and waits,
/// as rows only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    #[default]
    Server,
    /// The client that brought the tool.
    Client,
    /// A person, by an answer.
    Person,
    /// Child sessions.
    Children,
}

impl Execution {
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Person => "person",
            Self::Children => "children",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Stored, not started: an earlier call or a decision comes first.
    Proposed,
    /// A person has to decide, or whoever carries it out has it.
    Waiting,
    Running,
    Succeeded,
    Failed,
    Denied,
    Cancelled,
    /// Started, and the server died before the result was stored: the effect
    /// may have happened.
    Unknown,
}

impl CallStatus {
    /// The call has its result; nothing will change it.
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Proposed | Self::Waiting | Self::Running)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

/// A tool call as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolCall {
    pub id: CallId,
    /// Calls of one model answer share it: the id of that answer's message.
    pub batch_id: MessageId,
    /// The call whose program made this one; such a call is no part of the
    /// transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<CallId>,
    /// Place in the batch, from 0; of a program's calls, place among them.
    pub index: u32,
    pub name: String,
    /// The arguments the tool gets: parsed and coerced, or as a person edited them.
    pub arguments: serde_json::Value,
    /// One line of what it is about, secrets masked.
    #[serde(default)]
    #[schema(required = true)]
    pub preview: String,
    pub effect: Effect,
    /// Who carries it out.
    #[serde(default)]
    #[schema(required = true)]
    pub execution: Execution,
    pub status: CallStatus,
    /// The tool's result, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// Which part of the world a call touches; decides which calls of one answer
/// may run together. Paths are absolute and resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Footprint {
    /// Touches nothing another call could disturb.
    Parallel,
    Reads(Vec<std::path::PathBuf>),
    Writes(Vec<std::path::PathBuf>),
    /// Runs with nothing beside it.
    Alone,
}
