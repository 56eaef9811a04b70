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
pub(super) struct Leash {
    held: Option<Held>,
    /// Nobody who leaves now means the turn.
    loose: bool,
}

impl Leash {
    /// A leash that holds nothing.
    pub(super) fn none() -> Self {
        Self {
            held: None,
            loose: false,
        }
    }

    pub(super) fn new(state: ApiState, scope: Scope, session: SessionId, turn: TurnId) -> Self {
        Self {
            held: Some(Held {
                state,
                scope,
                session,
                turn,
            }),
            loose: false,
        }
    }

    /// Holds the turn or not, for as long as it waits for a person: whoever is
    /// asked may come back later.
    pub(super) fn loosen(&mut self, loose: bool) {
        self.loose = loose;
    }

    /// The answer is complete, or its end is the server's doing.
    pub(super) fn let_go(&mut self) {
        self.held = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let Some(held) = self.held.take().filter(|_| !self.loose) else {
            return;
        };
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
