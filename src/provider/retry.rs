//! Whether a failed model call is worth another attempt, and after how long.
//! Pure: the caller records the retry, waits and attempts again. Nothing is
//! repeated once a part of the answer had arrived.

use std::time::Duration;

use super::{Failed, FailureKind};

/// How patient to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Attempts after the first one.
    pub max_retries: u32,
    /// The wait before the first retry; doubles with each further one.
    pub base: Duration,
    /// The doubling stops here.
    pub cap: Duration,
    /// A server that asks to wait longer than this is taken at its word: the
    /// call fails now and says when to come back.
    pub longest_retry_after: Duration,
}

impl Default for Policy {
    /// The numbers of the Hermes agent: 3 retries, 2 s doubling to 60 s, and at
    /// most two minutes on the server's own wish.
    fn default() -> Self {
        Self {
            max_retries: 3,
            base: Duration::from_secs(2),
            cap: Duration::from_secs(60),
            longest_retry_after: Duration::from_secs(120),
        }
    }
}

/// The wait before the next attempt, or `None` when the failure stands.
///
/// `attempt` counts from 1 and is the one that failed; `jitter` is a uniform
/// number from 0 to 1 that lengthens the wait by up to half, so that many turns
/// that failed together do not come back together.
pub fn decide(failed: &Failed, attempt: u32, policy: &Policy, jitter: f64) -> Option<Duration> {
    if failed.partial.is_some() || policy.max_retries < attempt || !may_pass(failed.kind) {
        return None;
    }
    if let Some(wait) = failed.retry_after {
        return (wait <= policy.longest_retry_after).then_some(wait);
    }
    let doublings = attempt.saturating_sub(1).min(31);
    let wait = policy.base.saturating_mul(1 << doublings).min(policy.cap);
    // A jitter that is no number counts as none: `mul_f64` would panic on it.
    let jitter = if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) };
    Some(wait.mul_f64(1.0 + 0.5 * jitter))
}

/// Whether the same request may succeed a moment later.
fn may_pass(kind: FailureKind) -> bool {
    use FailureKind::*;
    match kind {
        Unreachable | RateLimited | Overloaded | ServerError | Timeout | Interrupted => true,
        Untrusted | Unauthenticated | UnknownModel | Billing | ContextTooLong | ContentFiltered | InvalidRequest
        | Malformed => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Partial;

    fn failed(kind: FailureKind) -> Failed {
        Failed::new(kind, "no")
    }

    #[test]
    fn waits_double_up_to_the_cap_and_end_after_the_last_retry() {
        let policy = Policy {
            max_retries: 7,
            ..Policy::default()
        };
        let waits: Vec<_> = (1..=8)
            .map(|attempt| decide(&failed(FailureKind::ServerError), attempt, &policy, 0.0).map(|wait| wait.as_secs()))
            .collect();
        assert_eq!(
            waits,
            [Some(2), Some(4), Some(8), Some(16), Some(32), Some(60), Some(60), None]
        );
        assert_eq!(
            decide(&failed(FailureKind::ServerError), 4, &Policy::default(), 0.0),
            None
        );
        assert!(
            decide(
                &failed(FailureKind::ServerError),
                u32::MAX,
                &Policy {
                    max_retries: u32::MAX,
                    ..policy
                },
                0.0
            )
            .is_some()
        );
    }

    #[test]
    fn jitter_adds_up_to_half() {
        let wait = |jitter| decide(&failed(FailureKind::Timeout), 1, &Policy::default(), jitter);
        assert_eq!(wait(0.5), Some(Duration::from_millis(2500)));
        assert_eq!(wait(1.0), Some(Duration::from_secs(3)));
        assert_eq!(wait(f64::INFINITY), Some(Duration::from_secs(3)));
        assert_eq!(wait(f64::NAN), Some(Duration::from_secs(2)));
    }

    #[test]
    fn the_server_decides_the_wait_within_reason() {
        let asked = |secs| Failed {
            retry_after: Some(Duration::from_secs(secs)),
            ..failed(FailureKind::RateLimited)
        };
        assert_eq!(
            decide(&asked(7), 1, &Policy::default(), 0.9),
            Some(Duration::from_secs(7))
        );
        assert_eq!(decide(&asked(3600), 1, &Policy::default(), 0.0), None);
    }

    #[test]
    fn a_break_after_the_first_token_is_never_repeated() {
        let broken = Failed {
            partial: Some(Box::new(Partial::default())),
            ..failed(FailureKind::Interrupted)
        };
        assert_eq!(decide(&broken, 1, &Policy::default(), 0.0), None);
    }

    #[test]
    fn what_cannot_pass_is_not_repeated() {
        for kind in [
            FailureKind::Unauthenticated,
            FailureKind::Untrusted,
            FailureKind::UnknownModel,
            FailureKind::Billing,
            FailureKind::ContextTooLong,
            FailureKind::ContentFiltered,
            FailureKind::InvalidRequest,
            FailureKind::Malformed,
        ] {
            assert_eq!(decide(&failed(kind), 1, &Policy::default(), 0.0), None, "{kind:?}");
        }
    }
}
