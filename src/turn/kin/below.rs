//! The end of a turn that had work delegated: the children end with it.

use crate::model::id::CallId;
use crate::model::turn::CancelReason;
use crate::store::{Rows, StoreError};
use crate::turn::engine::Engine;
use crate::turn::requests::stop as stop_turn;
use crate::turn::state::State;

/// Stops what the call delegated: what is parked ends here, what runs when its
/// owner has stopped it.
pub(super) async fn stop(
    rows: &mut Rows<'_>,
    engine: &Engine,
    call: CallId,
    moved: &mut Vec<State>,
) -> Result<(), StoreError> {
    for child in rows.children_of(call).await? {
        let Some(session) = rows.lock_session_even_deleted(child.session_id).await? else {
            continue;
        };
        let active = match session.active_turn_id {
            Some(active) => rows.turn(session.session_id, active).await?,
            None => None,
        };
        let Some(turn) = active else { continue };
        let stopped = Box::pin(stop_turn(rows, engine, session, turn, CancelReason::CancelledByUser)).await?;
        moved.extend(stopped.kin);
    }
    Ok(())
}
