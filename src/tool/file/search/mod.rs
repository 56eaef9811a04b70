//! Looking through the files of a workspace: which are there, and which lines
//! of them match. Ripgrep's rules of what is left out, and its searcher; the tree
//! is walked by open directories, so that no link leads out of the workspace.
//!
//! Bounded: threads, the lines kept, the length of a line, the time.

pub(super) mod content;
pub(super) mod names;
mod rules;
pub(super) mod walk;

pub(super) use rules::Wanted;

use std::time::Instant;

use tokio_util::sync::CancellationToken;

/// The page of results that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) offset: usize,
    pub(super) limit: usize,
}

impl Window {
    /// How many of the first results have to be known.
    pub(super) fn end(self) -> usize {
        self.offset.saturating_add(self.limit)
    }
}

/// When a search ends before it is through.
pub(super) struct Leash {
    pub(super) deadline: Instant,
    pub(super) cancel: CancellationToken,
}

impl Leash {
    pub(super) fn is_taut(&self) -> bool {
        self.cancel.is_cancelled() || self.deadline <= Instant::now()
    }
}
