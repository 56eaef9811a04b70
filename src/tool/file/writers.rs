//! One writer at a time for each file, within this process: sessions that share a
//! workspace, as delegated work does, may write the same one. Who comes second
//! reads what the first left. Nothing is kept of files that nobody writes.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::target::{error, told};
use crate::tool::{Call, Done};

/// Files that are written now, or waited for. As many as there are calls.
#[derive(Clone, Debug, Default)]
pub(in crate::tool) struct Writers(Arc<Mutex<HashMap<PathBuf, Arc<Semaphore>>>>);

/// The files are this call's until it is dropped.
pub(super) struct Turn {
    writers: Writers,
    paths: BTreeSet<PathBuf>,
    held: Vec<OwnedSemaphorePermit>,
}

/// Waits until nobody else writes the files of a call; what is told of one that is
/// stopped meanwhile.
pub(super) async fn turn(call: &Call, paths: &[&str]) -> Result<Turn, Done> {
    let root = call.host.workspace_path(call.tenant_id, call.session_id);
    let named: Vec<PathBuf> = paths.iter().map(|path| told(path, &call.cwd, &root)).collect();
    // Two names of one file are one file.
    let real = tokio::task::spawn_blocking(move || {
        let real = named.into_iter().map(|path| path.canonicalize().unwrap_or(path));
        real.collect::<BTreeSet<_>>()
    });
    let paths = real.await.unwrap_or_default();
    let writers = call.host.writers().clone();
    tokio::select! {
        turn = writers.hold(paths) => Ok(turn),
        () = call.cancel.cancelled() => Err(Done {
            cancelled: true,
            ..Done::failure(error("the call was stopped before anything was written").to_string())
        }),
    }
}

impl Writers {
    /// In their order, so that two that want the same do not wait for each other.
    async fn hold(self, paths: BTreeSet<PathBuf>) -> Turn {
        let mut turn = Turn {
            writers: self,
            paths,
            held: Vec::new(),
        };
        let places: Vec<Arc<Semaphore>> = {
            let mut all = turn.writers.all();
            let place =
                |path: &PathBuf| Arc::clone(all.entry(path.clone()).or_insert_with(|| Arc::new(Semaphore::new(1))));
            turn.paths.iter().map(place).collect()
        };
        for place in places {
            // None is ever closed.
            turn.held.extend(place.acquire_owned().await.ok());
        }
        turn
    }

    /// Nothing of others runs under it.
    fn all(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<Semaphore>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut all = self.writers.all();
        self.held.clear();
        for path in &self.paths {
            // Whoever waits has one too.
            if all.get(path).is_some_and(|place| Arc::strong_count(place) == 1) {
                all.remove(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn paths(names: &[&str]) -> BTreeSet<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[tokio::test]
    async fn one_file_has_one_writer_and_nothing_is_kept_of_those_that_are_done() {
        let writers = Writers::default();
        let first = writers.clone().hold(paths(&["a", "b"])).await;
        assert!(writers.clone().hold(paths(&["c"])).now_or_never().is_some());
        let mut second = Box::pin(writers.clone().hold(paths(&["b", "d"])));
        assert!(futures::poll!(&mut second).is_pending());
        let mut given_up = Box::pin(writers.clone().hold(paths(&["a"])));
        assert!(futures::poll!(&mut given_up).is_pending());
        drop(given_up);
        drop(first);
        let second = second.await;
        assert_eq!(writers.all().len(), 2, "those of the second");
        drop(second);
        assert!(writers.all().is_empty());
    }

    #[tokio::test]
    async fn two_that_want_the_same_in_another_order_do_not_wait_for_each_other() {
        let writers = Writers::default();
        let both = (0..50).map(|number| {
            let names = if number % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
            let writers = writers.clone();
            async move {
                let turn = writers.hold(paths(&names)).await;
                tokio::task::yield_now().await;
                drop(turn);
            }
        });
        futures::future::join_all(both).await;
        assert!(writers.all().is_empty());
    }
}
