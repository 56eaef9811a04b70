//! All that runs without a request: keeping this process's lease, taking over
//! turns whose owner is gone, expiring approvals, purging deleted sessions,
//! forgetting keys of old requests, chaining the audit trail.
//! Each is a loop of its own that ends with the token; none holds state that a
//! restart would miss.

mod audit;
mod expiry;
mod forget;
mod lease;
mod purge;
mod takeover;

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::model::id::NodeId;
use crate::store::process::Registration;
use crate::turn::engine::Engine;

/// Starts every loop. The registration goes when the token fires.
pub fn start(
    engine: &Engine,
    node: NodeId,
    registration: Registration,
    lease: Duration,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) {
    tasks.spawn(lease::keep(engine.clone(), registration, lease, stop.clone()));
    tasks.spawn(takeover::sweep(engine.clone(), node, lease, stop.clone()));
    tasks.spawn(expiry::expire(engine.clone(), lease, stop.clone()));
    tasks.spawn(audit::chain(engine.clone(), lease, stop.clone()));
    tasks.spawn(purge::purge(engine.clone(), stop.clone()));
    tasks.spawn(forget::forget(engine.clone(), stop.clone()));
}
