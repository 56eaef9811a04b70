//! Files by name: the newest of them, and how many there are in all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use super::walk::{Tree, walk};
use super::{Leash, Window};

/// What was found.
#[derive(Debug, Default)]
pub(in crate::tool::file) struct Names {
    /// The newest first, up to the end of the window.
    pub(in crate::tool::file) newest: Vec<PathBuf>,
    pub(in crate::tool::file) total: usize,
    pub(in crate::tool::file) unread: usize,
    pub(in crate::tool::file) is_cut: bool,
}

/// Time of change, then the earlier name; the least of them goes first.
type Oldest = Reverse<(i64, Reverse<PathBuf>)>;

/// Every file beneath a directory that is wanted. Blocks.
pub(in crate::tool::file) fn names(tree: &Tree, window: Window, leash: &Leash) -> Names {
    let make = || (BinaryHeap::<Oldest>::new(), 0_usize);
    let (parts, unread) = walk(tree, leash, make, |(newest, total), files| {
        *total += files.names.len();
        for name in files.names {
            let at = files.directory.state(name).map_or(0, |(_, at)| at);
            let is_late =
                newest.len() < window.end() || newest.peek().is_some_and(|Reverse((oldest, _))| *oldest <= at);
            if is_late {
                newest.push(Reverse((at, Reverse(files.relative.join(name)))));
            }
            while window.end() < newest.len() {
                newest.pop();
            }
        }
    });
    let total = parts.iter().map(|(_, total)| total).sum();
    let mut all: Vec<Oldest> = parts.into_iter().flat_map(|(newest, _)| newest).collect();
    all.sort();
    all.truncate(window.end());
    Names {
        newest: all.into_iter().map(|Reverse((_, Reverse(path)))| path).collect(),
        total,
        unread,
        is_cut: leash.is_taut(),
    }
}
