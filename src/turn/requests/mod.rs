//! What clients ask of the engine: sessions made and changed, turns begun and
//! cancelled, approvals answered. Each is one transaction under the session's
//! lock, checked there and nowhere before.

mod adopt;
mod answers;
mod append;
mod approvals;
mod archive;
mod batch;
mod budgets;
mod checkpoints;
mod conditions;
mod deliveries;
mod fork;
mod import;
mod jobs;
mod pending;
mod processes;
mod questions;
mod queue;
mod responses;
mod sessions;
mod steer;
mod supersede;
mod tool_results;
mod turns;
mod whither;

pub(in crate::turn) use turns::stop;

use super::commit::Carried;
use super::engine::Engine;
use super::owner::Opening;
use super::state::State;
use crate::model::approval::Choice;
use crate::model::budget::SessionBudget;
use crate::model::client_tool::ClientTool;
use crate::model::grant::GrantLimits;
use crate::model::id::TenantId;
use crate::model::message::Part;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::sampling::Sampling;
use crate::model::session::{ApprovalPolicy, EnvironmentSpec, Metadata, ToolsetSelection};
use crate::model::turn::{OnBusy, Turn, TurnOptions, TurnStatus};
use crate::store::{Earlier, Rows, StoreError};
pub use append::{Appended, OutsideMessage};
pub(super) use approvals::lock_asker;
pub use batch::{BatchOutcome, BatchRequest};
pub use fork::{ForkPoint, ForkSession};
pub use import::ImportSession;
pub use jobs::JobChange;
pub use processes::Typed;
pub use whither::Whither;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Absent, deleted, or another tenant's or user's: nobody can tell.
    #[error("no such {0}")]
    NotFound(&'static str),
    #[error("{}", .0.detail)]
    Refused(Problem),
    /// It was carried out before under its key; this JSON came of it.
    #[error("the request was carried out before")]
    Replayed(String),
    #[error("the store failed")]
    Store(#[from] StoreError),
}

#[derive(Clone, Debug)]
pub struct CreateSession {
    pub user_id: String,
    pub external_id: Option<String>,
    pub title: Option<String>,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub preset: String,
    pub toolsets: ToolsetSelection,
    pub environment: EnvironmentSpec,
    pub approvals: ApprovalPolicy,
    pub sampling: Sampling,
    pub tools: Vec<ClientTool>,
    pub budget: SessionBudget,
    pub metadata: Metadata,
}

#[derive(Clone, Debug)]
pub struct NewTurn {
    pub user_id: String,
    pub input: Vec<Part>,
    pub on_busy: OnBusy,
    pub options: TurnOptions,
}

/// What changes of a queued turn; `None` leaves it as it is.
#[derive(Clone, Debug, Default)]
pub struct TurnPatch {
    pub input: Option<Vec<Part>>,
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreatedTurn {
    pub turn: Turn,
    /// Number of the turn's first event; of a steered one, of the event that says
    /// so.
    pub first_seq: i64,
    /// The turn was there before: it reads the input when it comes to it.
    pub steered: bool,
}

/// An answer to an approval, as a client gives it.
#[derive(Clone, Debug)]
pub struct AnswerRequest {
    pub choice: Choice,
    /// What was shown; refused when it is something else by now.
    pub digest: Option<String>,
    pub reason: Option<String>,
    pub stop_turn: bool,
    /// What the call gets instead of its arguments (with `once`).
    pub arguments: Option<serde_json::Map<String, serde_json::Value>>,
    /// What the grant is held to (with `session` and `always`).
    pub grant: Option<GrantLimits>,
    pub by: String,
}

/// What a transaction came to: the error is not the store's, so nothing is
/// rolled back by it.
pub(super) type Verdict<T> = Result<T, EngineError>;

/// The first step of every transaction that a client may send twice: why there
/// is nothing left to do, if so.
pub async fn earlier(rows: &mut Rows<'_>) -> Result<Option<EngineError>, StoreError> {
    Ok(match rows.earlier().await? {
        Earlier::Nothing => None,
        Earlier::Answer(answer) => Some(EngineError::Replayed(answer)),
        Earlier::OtherBody => Some(EngineError::Refused(Problem::new(
            ProblemCode::IdempotencyKeyReused,
            "the `Idempotency-Key` was sent before with another body; a new request takes a new key",
        ))),
    })
}

impl Engine {
    /// Runs what a transaction of this process has just claimed.
    pub(super) fn spawn_own(&self, tenant: TenantId, carried: Carried) {
        self.spawn_begun(tenant, carried, None);
    }

    /// As [`Engine::spawn_own`], for a turn of which its maker knows more than
    /// the record.
    pub(super) fn spawn_begun(&self, tenant: TenantId, mut carried: Carried, opening: Option<Opening>) {
        self.spawn_others(tenant, &mut carried);
        self.spawn_if_ours(tenant, carried.state, opening);
    }

    pub(super) fn spawn_promoted(&self, tenant: TenantId, mut carried: Carried) {
        self.spawn_others(tenant, &mut carried);
    }

    /// After a decision: the turn may have been woken by it, or its owner is
    /// told by the bell.
    pub(super) fn spawn_woken(&self, tenant: TenantId, carried: Carried) {
        let state = &carried.state;
        if self.runs(state.turn.turn_id, state.turn.epoch) {
            self.spawn_promoted(tenant, carried);
        } else {
            self.spawn_own(tenant, carried);
        }
    }

    fn spawn_others(&self, tenant: TenantId, carried: &mut Carried) {
        carried.wake(self);
        let others = carried.promoted.take().into_iter().chain(carried.kin.drain(..));
        for other in others {
            self.spawn_if_ours(tenant, other, None);
        }
    }

    pub(super) fn spawn_if_ours(&self, tenant: TenantId, state: State, opening: Option<Opening>) {
        if state.turn.status == TurnStatus::Running && state.turn.owner == Some(self.process()) {
            self.spawn(tenant, state, opening);
        }
    }
}
