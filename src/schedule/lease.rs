//! Keeping this process alive in the eyes of the others. One that could not say
//! so in time lets go of its turns before the others may take them; the fence
//! makes a wrong guess harmless.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::store::process::Registration;
use crate::store::{Kind, StoreError};
use crate::turn::engine::Engine;

/// Turns are let go this long before the lease ends, at most: of a short lease
/// it is the second half.
const MARGIN: Duration = Duration::from_secs(5);

/// Between two tries after one that failed, and the longest that one may hang
/// once there is nothing left to lose.
const AGAIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(10);

/// When this process lets go of its turns unless the lease is renewed. SQLite
/// belongs to one process: nobody else could take its turns.
fn last_moment(kind: Kind, renewed: Instant, lease: Duration) -> Option<Instant> {
    (kind == Kind::Postgres).then(|| renewed + lease.saturating_sub(MARGIN.min(lease / 2)))
}

pub(super) async fn keep(engine: Engine, mut registration: Registration, lease: Duration, stop: CancellationToken) {
    let kind = engine.store().kind();
    let mut pause = lease / 3;
    let mut abandoned = false;
    loop {
        let last = last_moment(kind, registration.renewed(), lease).filter(|_| !abandoned);
        let wake = Instant::now() + pause;
        tokio::select! {
            () = sleep_until(last.map_or(wake, |last| wake.min(last))) => {}
            () = stop.cancelled() => break,
        }
        // A store that answers nothing must not hold this process past the moment.
        let limit = last.unwrap_or_else(|| Instant::now() + PATIENCE.max(lease));
        let renewed = tokio::select! {
            renewed = timeout_at(limit, registration.renew(lease)) => renewed,
            () = stop.cancelled() => break,
        };
        let failed = !matches!(renewed, Ok(Ok(())));
        pause = if failed { AGAIN.min(lease / 3) } else { lease / 3 };
        match renewed {
            Ok(Ok(())) => abandoned = false,
            Ok(Err(StoreError::Lost)) => {
                tracing::error!("the others declared this process dead; it lets go of its turns");
                engine.abandon();
                // What it begins from now on is its own again, if they see it live.
                let entered = registration.enter_again(lease).await;
                abandoned = entered.is_err();
            }
            Ok(Err(error)) => tracing::warn!(%error, "the lease was not renewed"),
            Err(_) => tracing::warn!("the lease was not renewed: the store does not answer"),
        }
        if failed && !abandoned && last.is_some_and(|last| last <= Instant::now()) {
            tracing::error!("the lease ends soon and cannot be renewed; letting go of all turns");
            engine.abandon();
            abandoned = true;
        }
    }
    if let Err(error) = registration.leave().await {
        tracing::warn!(%error, "this process could not sign off; the others wait for its lease");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_let_go_before_the_lease_ends_however_long_it_is() {
        let now = Instant::now();
        let after = |seconds| {
            let lease = Duration::from_secs(seconds);
            last_moment(Kind::Postgres, now, lease).map(|last| (last - now).as_millis())
        };
        assert_eq!(
            [after(30), after(10), after(3)],
            [Some(25_000), Some(5_000), Some(1_500)]
        );
        assert_eq!(last_moment(Kind::Sqlite, now, Duration::from_secs(30)), None);
    }
}
