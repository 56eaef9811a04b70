//! Every file of a tree, by several threads: each takes a directory or a handful
//! of files from a common heap and puts back the directories that it finds.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::Leash;
use super::rules::{Rules, Wanted};
use crate::environment::{Directory, EntryKind};

/// Searches of several sessions share the machine.
const MAX_THREADS: usize = 4;
/// Files that one thread takes at a time.
const HANDFUL: usize = 64;
/// Deeper trees are loops in all but name.
const MAX_DEPTH: usize = 256;

/// A file that was found.
pub(in crate::tool::file) struct Found<'a> {
    pub(super) directory: &'a Directory,
    pub(super) name: &'a Path,
    /// From the directory that is searched.
    pub(super) relative: &'a Path,
    /// Links resolved.
    pub(super) path: &'a Path,
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
        relative: PathBuf,
        names: Vec<OsString>,
    },
}

/// Work that is left, and how many threads are at some.
struct Heap {
    jobs: VecDeque<Job>,
    busy: usize,
}

struct Walk<'t> {
    tree: &'t Tree,
    leash: &'t Leash,
    heap: Mutex<Heap>,
    changed: Condvar,
    unreadable: AtomicUsize,
}

/// Calls `visit` for every file, each thread with its own value of `make`; gives
/// these values back, and how many directories could not be read. Blocks.
pub(in crate::tool::file) fn walk<V: Send>(
    tree: &Tree,
    leash: &Leash,
    make: impl Fn() -> V + Sync,
    visit: impl Fn(&mut V, &Found<'_>) + Sync,
) -> (Vec<V>, usize) {
    let rules = tree.above.iter().fold(Arc::<Rules>::default(), |rules, directory| {
        Rules::within(&rules, directory, &directory.entries().unwrap_or_default())
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
            jobs: VecDeque::from([first]),
            busy: 0,
        }),
        changed: Condvar::new(),
        unreadable: AtomicUsize::new(0),
    };
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS);
    let work = || {
        let mut value = make();
        while let Some(job) = walk.take() {
            walk.carry_out(job, &mut value, &visit);
            walk.release();
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
    fn take(&self) -> Option<Job> {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.leash.is_taut() {
                heap.jobs.clear();
                self.changed.notify_all();
                return None;
            }
            if let Some(job) = heap.jobs.pop_back() {
                heap.busy += 1;
                return Some(job);
            }
            if heap.busy == 0 {
                self.changed.notify_all();
                return None;
            }
            heap = self.changed.wait(heap).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn release(&self) {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        heap.busy -= 1;
        drop(heap);
        self.changed.notify_all();
    }

    fn put(&self, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        heap.jobs.extend(jobs);
        drop(heap);
        self.changed.notify_all();
    }

    fn carry_out<V>(&self, job: Job, value: &mut V, visit: &impl Fn(&mut V, &Found<'_>)) {
        match job {
            Job::Directory { relative, rules, depth } => {
                let Ok(directory) = self.tree.root.directory(&relative) else {
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                    return;
                };
                let (jobs, names) = self.sort(&directory, &relative, &rules, depth);
                self.put(jobs);
                let directory = Arc::new(directory);
                let mut handfuls = names.chunks(HANDFUL);
                let own = handfuls.next().unwrap_or_default();
                let others = handfuls.map(|names| Job::Files {
                    directory: Arc::clone(&directory),
                    relative: relative.clone(),
                    names: names.to_vec(),
                });
                self.put(others.collect());
                self.visit(&directory, &relative, own, value, visit);
            }
            Job::Files {
                directory,
                relative,
                names,
            } => self.visit(&directory, &relative, &names, value, visit),
        }
    }

    /// The directories in a directory as jobs, and the files that are wanted.
    fn sort(
        &self,
        directory: &Directory,
        relative: &Path,
        rules: &Arc<Rules>,
        depth: usize,
    ) -> (Vec<Job>, Vec<OsString>) {
        let Ok(entries) = directory.entries() else {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
            return (Vec::new(), Vec::new());
        };
        let rules = Rules::within(rules, directory, &entries);
        let (mut jobs, mut names) = (Vec::new(), Vec::new());
        for entry in entries {
            let is_directory = match entry.kind {
                EntryKind::Directory => true,
                EntryKind::File => false,
                EntryKind::Link | EntryKind::Other => continue,
            };
            let path = directory.path().join(&entry.name);
            match rules.ignores(&path, is_directory) {
                Some(true) => continue,
                None if self.tree.wanted.hides(&entry.name) => continue,
                Some(false) | None => {}
            }
            if !is_directory {
                if self.tree.wanted.takes(&path) {
                    names.push(entry.name);
                }
            } else if depth < MAX_DEPTH {
                jobs.push(Job::Directory {
                    relative: relative.join(&entry.name),
                    rules: Arc::clone(&rules),
                    depth: depth + 1,
                });
            } else {
                self.unreadable.fetch_add(1, Ordering::Relaxed);
            }
        }
        (jobs, names)
    }

    fn visit<V>(
        &self,
        directory: &Directory,
        relative: &Path,
        names: &[OsString],
        value: &mut V,
        visit: &impl Fn(&mut V, &Found<'_>),
    ) {
        for name in names {
            if self.leash.is_taut() {
                return;
            }
            let found = Found {
                directory,
                name: Path::new(name),
                relative: &relative.join(name),
                path: &directory.path().join(name),
            };
            visit(value, &found);
        }
    }
}
