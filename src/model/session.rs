//! A session: one conversation with its settings and state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::approval::{OnAsk, OnExpiry, Recovery};
use super::client_tool::ClientTool;
use super::id::{ApprovalId, CallId, MessageId, QuestionId, SessionId, TurnId};
use super::lineage::Lineage;
use super::sampling::Sampling;
use super::turn::Usage;
use crate::base::Timestamp;
use crate::base::text::first_chars;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    #[default]
    Idle,
    Running,
    /// Something waits for a person, even while a sibling call runs.
    RequiresAction,
}

impl SessionStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::RequiresAction => "requires_action",
        }
    }
}

/// Toolsets added to and taken from the preset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolsetSelection {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
}

/// Where the session's commands run and files live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentSpec {
    #[serde(default = "local")]
    pub backend: String,
    /// Directory to begin in: a relative path inside the workspace. Until it
    /// exists, the nearest one above it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

fn local() -> String {
    "local".to_owned()
}

impl Default for EnvironmentSpec {
    fn default() -> Self {
        Self {
            backend: local(),
            cwd: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    Manual,
    Off,
}

/// The session's own approval settings; what is absent follows the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalPolicy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ApprovalMode>,
    /// 0 waits until somebody decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_ask: Option<OnAsk>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// A policy of the tenant that holds here, beside its `default`. While there is
    /// none of that name, every command asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 64)]
    pub policy: Option<String>,
}

/// Client data kept with an object: string keys, any JSON values.
pub type Metadata = BTreeMap<String, serde_json::Value>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequiredActionKind {
    Approval,
    /// The model asked something.
    Question,
    /// A call of a tool that the client brought waits for its result.
    ClientTool,
}

/// Something that waits for a person, or for the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequiredAction {
    #[serde(rename = "type")]
    pub kind: RequiredActionKind,
    /// Of the approval, the question or the tool call.
    pub id: String,
    pub turn_id: TurnId,
    pub summary: String,
    pub expires_at: Option<Timestamp>,
    /// Path of what waits; what answers it stands there.
    pub href: String,
}

impl RequiredAction {
    pub fn approval(id: ApprovalId, turn_id: TurnId, summary: String, expires_at: Option<Timestamp>) -> Self {
        Self {
            kind: RequiredActionKind::Approval,
            id: id.to_string(),
            turn_id,
            summary,
            expires_at,
            href: format!("/v1/approvals/{id}"),
        }
    }

    pub fn question(id: QuestionId, turn_id: TurnId, question: &str, expires_at: Option<Timestamp>) -> Self {
        Self {
            kind: RequiredActionKind::Question,
            id: id.to_string(),
            turn_id,
            summary: summary(question),
            expires_at,
            href: format!("/v1/questions/{id}"),
        }
    }

    pub fn client_tool(session: SessionId, turn_id: TurnId, call: CallId, name: &str) -> Self {
        Self {
            kind: RequiredActionKind::ClientTool,
            id: call.to_string(),
            turn_id,
            summary: name.to_owned(),
            expires_at: None,
            href: format!("/v1/sessions/{session}/tool-results"),
        }
    }
}

/// One line of at most 200 characters.
fn summary(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    first_chars(line.unwrap_or_default().trim(), 200).to_owned()
}

/// Where a session was forked from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Parent {
    pub session_id: SessionId,
    /// The last message of that session which the fork took over.
    pub message_id: Option<MessageId>,
}

/// A session as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    pub id: SessionId,
    pub external_id: Option<String>,
    pub user_id: String,
    pub title: Option<String>,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub preset: String,
    pub toolsets: ToolsetSelection,
    pub environment: EnvironmentSpec,
    pub approvals: ApprovalPolicy,
    #[serde(flatten)]
    pub sampling: Sampling,
    /// Tools that the client carries out.
    #[serde(default)]
    #[schema(required = true)]
    pub tools: Vec<ClientTool>,
    #[schema(value_type = Object)]
    pub metadata: Metadata,
    /// Set where the session does delegated work: whose.
    #[serde(default)]
    #[schema(required = true)]
    pub lineage: Option<Lineage>,
    /// Set in a fork. The session that it names may be gone.
    pub parent: Option<Parent>,
    /// Lists leave an archived session out unless asked; all else works.
    pub archived_at: Option<Timestamp>,
    pub status: SessionStatus,
    pub required_actions: Vec<RequiredAction>,
    /// Number of the newest event.
    pub head_seq: i64,
    pub active_turn_id: Option<TurnId>,
    pub usage: Usage,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
