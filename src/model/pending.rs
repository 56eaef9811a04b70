//! What an agent wants to write for good and a person has to let in first: a
//! change of skills, or of what is remembered where nobody could be asked.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{CallId, PendingWriteId, SessionId, TurnId};
use crate::base::Timestamp;

/// Of one user; what more an agent wants to write is refused.
pub const MAX_PENDING: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PendingKind {
    Skill,
    Memory,
}

impl PendingKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Skill => "skill",
            Self::Memory => "memory",
        }
    }
}

/// What a call wants staged.
#[derive(Clone, Debug, PartialEq)]
pub struct Staged {
    pub kind: PendingKind,
    /// In a few words.
    pub subject: String,
    pub change: serde_json::Value,
}

/// A change that waits, as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PendingWrite {
    pub id: PendingWriteId,
    pub user_id: String,
    /// The call that wanted it.
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub tool_call_id: CallId,
    pub kind: PendingKind,
    /// In a few words.
    pub subject: String,
    /// What would be written, whole.
    #[schema(value_type = Object)]
    pub change: serde_json::Value,
    pub created_at: Timestamp,
}

/// What came of one that was let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WrittenPending {
    pub id: PendingWriteId,
    pub kind: PendingKind,
    pub message: String,
}
