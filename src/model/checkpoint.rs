//! Checkpoints: how a session's workspace was before a call that could take
//! something away, and what came of putting it back. Where their content lies,
//! and how, is not for here.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{CallId, CheckpointId, MessageId, SessionId, TurnId};
use crate::base::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointState {
    Complete,
    /// Some files are not in it; `reason` says which kinds.
    Partial,
    /// There was none to be made; `reason` says why.
    Skipped,
}

/// A checkpoint as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checkpoint {
    pub id: CheckpointId,
    /// Whose call it was: the session, or one that works for it.
    pub session_id: SessionId,
    #[serde(default)]
    pub turn_id: Option<TurnId>,
    /// The answer of the model that the call is of: it has one checkpoint at most.
    #[serde(default)]
    pub message_id: Option<MessageId>,
    /// The call that was about to run.
    #[serde(default)]
    pub tool_call_id: Option<CallId>,
    #[serde(default)]
    pub tool: Option<String>,
    /// Of one that was made so that restoring can be undone: what was restored.
    #[serde(default)]
    pub restores: Option<CheckpointId>,
    pub state: CheckpointState,
    #[serde(default)]
    pub reason: Option<String>,
    /// Files that it holds.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
    pub created_at: Timestamp,
}

/// A name that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotRestored {
    /// From the workspace's root.
    pub path: String,
    pub reason: String,
}

/// What came of putting a checkpoint back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Restored {
    pub checkpoint_id: CheckpointId,
    /// How it was just before; restoring it undoes this.
    pub undo_checkpoint_id: CheckpointId,
    /// Files and links written, directories made.
    pub written: u64,
    /// Names that came since and were taken away.
    pub removed: u64,
    /// Names that are not as they were, at most 100 of them.
    pub not_restored: Vec<NotRestored>,
    pub not_restored_count: u64,
}

/// What the event of a restored checkpoint tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RestoredData {
    pub restored: Restored,
}
