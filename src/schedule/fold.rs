//! Events that are older than the operator wants to keep: the beginnings of logs
//! are folded, session after session. Messages, calls and approvals stay, and so
//! does every event of a turn that is not over.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::base::Timestamp;
use crate::store::StoreError;
use crate::store::claims_across_tenants::Removable;
use crate::turn::engine::Engine;

/// Events outlive their days by this much at most.
const PAUSE: Duration = Duration::from_secs(60 * 60);
/// Sessions looked for at once.
const PAGE: u32 = 100;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Nothing to do where events are kept for good.
pub(super) async fn fold(engine: Engine, days: Option<u64>, stop: CancellationToken) {
    let Some(days) = days.and_then(|days| u32::try_from(days).ok()) else {
        return;
    };
    loop {
        let next = engine.clock().now().after(PAUSE);
        if let Err(error) = all(&engine, DAY * days, &stop).await {
            tracing::warn!(%error, "old events were not folded");
        }
        tokio::select! {
            () = engine.clock().sleep_until(next) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn all(engine: &Engine, kept: Duration, stop: &CancellationToken) -> Result<(), StoreError> {
    let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
    let before = Timestamp(engine.clock().now().0.saturating_sub(kept));
    let mut last = None;
    while !stop.is_cancelled() {
        let found = engine
            .store()
            .sessions_with_old_events_across_tenants(before, last, PAGE);
        let found = found.await?;
        for session in &found {
            one(engine, *session, before, stop).await?;
        }
        last = found.last().copied();
        if last.is_none() {
            break;
        }
    }
    Ok(())
}

async fn one(engine: &Engine, of: Removable, before: Timestamp, stop: &CancellationToken) -> Result<(), StoreError> {
    let (scope, session) = (engine.store().scope(of.tenant_id), of.session_id);
    let cut = scope.write("fold_events", move |mut rows| {
        Box::pin(async move { rows.cut_log(session, before).await })
    });
    if cut.await?.is_none() {
        return Ok(());
    }
    let mut done = false;
    while !done && !stop.is_cancelled() {
        let step = scope.write("drop_events", move |mut rows| {
            Box::pin(async move { rows.drop_hidden_events(session).await })
        });
        done = step.await?;
    }
    Ok(())
}
