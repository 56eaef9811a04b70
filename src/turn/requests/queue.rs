//! The visible queue: turns that wait are changed and withdrawn until they
//! begin. What has begun is cancelled instead.

use serde_json::json;

use super::conditions::forbid_turn;
use super::turns::stop;
use super::{EngineError, TurnPatch, Verdict};
use crate::model::id::{SessionId, TurnId};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{SessionRecord, TurnRecord};
use crate::model::turn::{CancelReason, Turn, TurnStatus};
use crate::store::{Rows, Scope, StoreError};
use crate::turn::commit;
use crate::turn::engine::Engine;
use crate::turn::state::State;

impl Engine {
    /// Changes a turn that waits in the queue.
    pub async fn patch_queued(
        &self,
        scope: &Scope,
        session: SessionId,
        turn: TurnId,
        patch: TurnPatch,
    ) -> Verdict<Turn> {
        let engine = self.clone();
        let patched = scope.write_anew("patch_turn", move |mut rows| {
            Box::pin(async move {
                let (session, turn) = match queued(&mut rows, session, turn).await? {
                    Ok(found) => found,
                    Err(refused) => return Ok(Err(refused)),
                };
                let state = State::fresh(session, turn);
                let carried = commit::carry_out(&mut rows, &engine, state, None, |step| {
                    step.edit_queued(patch.input, patch.metadata);
                });
                Ok(Ok(carried.await?.state.turn.view()))
            })
        });
        patched.await?
    }

    /// Takes a turn out of the queue: it ends as cancelled.
    pub async fn withdraw_queued(&self, scope: &Scope, session: SessionId, turn: TurnId) -> Verdict<Turn> {
        let engine = self.clone();
        let withdrawn = scope.write_anew("withdraw_turn", move |mut rows| {
            Box::pin(async move {
                let (session, turn) = match queued(&mut rows, session, turn).await? {
                    Ok(found) => found,
                    Err(refused) => return Ok(Err(refused)),
                };
                let carried = stop(&mut rows, &engine, session, turn, CancelReason::CancelledByUser).await?;
                Ok(Ok(carried.state.turn.view()))
            })
        });
        withdrawn.await?
    }
}

/// A turn of the queue, under the session's lock.
async fn queued(
    rows: &mut Rows<'_>,
    session: SessionId,
    turn: TurnId,
) -> Result<Verdict<(SessionRecord, TurnRecord)>, StoreError> {
    let Some(record) = rows.lock_session(session).await? else {
        return Ok(Err(EngineError::NotFound("turn")));
    };
    let Some(turn) = rows.turn(session, turn).await? else {
        return Ok(Err(EngineError::NotFound("turn")));
    };
    if turn.status == TurnStatus::Queued {
        return Ok(match forbid_turn(rows, &turn) {
            Some(refused) => Err(refused),
            None => Ok((record, turn)),
        });
    }
    let detail = format!(
        "the turn does not wait in the queue any more, it is `{}`; POST …/cancel ends one that is under way",
        turn.status.name()
    );
    let context = json!({"turn_id": turn.turn_id, "status": turn.status});
    Ok(Err(EngineError::Refused(
        Problem::new(ProblemCode::TurnNotActive, detail).with_context(context),
    )))
}
