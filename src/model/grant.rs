//! A grant: a person's standing permission, made by answering an approval with
//! `session` or `always`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{ApprovalId, GrantId, SessionId};
use crate::base::Timestamp;
use crate::guard::Finding;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// Lives and dies with the session.
    Session,
    /// Belongs to the tenant and user.
    Always,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    pub id: GrantId,
    pub scope: GrantScope,
    pub session_id: Option<SessionId>,
    pub tool: String,
    pub backend: String,
    /// Rule keys that are covered. Empty when the grant is for `exact` text.
    pub keys: Vec<String>,
    /// The exact command, where no rule had a key.
    pub exact: Option<String>,
    pub approval_id: Option<ApprovalId>,
    pub created_by: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    pub uses: u64,
    pub last_used_at: Option<Timestamp>,
}

impl Grant {
    /// Whether this grant answers a call of `tool` on `backend` with these
    /// findings: every finding's key has to be covered, or the text is the same.
    pub fn covers(&self, tool: &str, backend: &str, subject: &str, findings: &[Finding]) -> bool {
        if self.revoked_at.is_some() || self.tool != tool || self.backend != backend {
            return false;
        }
        match &self.exact {
            Some(exact) => exact == subject,
            None => !findings.is_empty() && findings.iter().all(|finding| self.keys.contains(&finding.key)),
        }
    }
}
