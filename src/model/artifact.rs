//! What calls made: results too long for the model, kept whole, and files that
//! were written to the workspace. Which call it was, and the hash of the content,
//! never change; a file may have changed since.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::id::{ArtifactId, CallId, SessionId, TurnId};
use crate::base::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// A result of which the model was shown the beginning.
    Result,
    /// A file that the call wrote.
    File,
}

/// An artifact as clients see it, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    pub id: ArtifactId,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    /// The call that it comes from.
    pub tool_call_id: CallId,
    pub tool: String,
    pub kind: ArtifactKind,
    pub name: String,
    /// Of a file: where it is, from the workspace's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
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
    pub held: Held,
}

/// Where the content of an artifact is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// Stored beside the artifact.
    Text(String),
    /// A file of the workspace, by its path from there, in the state that is told.
    File { path: String, size: i64, sha256: String },
}

impl Kept {
    /// The whole of a result of which the model is shown the beginning.
    pub fn result(name: String, content: String) -> Self {
        Self {
            name,
            media_type: "text/plain; charset=utf-8".to_owned(),
            held: Held::Text(content),
        }
    }
}

impl Held {
    pub fn size(&self) -> i64 {
        match self {
            Self::Text(text) => i64::try_from(text.len()).unwrap_or(i64::MAX),
            Self::File { size, .. } => *size,
        }
    }

    pub fn sha256(&self) -> String {
        match self {
            Self::Text(text) => hex(&Sha256::digest(text)),
            Self::File { sha256, .. } => sha256.clone(),
        }
    }

    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::File { path, .. } => Some(path),
        }
    }
}

/// A digest as artifacts tell it.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An artifact with what it holds, before it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewArtifact {
    pub artifact: Artifact,
    /// `None` where the workspace holds it.
    pub content: Option<String>,
}
