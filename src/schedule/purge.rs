//! Deleted sessions: invisible at once, their files and rows gone once nothing
//! of them runs. A crash in between leaves them to the next start.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::StoreError;
use crate::store::claims_across_tenants::Removable;
use crate::turn::engine::Engine;

/// Pause before what could not be purged is tried again.
const AGAIN: Duration = Duration::from_secs(30);

pub(super) async fn purge(engine: Engine, stop: CancellationToken) {
    loop {
        let done = all(&engine).await;
        tokio::select! {
            () = engine.nudges().purge.notified() => {}
            () = tokio::time::sleep(AGAIN), if !done => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Whether nothing is left to do.
async fn all(engine: &Engine) -> bool {
    let hidden = match engine.store().hidden_sessions_across_tenants().await {
        Ok(hidden) => hidden,
        Err(error) => {
            tracing::warn!(%error, "looking for deleted sessions failed");
            return false;
        }
    };
    let mut done = true;
    for session in hidden {
        if let Err(error) = one(engine, session).await {
            tracing::warn!(session = %session.session_id, %error, "not purged");
            done = false;
        }
    }
    done
}

async fn one(engine: &Engine, hidden: Removable) -> Result<(), StoreError> {
    // A process would go on writing.
    let processes = engine.host().processes();
    processes.end_session(hidden.tenant_id, hidden.session_id).await;
    // Files first: rows are what makes a second try happen.
    engine
        .host()
        .remove_workspace(hidden.tenant_id, hidden.session_id)
        .await;
    let id = hidden.session_id;
    engine
        .store()
        .scope(hidden.tenant_id)
        .write("purge", move |mut rows| {
            Box::pin(async move { rows.purge_session(id).await })
        })
        .await
}
