//! Whether one more turn may begin to execute: counted for its key, its tenant
//! and this process. What waits, is queued or parked does not count; what was
//! taken before is never held up, so queued and woken turns begin above a limit
//! too. Asked in the transaction that would begin the turn.

use serde_json::json;

use super::engine::Engine;
use crate::model::id::TurnId;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::TurnRecord;
use crate::store::{Rows, StoreError};

/// How many turns may execute at once; nothing is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Ceilings {
    /// On this process.
    pub server: Option<u32>,
    /// Of each tenant, on all processes of the database.
    pub tenant: Option<u32>,
    /// As of a tenant, of each key; of each user where there is none.
    pub key: Option<u32>,
}

/// A place on this process that is kept for a turn until its owner task has it.
/// Dropped before that, it is free again.
pub(super) struct Slot {
    engine: Engine,
    turn: TurnId,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.engine.free(self.turn);
    }
}

/// A place for the turn, or why it may not begin. Call under the session's lock.
pub(super) async fn admit(
    rows: &mut Rows<'_>,
    engine: &Engine,
    turn: &TurnRecord,
) -> Result<Result<Slot, Problem>, StoreError> {
    let Ceilings { server, tenant, key } = engine.settings().ceilings;
    if key.is_some() || tenant.is_some() {
        let now = rows.executing_turns(turn).await?;
        let full = |limit: Option<u32>, count: i64| limit.filter(|limit| i64::from(*limit) <= count);
        if let Some(limit) = full(key, now.of_key) {
            return Ok(Err(refused(ProblemCode::KeyTurnLimit, limit)));
        }
        if let Some(limit) = full(tenant, now.of_tenant) {
            return Ok(Err(refused(ProblemCode::TenantTurnLimit, limit)));
        }
    }
    Ok(match engine.keep_place(turn.turn_id, server) {
        Ok(()) => Ok(Slot {
            engine: engine.clone(),
            turn: turn.turn_id,
        }),
        Err(limit) => Err(refused(ProblemCode::ServerTurnLimit, limit)),
    })
}

fn refused(code: ProblemCode, limit: u32) -> Problem {
    let (whose, key) = match code {
        ProblemCode::KeyTurnLimit => ("of this key", "key"),
        ProblemCode::TenantTurnLimit => ("of this tenant", "tenant"),
        _ => ("of this server", "server"),
    };
    let detail = format!(
        "{limit} turns {whose} are executing, and more may not (`limits.{key}.executing_turns`); try again when one has \
         ended or waits for a person"
    );
    Problem::new(code, detail).with_context(json!({"limit": limit}))
}
