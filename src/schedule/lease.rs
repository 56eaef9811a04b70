//! Keeping this process alive in the eyes of the others. One that could not say
//! so in time lets go of its turns before the others may take them; the fence
//! makes a wrong guess harmless.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::store::process::Registration;
use crate::store::{Kind, StoreError};
use crate::turn::engine::Engine;

/// Turns are let go this long before the lease ends, at most: of a short lease
/// it is the second half.
const MARGIN: Duration = Duration::from_secs(5);

pub(super) async fn keep(engine: Engine, mut registration: Registration, lease: Duration, stop: CancellationToken) {
    let mut until = Instant::now() + lease;
    let mut abandoned = false;
    loop {
        let pause = if abandoned { Duration::from_secs(1) } else { lease / 3 };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => break,
        }
        let began = Instant::now();
        match registration.renew(lease).await {
            Ok(()) => {
                until = began + lease;
                abandoned = false;
            }
            Err(StoreError::Lost) => {
                tracing::error!("the others declared this process dead; it lets go of its turns");
                engine.abandon();
                abandoned = true;
            }
            Err(error) => tracing::warn!(%error, "the lease was not renewed"),
        }
        // SQLite belongs to one process: nobody else could take its turns.
        if engine.store().kind() == Kind::Postgres && !abandoned && until < Instant::now() + MARGIN.min(lease / 2) {
            tracing::error!("the lease ends soon and cannot be renewed; letting go of all turns");
            engine.abandon();
            abandoned = true;
        }
    }
    if let Err(error) = registration.leave().await {
        tracing::warn!(%error, "this process could not sign off; the others wait for its lease");
    }
}
