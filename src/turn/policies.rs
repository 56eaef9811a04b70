//! The policies of a session's tenant, ready to judge by: read in the transaction
//! that judges, so that a change counts in turns that run, and made ready once
//! for each text: outside of the transaction, since hundreds of patterns take long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::guard::policy::{Compiled, Policy, PolicyMode};
use crate::model::policy::DEFAULT;
use crate::model::record::SessionRecord;
use crate::store::{Aside, LongWork, Rows, StoreError};

/// Policies that are kept ready; a full map starts over.
const MOST_KEPT: usize = 256;

/// By the text that they were made from.
#[derive(Clone, Default)]
pub(super) struct Ready(Arc<Mutex<HashMap<String, Arc<Compiled>>>>);

impl Ready {
    fn kept(&self, body: &str) -> Option<Arc<Compiled>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(body).cloned()
    }

    fn made(&self, body: &str) -> Arc<Compiled> {
        if let Some(made) = self.kept(body) {
            return made;
        }
        let policy = serde_json::from_str::<Policy>(body).ok();
        // It was checked when it was written; one that cannot be read any more
        // must not allow what it forbade.
        let made = policy
            .and_then(|policy| policy.compile().ok())
            .unwrap_or_else(asks_always);
        let made = Arc::new(made);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if MOST_KEPT <= kept.len() {
            kept.clear();
        }
        kept.insert(body.to_owned(), Arc::clone(&made));
        made
    }

    /// The tenant's policies for a session: that of all, and the one it names.
    pub(super) async fn of(
        &self,
        rows: &mut Rows<'_>,
        session: &SessionRecord,
    ) -> Result<Vec<Arc<Compiled>>, StoreError> {
        let found = rows.policy_bodies(DEFAULT, named(session)).await?;
        self.among(session, &found, rows.long_work())
    }

    /// The same, where both were read: names and texts.
    pub(super) fn among(
        &self,
        session: &SessionRecord,
        found: &[(String, String)],
        long_work: LongWork,
    ) -> Result<Vec<Arc<Compiled>>, StoreError> {
        let unknown = found.iter().filter(|(_, body)| self.kept(body).is_none());
        let unknown: Vec<String> = unknown.map(|(_, body)| body.clone()).collect();
        if long_work == LongWork::Leave && !unknown.is_empty() {
            let ready = self.clone();
            return Err(StoreError::Aside(Aside::new(move || {
                for body in &unknown {
                    ready.made(body);
                }
            })));
        }
        let named = named(session);
        let mut made: Vec<Arc<Compiled>> = found.iter().map(|(_, body)| self.made(body)).collect();
        if named != DEFAULT && !found.iter().any(|(name, _)| name == named) {
            made.push(Arc::new(asks_always()));
        }
        Ok(made)
    }
}

/// The policy that a session names beside that of all.
pub(super) fn named(session: &SessionRecord) -> &str {
    session.approvals.policy.as_deref().unwrap_or(DEFAULT)
}

/// What stands in for a policy that is not there.
fn asks_always() -> Compiled {
    let policy = Policy {
        mode: PolicyMode::Allowlist,
        ..Policy::default()
    };
    policy.compile().unwrap_or_default()
}
