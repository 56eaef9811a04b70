//! The audit trail: who did what, under which rule, with what outcome. An entry
//! holds ids, names of rules and outcomes; never a prompt, an argument, an output
//! or a secret. Entries of a tenant are chained by their hashes, so that a copy of
//! them proves by itself that none was changed, dropped or moved.

pub mod export;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::id::{ApprovalId, AuditId, CallId, GrantId, KeyId, SessionId, TenantId, TurnId};
use crate::base::Timestamp;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum AuditAction {
    #[serde(rename = "key.created")]
    KeyCreated,
    #[serde(rename = "key.revoked")]
    KeyRevoked,
    /// A key that is known was shown after its end; at most once a minute for
    /// each key and server.
    #[serde(rename = "key.refused")]
    KeyRefused,
    #[serde(rename = "session.created")]
    SessionCreated,
    /// The session's approval settings or tools were changed.
    #[serde(rename = "session.policy_changed")]
    SessionPolicyChanged,
    #[serde(rename = "session.deleted")]
    SessionDeleted,
    #[serde(rename = "approval.requested")]
    ApprovalRequested,
    #[serde(rename = "approval.decided")]
    ApprovalDecided,
    #[serde(rename = "approval.expired")]
    ApprovalExpired,
    /// Closed without an answer: a new message, or a world that moved.
    #[serde(rename = "approval.superseded")]
    ApprovalSuperseded,
    /// Closed by the end of its turn.
    #[serde(rename = "approval.cancelled")]
    ApprovalCancelled,
    /// A policy of the tenant was written; `fields` names it and what changed.
    #[serde(rename = "policy.changed")]
    PolicyChanged,
    /// A policy of the tenant was taken away; `fields` names it.
    #[serde(rename = "policy.deleted")]
    PolicyDeleted,
    /// A change of a skill or of the memory that waited was let in; `fields` names
    /// its kind.
    #[serde(rename = "pending_write.approved")]
    PendingWriteApproved,
    /// One that waited was taken away; `fields` names its kind.
    #[serde(rename = "pending_write.rejected")]
    PendingWriteRejected,
    #[serde(rename = "grant.created")]
    GrantCreated,
    #[serde(rename = "grant.used")]
    GrantUsed,
    #[serde(rename = "grant.revoked")]
    GrantRevoked,
    /// A call that a person would have been asked about ran without, by
    /// `approvals.mode` or `command_allowlist`.
    #[serde(rename = "call.exempted")]
    CallExempted,
    /// A call that did not run: the guard, a person or nobody allowed it.
    #[serde(rename = "call.refused")]
    CallRefused,
    /// A call that ran, with what became of it.
    #[serde(rename = "call.executed")]
    CallExecuted,
}

impl AuditAction {
    /// The name on the wire and in the store.
    pub fn name(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|name| name.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

/// One entry as clients and exports show it. The order of the fields is part of
/// what is hashed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    pub id: AuditId,
    pub at: Timestamp,
    pub action: AuditAction,
    /// The user who did it, or on whose behalf it was done; `system` for the
    /// server itself.
    pub actor: String,
    /// The API key that was shown; nothing for tokens, the key of the
    /// environment and the command line.
    pub key_id: Option<KeyId>,
    /// Whose session, key or grant it is about.
    pub user_id: String,
    pub session_id: Option<SessionId>,
    pub turn_id: Option<TurnId>,
    pub tool_call_id: Option<CallId>,
    pub approval_id: Option<ApprovalId>,
    pub grant_id: Option<GrantId>,
    /// The key that was made, revoked or refused.
    pub target_key_id: Option<KeyId>,
    pub tool: Option<String>,
    /// Keys of the rules that were met.
    pub rules: Vec<String>,
    /// What the guard said: `allow`, `ask`, `deny`.
    pub verdict: Option<String>,
    /// The answer that a person gave, or what stood for one.
    pub decision: Option<String>,
    /// What became of a call: its last status.
    pub outcome: Option<String>,
    pub exit_code: Option<i64>,
    /// Names of what was set or changed.
    pub fields: Vec<String>,
}

/// What somebody did, before the store gives it an id, an instant and an actor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audited {
    pub action: Option<AuditAction>,
    /// Who did it, where it is not whoever the transaction is carried out for.
    pub actor: Option<Actor>,
    pub user_id: String,
    pub session_id: Option<SessionId>,
    pub turn_id: Option<TurnId>,
    pub tool_call_id: Option<CallId>,
    pub approval_id: Option<ApprovalId>,
    pub grant_id: Option<GrantId>,
    pub target_key_id: Option<KeyId>,
    pub tool: Option<String>,
    pub rules: Vec<String>,
    pub verdict: Option<&'static str>,
    pub decision: Option<String>,
    pub outcome: Option<&'static str>,
    pub exit_code: Option<i64>,
    pub fields: Vec<String>,
}

impl Audited {
    pub fn new(action: AuditAction, user_id: impl Into<String>) -> Self {
        Self {
            action: Some(action),
            user_id: user_id.into(),
            ..Self::default()
        }
    }
}

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub user: String,
    pub key: Option<KeyId>,
}

impl Actor {
    /// The server itself.
    pub fn system() -> Self {
        Self {
            user: "system".to_owned(),
            key: None,
        }
    }
}

/// Where an entry stands in its tenant's chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// Counts from 1 without gaps.
    pub seq: i64,
    /// Of the entry before, or of the chain's beginning.
    pub prev: String,
    /// SHA-256 over `prev`, `seq` and the entry's digest, in hex.
    pub hash: String,
}

/// What the first entry of a tenant is chained to.
pub fn beginning(tenant: TenantId) -> String {
    sha256(format!("hermes-server audit {tenant}").as_bytes())
}

/// The digest of an entry: of its JSON as exports write it.
pub fn digest(entry: &AuditEntry) -> String {
    sha256(serde_json::to_string(entry).unwrap_or_default().as_bytes())
}

/// The link of the entry with this digest behind `prev`.
pub fn link(prev: &str, seq: i64, digest: &str) -> Link {
    Link {
        seq,
        prev: prev.to_owned(),
        hash: sha256(format!("{prev} {seq} {digest}").as_bytes()),
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
