//! What clients of responses ask beyond turns: that one is forgotten by them.

use super::{EngineError, Verdict};
use crate::model::id::{SessionId, TurnId};
use crate::store::Scope;
use crate::turn::engine::Engine;

impl Engine {
    /// Hides a turn from those who know it as a response. The turn and what was
    /// said in it stay.
    pub async fn delete_response(&self, scope: &Scope, session: SessionId, turn: TurnId) -> Verdict<()> {
        let now = self.clock().now();
        let deleted = scope.write("delete_response", move |mut rows| {
            Box::pin(async move {
                if rows.lock_session(session).await?.is_none() || rows.turn(session, turn).await?.is_none() {
                    return Ok(Err(EngineError::NotFound("response")));
                }
                rows.delete_response(turn, now).await?;
                Ok(Ok(()))
            })
        });
        deleted.await?
    }
}
