//! Work that a transaction finds it needs and that has no place in one: it takes
//! long, and whoever writes would wait for it. The transaction is undone, the work
//! is done on a thread that may take its time, and the transaction begins anew.
//! How often that may happen is bounded; then the work is done inside.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Rows, Scope, StoreError};

/// Times that one transaction is begun anew for such work. Each time what was found
/// before is done, so that there is a second only if the rows changed meanwhile.
pub const MOST_ASIDE: u32 = 3;

/// What a transaction does about work that takes long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongWork {
    /// There is none in it.
    #[default]
    None,
    /// It ends with [`StoreError::Aside`].
    Leave,
    /// It was begun anew often enough.
    Inside,
}

/// The work of which the result is found by who looks for it again.
#[derive(Clone)]
pub struct Aside(Arc<dyn Fn() + Send + Sync>);

impl Aside {
    pub fn new(work: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(work))
    }

    /// Does it on a thread for such work.
    pub async fn done(self) {
        let work = self.0;
        if let Err(error) = tokio::task::spawn_blocking(move || work()).await {
            tracing::warn!(%error, "what a transaction left to be done aside broke off");
        }
    }
}

impl fmt::Debug for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aside")
    }
}

impl Scope {
    /// One transaction as by [`Scope::write`], which may leave long work to be done
    /// aside: what it did until then is undone, and `work` is called again.
    pub async fn write_anew<T, F>(&self, label: &'static str, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(Rows<'c>) -> BoxFuture<'c, Result<T, StoreError>> + Clone + Send + 'static,
        T: Send + 'static,
    {
        let leaving = self.clone().long_work(LongWork::Leave);
        for _ in 0..MOST_ASIDE {
            match leaving.write(label, work.clone()).await {
                Err(StoreError::Aside(aside)) => aside.done().await,
                written => return written,
            }
        }
        self.clone().long_work(LongWork::Inside).write(label, work).await
    }
}
