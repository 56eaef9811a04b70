//! Chaining the audit trail, soon after each commit that wrote to it. Of several
//! servers one chains at a time; the others look again until nothing is left.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::StoreError;
use crate::store::chain_across_tenants::Progress;
use crate::turn::engine::Engine;

/// Entries that come together are chained together; well below the second that
/// is promised.
const GATHER: Duration = Duration::from_millis(300);
/// Pause before another look while another server chains.
const AGAIN: Duration = Duration::from_millis(200);
/// Pause after a failure of the store.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// The last look, before the store closes.
const LAST: Duration = Duration::from_secs(2);

pub(super) async fn chain(engine: Engine, lease: Duration, stop: CancellationToken) {
    let mut news = engine.store().bell().subscribe_audits();
    loop {
        news.borrow_and_update();
        let pause = match all(&engine).await {
            Ok(Progress::Done) => None,
            Ok(_) => Some(AGAIN),
            Err(error) => {
                tracing::warn!(%error, "the audit trail was not chained");
                Some(AFTER_FAILURE)
            }
        };
        let next = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                // Whoever rings is this very process: it does not end before us.
                None => {
                    let _closed = news.changed().await;
                    engine.clock().sleep(GATHER).await;
                }
            }
        };
        tokio::select! {
            () = next => {}
            // What a server left that died makes no sound: whoever finds it dead does.
            () = engine.nudges().departed.notified() => {}
            // One that was stopped may have left something too.
            () = tokio::time::sleep(lease) => {}
            () = stop.cancelled() => break,
        }
    }
    let _late = tokio::time::timeout(LAST, all(&engine)).await;
}

async fn all(engine: &Engine) -> Result<Progress, StoreError> {
    loop {
        match engine.store().chain_audit_across_tenants(engine.process()).await? {
            Progress::More => {}
            progress => return Ok(progress),
        }
    }
}
