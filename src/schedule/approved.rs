//! Changes of skills that were let in and are not on the disk: what a server that
//! ended left, and what could not be written. Each is finished once.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::turn::engine::Engine;

/// Pause before what could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(30);

pub(super) async fn finish(engine: Engine, stop: CancellationToken) {
    loop {
        let done = engine.finish_approved_writes().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "looking for changes that were let in failed");
            false
        });
        tokio::select! {
            () = engine.nudges().approved.notified(), if done => {}
            () = tokio::time::sleep(AGAIN), if !done => {}
            () = stop.cancelled() => return,
        }
    }
}
