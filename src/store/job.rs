//! One write on its way through the commit path: the work, where its value is
//! kept until the COMMIT, and where the verdict goes. A job that panics or
//! takes too long fails like any other; it cannot stop the path.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::{Bell, Conn, Fate, Probe, StoreError};

/// No step of the product needs a tenth of this; it ends what hangs.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

type Verdict = Result<(), StoreError>;
type Work = Box<dyn for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Verdict> + Send>;

/// What every commit meets, on both databases.
#[derive(Clone)]
pub(super) struct Hooks {
    pub(super) probe: Option<Probe>,
    pub(super) bell: Bell,
    /// COMMITs that reached the database.
    pub(super) commits: Arc<AtomicU64>,
    /// Questions that a database beyond a network was asked.
    pub(super) trips: Arc<AtomicU64>,
}

/// A write that waits for its turn.
pub(super) struct Job {
    pub(super) label: &'static str,
    work: Work,
    verdict: oneshot::Sender<Verdict>,
}

/// The waiting end of a job.
pub(super) struct Answer<T> {
    verdict: oneshot::Receiver<Verdict>,
    value: oneshot::Receiver<T>,
}

impl Job {
    pub(super) fn new<T, F>(label: &'static str, work: F) -> (Self, Answer<T>)
    where
        F: for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        let (verdict, told) = oneshot::channel();
        let (keep, kept) = oneshot::channel();
        let work: Work = Box::new(move |conn| {
            Box::pin(async move {
                let value = work(conn).await?;
                // A caller that stopped waiting does not need the value.
                let _unheard = keep.send(value);
                Ok(())
            })
        });
        (
            Self { label, work, verdict },
            Answer {
                verdict: told,
                value: kept,
            },
        )
    }

    /// Does the work and asks the probe. `Err` means: undo it, and tell so.
    pub(super) async fn attempt(self, conn: &mut Conn, probe: Option<&Probe>) -> Attempt {
        let Self { label, work, verdict } = self;
        let caught = AssertUnwindSafe(bounded(async { work(conn).await }))
            .catch_unwind()
            .await;
        let outcome = caught.unwrap_or_else(|_| Err(StoreError::bug("the work of a transaction panicked")));
        let failed = conn.take_failed();
        let outcome = match outcome {
            Ok(()) if failed => Err(StoreError::bug("a statement failed and its transaction went on")),
            other => other,
        };
        let fate = match outcome {
            Ok(()) => Ok(probe.map_or(Fate::Go, |probe| probe(label))),
            Err(error) => Err(error),
        };
        Attempt {
            fate,
            verdict: Settle(verdict),
        }
    }

    pub(super) fn refuse(self, error: StoreError) {
        Settle(self.verdict).tell(Err(error));
    }
}

/// A job whose work is over and whose commit is not.
pub(super) struct Attempt {
    pub(super) fate: Result<Fate, StoreError>,
    pub(super) verdict: Settle,
}

/// Where the verdict of one job goes.
pub(super) struct Settle(oneshot::Sender<Verdict>);

impl Settle {
    pub(super) fn tell(self, verdict: Verdict) {
        // A caller that stopped waiting is told nothing.
        let _unheard = self.0.send(verdict);
    }
}

impl<T> Answer<T> {
    pub(super) async fn wait(self) -> Result<T, StoreError> {
        // The path answers every job it accepted; if it died, nobody knows.
        self.verdict
            .await
            .unwrap_or_else(|_| Err(StoreError::unclear("the commit path ended")))?;
        self.value
            .await
            .map_err(|_| StoreError::bug("a transaction without a value"))
    }
}

/// The work, ended when it takes too long.
pub(super) async fn bounded<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = |_| {
        Err(StoreError::Unavailable(Arc::new(std::io::Error::from(
            std::io::ErrorKind::TimedOut,
        ))))
    };
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(late)
}
