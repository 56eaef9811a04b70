//! What a decision may look at besides the record: the instant, the tools of the
//! session, the grants in force, the settings. A value, so that decisions stay
//! pure.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::delegation::Delegation;
use crate::base::{Clock, Id, Timestamp, id::Kind};
use crate::guard::policy::Compiled;
use crate::model::approval::{OnAsk, OnExpiry, Recovery};
use crate::model::budget::Budgets;
use crate::model::grant::Grant;
use crate::model::guardrail;
use crate::model::id::{NodeId, ProcessId};
use crate::model::memory::Limits;
use crate::model::session::ApprovalMode;
use crate::tool::readings::Unread;
use crate::tool::session_tools::SessionTools;
use crate::tool::{Host, Place};

/// The rules for one turn: the server's settings, narrowed by the session's and
/// the turn's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Model calls with tools.
    pub max_steps: u32,
    pub mode: ApprovalMode,
    pub on_ask: OnAsk,
    /// Milliseconds until a pending approval expires; 0 is never.
    pub approval_timeout_ms: i64,
    /// Milliseconds until a question to a person expires; 0 is never.
    pub clarify_timeout_ms: i64,
    pub on_expiry: OnExpiry,
    pub recovery: Recovery,
    pub allow_permanent: bool,
    /// Keys of findings and exact commands that need no asking.
    pub allowlist: Vec<String>,
    pub budgets: Budgets,
    pub delegation: Delegation,
    pub guardrail: guardrail::Limits,
    /// How long the lists of memory may be.
    pub memory: Limits,
}

pub struct World<'a> {
    pub now: Timestamp,
    /// Makes ids only.
    pub ids: &'a Clock,
    /// Who owns a turn that runs from now on; `None` while draining: the turn is
    /// left for another process.
    pub owner: Option<ProcessId>,
    /// The data directory that is used here.
    pub node: NodeId,
    pub tools: &'a SessionTools,
    pub host: &'a Host,
    pub workspace: PathBuf,
    pub grants: &'a [Grant],
    /// The tenant's, for the session.
    pub policies: &'a [Arc<Compiled>],
    pub rules: &'a Rules,
    /// Where long commands are noted that nobody has read: what is decided does not
    /// count then. `None` reads them.
    pub unread: Option<Unread>,
}

impl World<'_> {
    pub fn id<K: Kind>(&self) -> Id<K> {
        Id::new(self.ids)
    }

    /// The place of a session that stands in `cwd`; one outside the workspace
    /// is a trace of a data directory that moved, and counts as none.
    pub fn place<'p>(&'p self, cwd: Option<&'p str>, backend: &'p str) -> Place<'p> {
        let cwd = standing(&self.workspace, cwd);
        Place {
            workspace: &self.workspace,
            cwd,
            backend,
            policies: self.policies,
            unread: self.unread.as_ref(),
        }
    }
}

/// Where a session stands, absolute.
pub fn standing<'p>(workspace: &'p Path, cwd: Option<&'p str>) -> &'p Path {
    let within = cwd.map(Path::new).filter(|cwd| cwd.starts_with(workspace));
    within.unwrap_or(workspace)
}
