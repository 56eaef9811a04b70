//! Whether a tool can be offered, remembered for a while and shared by all
//! sessions: checks may be slow, and one that fails now and then must not make
//! tools come and go.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::entry::Entry;
use crate::base::Timestamp;
use crate::tool::Host;

/// How long an answer counts (the original's figure, as the next).
pub const KEPT: Duration = Duration::from_secs(30);
/// How long after a success a failure is not believed.
const GRACE: Duration = Duration::from_secs(60);

/// Said of a check that panicked.
pub(super) const FAILED: &str = "its check failed";

#[derive(Debug, Default)]
pub struct Availability {
    /// By the key of the check. No lock is held while a check runs.
    checks: Mutex<HashMap<String, Checked>>,
}

/// What a check last said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Checked {
    /// When the answer was given; `None` when it is to be asked again.
    at: Option<Timestamp>,
    /// Why the tool is not available.
    reason: Option<String>,
    succeeded: Option<Timestamp>,
}

impl Checked {
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.at.is_some_and(|at| now.since(at) < KEPT)
    }

    /// After a fresh answer.
    fn after(&self, now: Timestamp, reason: Option<String>) -> Self {
        let recent = self.succeeded.is_some_and(|succeeded| now.since(succeeded) < GRACE);
        match reason {
            None => Self {
                at: Some(now),
                reason: None,
                succeeded: Some(now),
            },
            // Not kept: the next caller asks again.
            Some(_) if recent => Self {
                at: None,
                reason: None,
                succeeded: self.succeeded,
            },
            reason => Self {
                at: Some(now),
                reason,
                succeeded: self.succeeded,
            },
        }
    }
}

impl Availability {
    /// Why the tool cannot be offered now, if it cannot.
    pub fn of(&self, tool: &Entry, host: &Host, now: Timestamp) -> Option<String> {
        if let Some(broken) = tool.broken() {
            return Some(broken.to_owned());
        }
        let Ok((key, is_probed)) = catch_unwind(AssertUnwindSafe(|| (tool.check_key(), tool.probe().is_some()))) else {
            return Some(FAILED.to_owned());
        };
        let key = key.as_deref().unwrap_or_else(|| tool.name());
        let known = self.known(key);
        // What is asked elsewhere stands as it was last answered.
        if known.is_fresh(now) || is_probed {
            return known.reason;
        }
        let checked = catch_unwind(AssertUnwindSafe(|| tool.unavailable(host)));
        let reason = checked.unwrap_or_else(|_| Some(FAILED.to_owned()));
        self.note(key, now, reason)
    }

    /// Takes an answer in; what is shown of it comes back.
    pub fn note(&self, key: &str, now: Timestamp, reason: Option<String>) -> Option<String> {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let known = checks.entry(key.to_owned()).or_default();
        *known = known.after(now, reason);
        known.reason.clone()
    }

    /// Whether the check has to be asked again.
    pub fn is_due(&self, key: &str, now: Timestamp) -> bool {
        !self.known(key).is_fresh(now)
    }

    /// Forgets everything.
    pub fn invalidate(&self) {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn known(&self, key: &str) -> Checked {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.get(key).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    fn failed() -> Option<String> {
        Some("no".to_owned())
    }

    #[test]
    fn an_answer_counts_for_half_a_minute() {
        let all = Availability::default();
        assert!(all.is_due("x", at(0)));
        assert_eq!(all.note("x", at(0), None), None);
        assert!(!all.is_due("x", at(29)) && all.is_due("x", at(30)));
        assert_eq!(all.note("y", at(0), failed()), failed());
        assert!(!all.is_due("y", at(29)) && all.is_due("y", at(30)));
        all.invalidate();
        assert!(all.is_due("x", at(1)));
    }

    #[test]
    fn a_failure_soon_after_a_success_is_not_believed_and_asked_again() {
        let all = Availability::default();
        all.note("x", at(0), None);
        assert_eq!(all.note("x", at(40), failed()), None);
        assert!(all.is_due("x", at(40)), "the failure was kept");
        assert_eq!(all.note("x", at(59), failed()), None);
        assert_eq!(all.note("x", at(60), failed()), failed());
        assert!(!all.is_due("x", at(80)));
        assert_eq!(all.note("x", at(90), None), None);
    }
}
