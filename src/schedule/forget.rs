//! Keys of requests that are too old to be sent again. Nothing waits for their
//! end: a key past its time counts as new, and what goes here is its row.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::turn::engine::Engine;

/// Rows outlive their day by this much at most.
const PAUSE: Duration = Duration::from_secs(60 * 60);

pub(super) async fn forget(engine: Engine, stop: CancellationToken) {
    loop {
        if let Err(error) = engine.store().forget_old_keys_across_tenants().await {
            tracing::warn!(%error, "old idempotency keys were not removed");
        }
        tokio::select! {
            () = engine.clock().sleep(PAUSE) => {}
            () = stop.cancelled() => return,
        }
    }
}
