//! Public keys at an address. They are read with the first token and held; a
//! fetch is made once for all who need it, never twice in a few seconds, and one
//! that fails leaves the keys as they were.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio_util::task::TaskTracker;
use url::Url;

use crate::base::Timestamp;
use crate::fetch::{Documents, FetchError};

use super::jwks::{JwksError, Key, parse};

/// Between two fetches, whatever tokens name: strangers must not be able to make
/// us ask the issuer as often as they ask us.
const PAUSE: Duration = Duration::from_secs(10);
/// The longest that a request waits for the issuer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Key sets of large issuers have some ten kilobytes.
const MOST_BYTES: usize = 512 * 1024;

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Set(#[from] JwksError),
}

/// A cheap handle; clones are the same key set.
#[derive(Clone)]
pub(super) struct JwksUrl(Arc<Inner>);

struct Inner {
    url: Url,
    ttl: Duration,
    documents: Documents,
    tasks: TaskTracker,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    keys: Arc<[Key]>,
    fetched_at: Option<Timestamp>,
    tried_at: Option<Timestamp>,
    /// The fetch under way, or the last one.
    flight: Option<Flight>,
}

type Flight = Shared<BoxFuture<'static, ()>>;

impl JwksUrl {
    pub(super) fn new(url: Url, ttl: Duration, tasks: TaskTracker) -> Result<Self, JwksError> {
        Ok(Self(Arc::new(Inner {
            url,
            ttl,
            documents: Documents::new().map_err(|error| JwksError::Client(Box::new(error)))?,
            tasks,
            held: Mutex::default(),
        })))
    }

    /// The keys. Who has some goes on with them while newer ones are fetched.
    pub(super) async fn keys(&self, now: Timestamp) -> Arc<[Key]> {
        let (keys, stale) = {
            let held = self.held();
            let stale = held.fetched_at.is_none_or(|at| self.0.ttl <= now.since(at));
            (Arc::clone(&held.keys), stale)
        };
        if !stale {
            return keys;
        }
        match self.flight(now) {
            Some(flight) if keys.is_empty() => {
                flight.await;
                Arc::clone(&self.held().keys)
            }
            _ => keys,
        }
    }

    /// The keys after a fetch; `None` when it is too soon for one.
    pub(super) async fn newer_keys(&self, now: Timestamp) -> Option<Arc<[Key]>> {
        self.flight(now)?.await;
        Some(Arc::clone(&self.held().keys))
    }

    /// The fetch under way, or a new one if it is time.
    fn flight(&self, now: Timestamp) -> Option<Flight> {
        let mut held = self.held();
        if let Some(flight) = held.flight.as_ref().filter(|flight| flight.peek().is_none()) {
            return Some(flight.clone());
        }
        if held.tried_at.is_some_and(|at| now.since(at) < PAUSE) {
            return None;
        }
        held.tried_at = Some(now);
        let this = self.clone();
        let flight = async move { this.fetch(now).await }.boxed().shared();
        held.flight = Some(flight.clone());
        // It goes on when those who wait for it leave.
        self.0.tasks.spawn(flight.clone());
        Some(flight)
    }

    async fn fetch(&self, now: Timestamp) {
        match self.read().await {
            Ok(keys) => {
                let mut held = self.held();
                held.keys = keys.into();
                held.fetched_at = Some(now);
            }
            Err(error) => tracing::warn!(%error, "the key set was not renewed; the keys that are known stay in force"),
        }
    }

    async fn read(&self) -> Result<Vec<Key>, Failed> {
        let text = self.0.documents.get(&self.0.url, MOST_BYTES, PATIENCE).await?;
        Ok(parse(self.0.url.as_str(), &text)?)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing of others runs under it, and each change is whole.
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
