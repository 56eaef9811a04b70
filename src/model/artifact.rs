//! Something a call made that is kept whole: a result too long for the model.
//! The content is stored once and never changes.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::id::{ArtifactId, CallId, SessionId, TurnId};
use crate::base::Timestamp;

/// An artifact as clients see it, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    pub id: ArtifactId,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    /// The call that it comes from.
    pub tool_call_id: CallId,
    pub tool: String,
    pub name: String,
    pub media_type: String,
    /// Bytes of the content.
    pub size: i64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    pub created_at: Timestamp,
}

/// What the event of a new artifact tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactData {
    pub artifact: Artifact,
}

/// What a call wants kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub name: String,
    pub media_type: String,
    pub content: String,
}

impl Kept {
    /// The whole of a result of which the model is shown the beginning.
    pub fn result(name: String, content: String) -> Self {
        Self {
            name,
            media_type: "text/plain; charset=utf-8".to_owned(),
            content,
        }
    }

    pub fn sha256(&self) -> String {
        let digest = Sha256::digest(self.content.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// An artifact with what it holds, before it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewArtifact {
    pub artifact: Artifact,
    pub content: String,
}
