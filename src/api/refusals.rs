//! Keys that are shown after their end. Whoever does so again and again is told
//! of in the audit trail now and then, and never more often than that: a refusal
//! must not cost more than the request that it answers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing::Instrument;

use crate::base::Timestamp;
use crate::model::audit::{AuditAction, Audited};
use crate::model::id::KeyId;
use crate::store::keys::KeyRecord;

use super::state::ApiState;

/// Between two entries about one key.
const PAUSE: Duration = Duration::from_secs(60);
/// Keys that are remembered; more are not told of until others are forgotten.
const MOST: usize = 1_000;

/// When each key was last told of.
#[derive(Default)]
pub struct Refusals(Mutex<HashMap<KeyId, Timestamp>>);

impl Refusals {
    /// Whether this one is to be told.
    fn is_due(&self, key: KeyId, now: Timestamp) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if MOST <= told.len() {
            told.retain(|_, at| now.since(*at) < PAUSE);
        }
        let again = told.get(&key).is_none_or(|at| PAUSE <= now.since(*at));
        let due = again && (told.contains_key(&key) || told.len() < MOST);
        if due {
            told.insert(key, now);
        }
        due
    }
}

/// Tells of a refused key, beside the request.
pub(super) fn note(state: &ApiState, key: &KeyRecord) {
    let now = state.clock().now();
    if !state.access.refusals.is_due(key.key_id, now) {
        return;
    }
    let refused = Audited {
        target_key_id: Some(key.key_id),
        ..Audited::new(AuditAction::KeyRefused, &key.user_id)
    };
    let scope = state.store.scope(key.tenant_id);
    let told = async move {
        let written = scope.write("key.refused", move |mut rows| {
            Box::pin(async move { rows.audit(&[refused], now).await })
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "a refused key is missing in the audit trail");
        }
    };
    state.tasks.spawn(told.in_current_span());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;

    #[test]
    fn a_key_is_told_of_once_a_minute_and_only_so_many_are() {
        let refusals = Refusals::default();
        let key = Id::from_bits(1);
        assert!(refusals.is_due(key, Timestamp(0)));
        assert!(!refusals.is_due(key, Timestamp(59_999)));
        assert!(refusals.is_due(key, Timestamp(60_000)));
        for number in 2..=1_000 {
            assert!(refusals.is_due(Id::from_bits(number), Timestamp(60_000)));
        }
        assert!(!refusals.is_due(Id::from_bits(2_000), Timestamp(60_000)));
        assert!(
            refusals.is_due(Id::from_bits(2_000), Timestamp(120_000)),
            "the others are forgotten"
        );
    }
}
