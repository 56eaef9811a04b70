//! Work that takes long enough to be felt by others: done aside, so that the
//! tasks which share the thread go on elsewhere meanwhile.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Does the work here; when it is `long` and other tasks share the thread,
/// they are moved to another one first.
pub fn work<T>(long: bool, work: impl FnOnce() -> T) -> T {
    let shared = || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if long && shared() { block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::work;

    #[test]
    fn work_is_done_without_a_runtime_and_on_one_thread() {
        assert_eq!(work(true, || 1), 1);
        let single = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(single.block_on(async { work(true, || 2) }), 2);
    }

    /// The only worker is busy with the long work, and the neighbour ends all
    /// the same: else the work would wait for it without end.
    #[test]
    fn a_neighbour_goes_on_beside_long_work() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let (done, wait) = mpsc::channel();
        let seen = runtime.block_on(async {
            tokio::spawn(async move {
                tokio::spawn(async move { done.send(()) });
                work(true, || wait.recv_timeout(Duration::from_secs(20)).is_ok())
            })
            .await
        });
        assert!(seen.unwrap());
    }
}
