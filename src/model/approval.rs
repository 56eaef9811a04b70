//! Approvals: what a person is asked, what may be answered, what was answered.
//! An approval never changes but for its status and decision.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::grant::GrantLimits;
use super::id::{ApprovalId, CallId, GrantId, MessageId, SessionId, TurnId};
use super::lineage::Ancestor;
use crate::base::Timestamp;
use crate::guard::Finding;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// A call that the guard asks about.
    ToolCall,
    /// A call that was running when its server stopped: whether it took effect is
    /// unknown.
    Recovery,
    /// A budget is used up: `arguments.budgets` says which, how far, and what
    /// `grant_more` adds.
    Budget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    Pending,
    Allowed,
    Denied,
    Expired,
    Superseded,
    Cancelled,
}

impl ApprovalStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What can be answered. To a call: for it alone, for the rest of the session,
/// for this user from now on, or no. To a call whose outcome is unknown: run it
/// again, go on without knowing, or it is done as a person has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Once,
    Session,
    Always,
    Deny,
    Retry,
    Skip,
    MarkDone,
    /// Of a budget: go on, with as much more as the approval says.
    GrantMore,
    /// Of a budget: the turn ends.
    Stop,
}

impl Choice {
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::Deny => "deny",
            Self::Retry => "retry",
            Self::Skip => "skip",
            Self::MarkDone => "mark_done",
            Self::GrantMore => "grant_more",
            Self::Stop => "stop",
        }
    }

    /// Whether the answer is a yes to what was asked.
    pub fn allows(self) -> bool {
        !matches!(self, Self::Deny | Self::Skip | Self::Stop)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// The model is told and goes on.
    #[default]
    Deny,
    /// The turn ends.
    Halt,
}

/// What happens when a call needs a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnAsk {
    #[default]
    Wait,
    /// Nobody will answer: refuse at once.
    Deny,
}

/// What happens to a call that was running when its server stopped, where it may
/// have changed something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The model and clients are told that its outcome is unknown.
    #[default]
    Tell,
    /// A person says what became of it, or what is to become of it.
    Ask,
}

/// The answer that settled an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Decision {
    pub choice: Choice,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who decided: the principal's user id.
    pub by: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
    /// What the grant is held to, where the answer said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantLimits>,
    /// Arguments were replaced by the person who decided.
    #[serde(default)]
    pub edited: bool,
    /// With edited arguments: names what was allowed in their stead, as the
    /// approval's `digest` names what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Whose answer is awaited first, where it is not a person's.
pub const SMART: &str = "smart";
/// A person's.
pub const HUMAN: &str = "human";

/// What a reviewing model said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// The call runs this once.
    Approve,
    /// A person may still allow it, for this call alone.
    Deny,
    /// It was not sure.
    Escalate,
    /// It did not answer in time, or not at all.
    Failed,
}

/// A model's review of an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Review {
    pub verdict: ReviewVerdict,
    pub model: String,
    pub at: Timestamp,
}

/// An approval as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Approval {
    pub id: ApprovalId,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub tool_call_id: Option<CallId>,
    pub batch_id: Option<MessageId>,
    /// Place of the call in its batch, from 0.
    pub index: u32,
    pub kind: ApprovalKind,
    pub status: ApprovalStatus,
    pub tool: Option<String>,
    /// One line for a list of pending approvals.
    pub title: String,
    /// The whole arguments, untruncated.
    pub arguments: serde_json::Value,
    pub cwd: Option<String>,
    pub backend: String,
    pub findings: Vec<Finding>,
    /// The only answers that are accepted.
    pub choices: Vec<Choice>,
    /// Names exactly what is shown; send it back to be sure that it still holds.
    pub digest: String,
    pub requester: String,
    /// `human`, or `smart` while a model is asked first; a person may answer all
    /// the same.
    pub reviewer: String,
    pub requested_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub on_expiry: OnExpiry,
    pub decision: Option<Decision>,
    /// Where delegated work asks: the session and turn that do it. The approval
    /// itself is its root's.
    #[serde(default)]
    #[schema(required = true)]
    pub origin: Option<Ancestor>,
    /// What a model said that was asked first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

impl Approval {
    /// The session and turn that wait for the answer.
    pub fn asker(&self) -> Ancestor {
        self.origin.unwrap_or(Ancestor {
            session_id: self.session_id,
            turn_id: self.turn_id,
        })
    }

    /// For the result of a call that ran since this was allowed: who let it run, in
    /// spite of what. Nothing where it was not allowed, or asked something else.
    pub fn allowance(&self) -> Option<String> {
        let decision = self.decision.as_ref()?;
        if self.kind != ApprovalKind::ToolCall || self.status != ApprovalStatus::Allowed {
            return None;
        }
        let who = if decision.by == SMART {
            "the reviewing model"
        } else {
            "a person"
        };
        let what: Vec<&str> = self
            .findings
            .iter()
            .map(|finding| finding.description.as_str())
            .collect();
        Some(format!("allowed by {who}; asked about: {}", what.join("; ")))
    }

    /// Names what the answer is about: what was asked, or what it was edited to.
    pub fn decided_digest(&self) -> &str {
        let edited = self.decision.as_ref().and_then(|decision| decision.digest.as_deref());
        edited.unwrap_or(&self.digest)
    }
}

/// Digest of what a person is shown: tool, arguments, directory, backend and
/// findings, SHA-256 in hex over their JSON.
pub fn digest(
    tool: &str,
    arguments: &serde_json::Value,
    cwd: Option<&str>,
    backend: &str,
    findings: &[Finding],
) -> String {
    let shown = serde_json::json!([tool, arguments, cwd, backend, findings]);
    let hash = Sha256::digest(shown.to_string().as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
