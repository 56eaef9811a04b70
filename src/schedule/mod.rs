//! All that runs without a request: keeping this process's lease, taking over
//! turns whose owner is gone, expiring approvals, purging deleted sessions,
//! beginning runs of jobs, forgetting keys of old requests, folding old events, chaining the audit trail,
//! fetching the external scanner.
//! Each is a loop of its own that ends with the token; none holds state that a
//! restart would miss.

mod approved;
mod audit;
mod expiry;
mod fold;
mod forget;
mod jobs;
mod lease;
mod processes;
mod purge;
pub mod scanner;
mod takeover;

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::model::id::NodeId;
use crate::store::process::Registration;
use crate::turn::engine::Engine;

/// How long things last.
#[derive(Clone, Copy, Debug)]
pub struct Spans {
    pub lease: Duration,
    /// Days that events are kept; nothing means for good.
    pub events_days: Option<u64>,
}

/// Starts every loop. The registration goes when the token fires.
pub fn start(
    engine: &Engine,
    node: NodeId,
    registration: Registration,
    spans: Spans,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) {
    let Spans { lease, events_days } = spans;
    tasks.spawn(lease::keep(engine.clone(), registration, lease, stop.clone()));
    tasks.spawn(takeover::sweep(engine.clone(), node, lease, stop.clone()));
    tasks.spawn(processes::store(engine.clone(), lease, stop.clone()));
    tasks.spawn(expiry::expire(engine.clone(), lease, stop.clone()));
    tasks.spawn(jobs::run(engine.clone(), lease, stop.clone()));
    tasks.spawn(audit::chain(engine.clone(), lease, stop.clone()));
    tasks.spawn(approved::finish(engine.clone(), stop.clone()));
    tasks.spawn(purge::purge(engine.clone(), stop.clone()));
    tasks.spawn(forget::forget(engine.clone(), stop.clone()));
    tasks.spawn(fold::fold(engine.clone(), events_days, stop.clone()));
}
