//! Every file of a tree, by several threads: each takes a directory or a handful
//! of files from a common heap and puts back the directories that it finds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::Leash;
use super::rules::{Rules, Wanted};
use crate::environment::{Directory, EntryKind, Named};

/// Searches of several sessions share the machine.
const MAX_THREADS: usize = 4;
/// Files that one thread takes at a time, and between two looks at the clock.
const HANDFUL: usize = 64;
/// Deeper trees are loops in all but name.
const MAX_DEPTH: usize = 256;

/// Files of one directory that were found.
pub(in crate::tool::file) struct Handful<'a> {
    pub(super) directory: &'a Directory,
    /// From the directory that is searched to the files'.
    pub(super) relative: &'a Path,
    pub(super) names: &'a [OsString],
}

/// What a search looks at.
pub(in crate::tool::file) struct Tree {
    /// Searched.
    pub(in crate::tool::file) root: Directory,
    /// Above it, down from the workspace's own: their ignore files count too.
    pub(in crate::tool::file) above: Vec<Directory>,
    pub(in crate::tool::file) wanted: Wanted,
}

enum Job {
    Directory {
        relative: PathBuf,
        rules: Arc<Rules>,
        depth: usize,
    },
    Files {
        directory: Arc<Directory>,
        relative: Arc<Path>,
        names: Vec<OsString>,
    },
}

/// Work that is left, how many threads are at some, and how many want some.
struct Heap {
    jobs: Vec<Job>,
    busy: usize,
    waiting: usize,
}

struct Walk<'t> {
    tree: &'t Tree,
    leash: &'t Leash,
    heap: Mutex<Heap>,
    changed: Condvar,
    unreadable: AtomicUsize,
}

/// Calls `visit` for all files, a handful at a time, each thread with its own
/// value of `make`; gives these values back, and how many directories could not
/// be read. Blocks.
pub(in crate::tool::file) fn walk<V: Send>(
    tree: &Tree,
    leash: &Leash,
    make: impl Fn() -> V + Sync,
    visit: impl Fn(&mut V, &Handful<'_>) + Sync,
) -> (Vec<V>, usize) {
    let above = tree.above.iter();
    let rules = above.fold(Arc::<Rules>::default(), |rules, directory| {
        Rules::within(&rules, directory)
    });
    let first = Job::Directory {
        relative: PathBuf::new(),
        rules,
        depth: 0,
    };
    let walk = Walk {
        tree,
        leash,
        heap: Mutex::new(Heap {
            jobs: vec![first],
            busy: 0,
            waiting: 0,
        }),
        changed: Condvar::new(),
        unreadable: AtomicUsize::new(0),
    };
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS);
    let work = || {
        let mut value = make();
        let mut was_busy = false;
        while let Some(job) = walk.take(was_busy) {
            walk.carry_out(job, &mut value, &visit);
            was_busy = true;
        }
        value
    };
    let values = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut values = vec![work()];
        values.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
        values
    });
    (values, walk.unreadable.load(Ordering::Relaxed))
}

impl Walk<'_> {
    /// The next job; none when all is done or the time is over.
    fn take(&self, was_busy: bool) -> Option<Job> {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        heap.busy -= usize::from(was_busy);
        loop {
            if self.leash.is_taut() {
                heap.jobs.clear();
            } else if let Some(job) = heap.jobs.pop() {
                heap.busy += 1;
                return Some(job);
            }
            if heap.busy == 0 || self.leash.is_taut() {
                self.changed.notify_all();
                return None;
            }
            heap.waiting += 1;
            heap = self.changed.wait(heap).unwrap_or_else(PoisonError::into_inner);
            heap.waiting -= 1;
        }
    }

    fn put(&self, job: Job) {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        heap.jobs.push(job);
        let is_wanted = 0 < heap.waiting;
        drop(heap);
        if is_wanted {
            self.changed.notify_one();
        }
    }

    fn carry_out<V>(&self, job: Job, value: &mut V, visit: &impl Fn(&mut V, &Handful<'_>)) {
        let (directory, relative, names) = match job {
            Job::Directory { relative, rules, depth } => {
                let Ok(directory) = self.tree.root.directory(&relative) else {
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                    return;
                };
                let (directory, relative) = (Arc::new(directory), Arc::from(relative));
                let names = self.sort(&directory, &relative, &rules, depth);
                (directory, relative, names)
            }
            Job::Files {
                directory,
                relative,
                names,
            } => (directory, relative, names),
        };
        let handful = Handful {
            directory: &directory,
            relative: &relative,
            names: &names,
        };
        visit(value, &handful);
    }

    /// Makes jobs of what is in a directory while it is listed, so that nobody
    /// waits for a long list; gives back the files that are left at its end.
    fn sort(
        &self,
        directory: &Arc<Directory>,
        relative: &Arc<Path>,
        rules: &Arc<Rules>,
        depth: usize,
    ) -> Vec<OsString> {
        let mut names = Vec::new();
        let Ok(entries) = directory.listed() else {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
            return names;
        };
        let rules = Rules::within(rules, directory);
        for entry in entries {
            let Ok(entry) = entry else {
                self.unreadable.fetch_add(1, Ordering::Relaxed);
                break;
            };
            if !self.wants(directory, &rules, &entry) {
                continue;
            }
            if entry.kind == EntryKind::File {
                if names.len() == HANDFUL {
                    self.put(Job::Files {
                        directory: Arc::clone(directory),
                        relative: Arc::clone(relative),
                        names: std::mem::take(&mut names),
                    });
                    if self.leash.is_taut() {
                        break;
                    }
                }
                names.push(entry.name);
            } else if depth < MAX_DEPTH {
                self.put(Job::Directory {
                    relative: relative.join(&entry.name),
                    rules: Arc::clone(&rules),
                    depth: depth + 1,
                });
            } else {
                self.unreadable.fetch_add(1, Ordering::Relaxed);
            }
        }
        names
    }

    /// Whether a search goes into a directory, or looks at a file.
    fn wants(&self, directory: &Directory, rules: &Rules, entry: &Named) -> bool {
        let is_directory = match entry.kind {
            EntryKind::Directory => true,
            EntryKind::File => false,
            EntryKind::Link | EntryKind::Other => return false,
        };
        let wanted = &self.tree.wanted;
        let by_name_alone = !rules.say_something() && (is_directory || wanted.takes_all());
        if by_name_alone {
            return !wanted.hides(&entry.name);
        }
        let path = directory.path().join(&entry.name);
        match rules.ignores(&path, is_directory) {
            Some(true) => false,
            None if wanted.hides(&entry.name) => false,
            Some(false) | None => is_directory || wanted.takes(&path),
        }
    }
}
