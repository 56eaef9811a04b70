//! Delegated work: a session that another session's call made, its tasks, and
//! what became of them. The session at the root of all is where people look.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{CallId, SessionId, TurnId};
use super::turn::{TurnStatus, Usage};

/// What a child may do with its task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChildRole {
    /// Does it by itself.
    #[default]
    Leaf,
    /// May delegate parts of it, where the server allows the depth.
    Orchestrator,
}

/// A turn that waits for delegated work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ancestor {
    pub session_id: SessionId,
    pub turn_id: TurnId,
}

/// Whose work a session does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lineage {
    /// From the root down to the parent.
    pub ancestors: Vec<Ancestor>,
    /// The parent's call that the session works for.
    pub tool_call_id: CallId,
    /// Place of the task in that call, from 0.
    pub index: u32,
    pub role: ChildRole,
}

impl Lineage {
    pub fn root(&self) -> Option<Ancestor> {
        self.ancestors.first().copied()
    }

    pub fn parent(&self) -> Option<Ancestor> {
        self.ancestors.last().copied()
    }

    /// How many delegations lie above; a child of the root is at 1.
    pub fn depth(&self) -> usize {
        self.ancestors.len()
    }
}

/// One thing that is handed to a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub goal: String,
    pub context: Option<String>,
    pub role: ChildRole,
}

/// A child that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewChild {
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub lineage: Lineage,
    pub task: Task,
}

/// A child as its parent's log shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Subagent {
    pub tool_call_id: CallId,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    /// Place of the task in its call, from 0.
    pub index: u32,
    pub goal: String,
    pub role: ChildRole,
    /// Of its turn.
    pub status: TurnStatus,
    pub usage: Usage,
}
