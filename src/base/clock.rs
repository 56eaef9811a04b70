//! Time and identity, the two ambient inputs of a server, as one value that is
//! passed in. The system clock runs in production; a stepped clock stands still
//! in tests until it is moved, and wakes every sleeper whose instant has come.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::Timestamp;

/// A cheap handle; clones share the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
    /// `milliseconds << 16 | counter` of the newest id, so that ids made within
    /// one millisecond still sort in the order they were made.
    newest: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
enum Source {
    System,
    Stepped(Arc<watch::Sender<i64>>),
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self {
            source: Source::System,
            newest: Arc::default(),
        }
    }

    /// A clock that moves only by [`Clock::step`], beginning at `start`.
    pub fn stepped(start: Timestamp) -> Self {
        let (sender, _) = watch::channel(start.0);
        Self {
            source: Source::Stepped(Arc::new(sender)),
            newest: Arc::default(),
        }
    }

    /// The present instant.
    pub fn now(&self) -> Timestamp {
        match &self.source {
            Source::System => {
                #[allow(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
            Source::Stepped(sender) => Timestamp(*sender.borrow()),
        }
    }

    /// Moves a stepped clock forward and wakes its sleepers; the system clock
    /// ignores the call.
    pub fn step(&self, span: Duration) {
        if let Source::Stepped(sender) = &self.source {
            sender.send_modify(|now| *now = Timestamp(*now).after(span).0);
        }
    }

    /// Completes once the clock shows `instant` or later. Dropping it cancels.
    pub fn sleep_until(&self, instant: Timestamp) -> impl Future<Output = ()> + Send + use<> {
        let clock = self.clone();
        async move {
            match &clock.source {
                Source::System => tokio::time::sleep(instant.since(clock.now())).await,
                Source::Stepped(sender) => {
                    let mut now = sender.subscribe();
                    // The sender lives in `clock`, so the wait cannot fail.
                    let _closed = now.wait_for(|now| instant.0 <= *now).await;
                }
            }
        }
    }

    /// Completes after `span` of this clock's time.
    pub fn sleep(&self, span: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.sleep_until(self.now().after(span))
    }

    /// A fresh UUIDv7 whose order is the order of creation within this clock.
    pub fn uuid(&self) -> u128 {
        let millis = u64::try_from(self.now().0).unwrap_or(0) & 0xffff_ffff_ffff;
        let floor = millis << 16;
        let previous = self
            .newest
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |newest| {
                Some(floor.max(newest + 1))
            })
            .unwrap_or(floor);
        let stamp = floor.max(previous + 1);
        let (millis, counter) = (u128::from(stamp >> 16), u128::from(stamp & 0xffff));
        // 12 bits of the counter go beside the version, the other 4 lead the
        // random part, below the two bits of the variant.
        let random = u128::from(random_u64()) & ((1 << 58) - 1);
        (millis << 80) | (7 << 76) | ((counter >> 4) << 64) | (0b10 << 62) | ((counter & 0xf) << 58) | random
    }
}

/// 64 bits from the operating system's random source.
fn random_u64() -> u64 {
    #[expect(
        clippy::expect_used,
        reason = "the kernel's source fails only before it is seeded at boot; without unguessable ids nothing may go on"
    )]
    getrandom::u64().expect("the system has randomness")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_instant_keep_their_order() {
        let clock = Clock::stepped(Timestamp(1_769_851_800_000));
        let ids: Vec<u128> = (0..5000).map(|_| clock.uuid()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert_eq!(uuid::Uuid::from_u128(ids[0]).get_version_num(), 7);
        assert_eq!(uuid::Uuid::from_u128(ids[0]).get_variant(), uuid::Variant::RFC4122);
    }

    #[tokio::test]
    async fn a_sleeper_wakes_when_its_instant_comes() {
        let clock = Clock::stepped(Timestamp(0));
        let sleeper = tokio::spawn(clock.sleep(Duration::from_millis(10)));
        clock.step(Duration::from_millis(9));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.step(Duration::from_millis(1));
        sleeper.await.unwrap();
    }
}
