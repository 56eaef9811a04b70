//! Where a turn goes: into a session that is there, into one that is made for it
//! with a past of its own, or into a fork. What is made is made in the turn's own
//! transaction, so that no session is left behind without its turn.

use serde_json::json;

use super::adopt::History;
use super::fork::{ForkSession, forked_within};
use super::import::ImportSession;
use super::sessions::stored;
use super::{EngineError, Verdict};
use crate::model::id::{SessionId, TenantId, TurnId};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{SessionRecord, TurnRecord};
use crate::store::sessions::NewSession;
use crate::store::{Rows, StoreError};
use crate::turn::engine::Engine;

#[derive(Clone, Debug)]
pub enum Whither {
    Session(SessionId),
    /// Only while this turn is the active one.
    Beside(SessionId, TurnId),
    New(Box<ImportSession>),
    Fork(SessionId, Box<ForkSession>),
}

/// The same, checked and with the id of what is to be made.
#[derive(Clone)]
pub(super) enum Place {
    There(SessionId, Option<TurnId>),
    New(SessionId, Box<(NewSession, History)>),
    Fork(SessionId, SessionId, Box<ForkSession>),
}

impl Engine {
    pub(super) fn place(&self, tenant: TenantId, whither: Whither) -> Verdict<Place> {
        let id = SessionId::new(self.clock());
        Ok(match whither {
            Whither::Session(session) => Place::There(session, None),
            Whither::Beside(session, turn) => Place::There(session, Some(turn)),
            Whither::New(import) => Place::New(id, Box::new(self.with_past(tenant, id, *import)?)),
            Whither::Fork(from, fork) => Place::Fork(id, from, fork),
        })
    }
}

impl Place {
    pub(super) fn session(&self) -> SessionId {
        match self {
            Self::There(id, _) | Self::New(id, _) | Self::Fork(id, ..) => *id,
        }
    }

    pub(super) fn is_there(&self) -> bool {
        matches!(self, Self::There(..))
    }

    /// Why a turn cannot go there now, of what was said about the active one.
    pub(super) fn refused(&self, active: Option<TurnId>) -> Option<EngineError> {
        match self {
            Self::There(_, Some(beside)) if active != Some(*beside) => {
                let problem = Problem::new(ProblemCode::TurnNotActive, "the turn does not run any more");
                Some(EngineError::Refused(problem.with_context(json!({"turn_id": beside}))))
            }
            _ => None,
        }
    }

    /// The settings of the session that is to be made.
    async fn alike(&self, rows: &mut Rows<'_>) -> Result<Option<SessionRecord>, StoreError> {
        match self {
            Self::There(..) => Ok(None),
            Self::New(_, new) => Ok(Some(new.0.record.clone())),
            Self::Fork(_, from, _) => rows.session_record(*from).await,
        }
    }

    /// Makes what is not there yet. A turn that it would refuse is refused before
    /// there is anything to leave behind.
    pub(super) async fn made(
        &mut self,
        rows: &mut Rows<'_>,
        engine: &Engine,
        turn: &mut TurnRecord,
    ) -> Result<Result<(), EngineError>, StoreError> {
        if let Some(alike) = self.alike(rows).await?
            && let Err(refused) = engine.suits(&alike, turn)
        {
            return Ok(Err(refused));
        }
        let id = self.session();
        let made = match std::mem::replace(self, Self::There(id, None)) {
            there @ Self::There(..) => {
                *self = there;
                return Ok(Ok(()));
            }
            Self::New(_, new) => {
                let (row, history) = *new;
                stored(rows, row, history).await?
            }
            Self::Fork(id, from, fork) => forked_within(rows, engine, id, (from, *fork)).await?,
        };
        Ok(made.map(drop))
    }
}
