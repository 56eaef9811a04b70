//! The window through which tests see every commit of the product before it
//! happens, and decide how it ends. Production runs without one.

use std::sync::Arc;

/// Asked once for each transaction whose work succeeded, just before COMMIT,
/// with the label of the write.
pub type Probe = Arc<dyn Fn(&'static str) -> Fate + Send + Sync>;

/// How the commit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// As if nobody looked.
    Go,
    /// Undone, and reported as unavailable.
    FailBefore,
    /// Undone, but the writer is told that nobody knows.
    UnclearRolledBack,
    /// Done, but the writer is told that nobody knows.
    UnclearCommitted,
}
