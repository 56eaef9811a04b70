//! Jobs that are due, and answers of their runs that have to be delivered. Sleeps until the next one and is woken when a job changes;
//! looks once a lease for what other processes changed. Every process looks, and
//! the lock of a job's row lets one of them begin the run.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::claims_across_tenants::DueJob;
use crate::turn::engine::Engine;

/// Jobs looked at in one go.
const BATCH: u32 = 100;

/// Pause before what is left over is looked at.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn run(engine: Engine, lease: Duration, stop: CancellationToken) {
    loop {
        let all = match engine.store().due_jobs_across_tenants(BATCH).await {
            Ok(all) => all,
            Err(error) => {
                tracing::warn!(%error, "looking for due jobs failed");
                Vec::new()
            }
        };
        let more = engine.deliver_runs().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what runs of jobs came to is not delivered yet");
            false
        });
        let now = engine.clock().now();
        let (due, later): (Vec<DueJob>, Vec<DueJob>) = all.into_iter().partition(|job| job.due_at <= now);
        for job in &due {
            if engine.is_draining() {
                return;
            }
            if let Err(error) = engine.run_job(job.tenant_id, job.job_id).await {
                tracing::warn!(job = %job.job_id, %error, "a job's run did not begin");
            }
        }
        let next = later.first().map(|job| engine.clock().sleep_until(job.due_at));
        let next = async {
            match next {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        // Jobs are looked at between the parts of what is to be delivered, too.
        let pause = match (more, due.is_empty()) {
            (true, _) => Duration::ZERO,
            (false, true) => lease,
            (false, false) => AGAIN,
        };
        tokio::select! {
            () = next => {}
            () = engine.nudges().jobs.notified() => {}
            // What was due may have failed, and other processes make no sound.
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}
