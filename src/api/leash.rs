//! A turn on a leash: made with `on_disconnect: cancel`, it is cancelled when the
//! request that made it is dropped before its answer is complete.

use crate::model::id::{SessionId, TurnId};
use crate::model::turn::CancelReason;
use crate::store::Scope;

use super::state::ApiState;

/// Whose turn it is, and where it is.
#[derive(Clone)]
struct Held {
    state: ApiState,
    scope: Scope,
    session: SessionId,
    turn: TurnId,
}

/// Cancels its turn when dropped, unless it was let go.
pub(super) struct Leash(Option<Held>);

impl Leash {
    /// A leash that holds nothing.
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn new(state: ApiState, scope: Scope, session: SessionId, turn: TurnId) -> Self {
        Self(Some(Held {
            state,
            scope,
            session,
            turn,
        }))
    }

    /// The answer is complete, or its end is the server's doing.
    pub(super) fn let_go(&mut self) {
        self.0 = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let Some(held) = self.0.take() else { return };
        // Without a runtime the process is ending and takes the turn along.
        if held.state.closing.is_cancelled() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let tasks = held.state.tasks.clone();
        tasks.spawn(async move {
            let reason = CancelReason::ClientDisconnected;
            let engine = &held.state.engine;
            let cancelled = engine.cancel_turn_for(&held.scope, held.session, held.turn, reason);
            if let Err(error) = cancelled.await {
                tracing::warn!(turn = %held.turn, %error, "a turn whose client left was not cancelled");
            }
        });
    }
}
