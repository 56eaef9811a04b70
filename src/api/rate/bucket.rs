//! The arithmetic of a rate (the generic cell rate algorithm): a bucket holds so
//! many requests and fills evenly. All that is kept of one is the instant at
//! which it will be full again. No clock, no state.

use std::time::Duration;

use crate::base::Timestamp;
use crate::config::Quota;

const NANOS_IN_MILLI: i64 = 1_000_000;

/// When a bucket is full, in nanoseconds since the epoch. What lies in the past
/// is full now, as is a bucket that nobody has drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FullAt(i64);

/// How things stand with one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Requests that may come now.
    pub left: u32,
    /// Until one more may come; nothing where one may come now.
    pub wait: Duration,
    /// Until the bucket is full.
    pub full_in: Duration,
}

impl FullAt {
    pub const LONG_AGO: Self = Self(i64::MIN);

    /// Later than this instant there is nothing to remember of a bucket.
    pub fn now(now: Timestamp) -> Self {
        Self(now.0.saturating_mul(NANOS_IN_MILLI))
    }
}

/// The time in which one request's worth comes in.
fn interval(quota: Quota) -> i64 {
    let window = i64::try_from(quota.window.as_nanos()).unwrap_or(i64::MAX);
    (window / i64::from(quota.requests.max(1))).max(1)
}

/// The time in which an empty bucket fills.
fn span(quota: Quota) -> i64 {
    interval(quota).saturating_mul(i64::from(quota.requests.max(1)))
}

/// What is missing of a full bucket, as time. Never more than all of it: after
/// the clock was set back nobody waits for longer than a window.
fn missing(quota: Quota, full: FullAt, now: FullAt) -> i64 {
    full.0.saturating_sub(now.0).clamp(0, span(quota))
}

pub fn standing(quota: Quota, full: FullAt, now: FullAt) -> Standing {
    let (missing, interval) = (missing(quota, full, now), interval(quota));
    let left = (span(quota) - missing) / interval;
    let wait = (missing - (span(quota) - interval)).max(0);
    Standing {
        left: u32::try_from(left).unwrap_or(u32::MAX),
        wait: nanos(wait),
        full_in: nanos(missing),
    }
}

/// The bucket with one request less.
pub fn draw(quota: Quota, full: FullAt, now: FullAt) -> FullAt {
    let missing = missing(quota, full, now).saturating_add(interval(quota));
    FullAt(now.0.saturating_add(missing.min(span(quota))))
}

fn nanos(count: i64) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quota(requests: u32, seconds: u64) -> Quota {
        Quota {
            requests,
            window: Duration::from_secs(seconds),
        }
    }

    fn at(millis: i64) -> FullAt {
        FullAt::now(Timestamp(1_769_851_800_000 + millis))
    }

    #[test]
    fn a_bucket_is_drawn_empty_and_fills_evenly() {
        let quota = quota(4, 60);
        let mut full = FullAt::LONG_AGO;
        for left in [4, 3, 2, 1] {
            let now = standing(quota, full, at(0));
            assert_eq!((now.left, now.wait), (left, Duration::ZERO));
            full = draw(quota, full, at(0));
        }
        let empty = standing(quota, full, at(0));
        assert_eq!((empty.left, empty.wait.as_secs(), empty.full_in.as_secs()), (0, 15, 60));
        assert_eq!(standing(quota, full, at(14_999)).left, 0);
        assert_eq!(standing(quota, full, at(15_000)).left, 1);
        assert_eq!(standing(quota, full, at(45_000)).left, 3);
        assert_eq!(standing(quota, full, at(600_000)).left, 4, "no more than it holds");
    }

    #[test]
    fn a_clock_that_is_set_back_blocks_nobody_for_longer_than_a_window() {
        let quota = quota(4, 60);
        let full = draw(quota, FullAt::LONG_AGO, at(3_600_000));
        let now = standing(quota, full, at(0));
        assert_eq!((now.left, now.wait.as_secs(), now.full_in.as_secs()), (0, 15, 60));
        assert_eq!(draw(quota, full, at(0)), at(60_000));
    }

    proptest! {
        /// Whatever the pattern: in no span of time more than the bucket holds
        /// and what came in meanwhile, and whoever waits as told is served.
        #[test]
        fn no_span_of_time_sees_more_than_the_rate(
            requests in 1_u32..50,
            seconds in 1_u64..100,
            pauses in prop::collection::vec(0_i64..5_000, 1..200),
        ) {
            let quota = quota(requests, seconds);
            let (mut full, mut now, mut served) = (FullAt::LONG_AGO, 0_i64, Vec::new());
            for pause in pauses {
                now += pause;
                let here = standing(quota, full, at(now));
                prop_assert_eq!(here.left == 0, here.wait != Duration::ZERO);
                if 0 < here.left {
                    full = draw(quota, full, at(now));
                    served.push(now);
                } else {
                    let told = now + i64::try_from(here.wait.as_millis()).unwrap() + 1;
                    prop_assert!(0 < standing(quota, full, at(told)).left);
                }
            }
            for (first, begin) in served.iter().enumerate() {
                for (last, end) in served.iter().enumerate().skip(first) {
                    let came_in = (end - begin) as f64 * f64::from(requests) / (seconds as f64 * 1000.0);
                    let most = f64::from(requests) + came_in + 1e-3;
                    prop_assert!((last - first + 1) as f64 <= most);
                }
            }
        }
    }
}
