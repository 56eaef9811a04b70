//! Approvals and questions that nobody answered in time. Sleeps until the next one is due and
//! is woken when one is asked that expires sooner.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::approvals::{Due, DueItem};
use crate::turn::engine::Engine;

/// Looked at in one go.
const BATCH: u32 = 1000;

/// Pause before what is left over is looked at.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn expire(engine: Engine, lease: Duration, stop: CancellationToken) {
    loop {
        let due = match engine.store().due_across_tenants(BATCH).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "looking for what is due failed");
                Vec::new()
            }
        };
        let now = engine.clock().now();
        let (over, later): (Vec<Due>, Vec<Due>) = due.into_iter().partition(|due| due.expires_at <= now);
        let mut expired = 0;
        for due in &over {
            let gone = match due.item {
                DueItem::Approval(id) => engine.expire_approval(due.tenant_id, due.session_id, id).await,
                DueItem::Question(id) => engine.expire_question(due.tenant_id, due.session_id, id).await,
            };
            match gone {
                Ok(()) => expired += 1,
                Err(error) => tracing::warn!(item = ?due.item, %error, "not expired"),
            }
        }
        // A full page may hide others that are due.
        let again = over.len() != expired || over.len() == BATCH as usize;
        let next = later.first().map(|due| engine.clock().sleep_until(due.expires_at));
        let due_next = async {
            match next {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due_next => {}
            () = engine.nudges().due.notified() => {}
            // Those that another process asked, should it be gone.
            () = tokio::time::sleep(if again { AGAIN } else { lease }) => {}
            () = stop.cancelled() => return,
        }
    }
}
