//! The end of a process tree, whatever its members did to get away.
//!
//! This process is the reaper of every descendant: when a parent dies its
//! children become ours, also after `setsid` and a double fork. So the tree is
//! gone exactly when the kernel says that we have no child left. One thread waits
//! for all of it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as Caught};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};

/// How long what a finished command left behind may take to end by itself, and then to
/// end when it is asked to; the caller waits for it.
pub(super) const LEFTOVER_GRACE: Duration = Duration::from_millis(300);
/// After the first SIGKILL. A process still there hangs inside the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(7);
/// Between two rounds of SIGKILL, against trees that fork while they die.
const KILL_ROUND: Duration = Duration::from_millis(20);

/// What the supervisor waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// The shell ended with this code.
    ShellEnded(i32),
    /// No descendant is left.
    Childless,
    /// The server asks to stop, or is gone. Told once.
    Stop,
}

/// What a child's death is told with.
pub(super) const DEATH: Caught = Caught::SIGCHLD;

/// Deaths of children, for who waits with [`Vigil`]. Their signal must be held back
/// in the thread that waits, and in no child.
pub(super) struct Deaths(SignalFd);

impl Deaths {
    pub(super) fn open() -> io::Result<Self> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self(SignalFd::with_flags(&SigSet::from_iter([DEATH]), flags)?))
    }
}

/// Waits for what becomes of a shell and all that descends from it.
pub(super) struct Vigil<'a> {
    pub(super) shell: Pid,
    pub(super) deaths: &'a Deaths,
    /// What the server says next, or its end; nothing of it is read here: once a
    /// command is over that is the next. `None` once it was told.
    pub(super) server: Option<&'a UnixStream>,
}

impl Vigil<'_> {
    /// The next thing that happens, if one does within `span`.
    pub(super) fn next(&mut self, span: Duration) -> Option<Happening> {
        let deadline = Instant::now().checked_add(span);
        loop {
            // Before each wait, so that no death is slept over.
            if let Some(happening) = self.reap() {
                return Some(happening);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return None;
            }
            if self.sleep(left) {
                self.server = None;
                return Some(Happening::Stop);
            }
        }
    }

    /// Reaps children as far as that tells something.
    fn reap(&self) -> Option<Happening> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.shell => {
                    return Some(Happening::ShellEnded(exit_code(status)));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return None,
                Err(_) => return Some(Happening::Childless),
            }
        }
    }

    /// Until a child dies, the server says something or the time is over; whether it
    /// was the server.
    fn sleep(&self, left: Option<Duration>) -> bool {
        let deaths = PollFd::new(&self.deaths.0, PollFlags::IN);
        let server = self
            .server
            .map(|server| PollFd::from_borrowed_fd(server.as_fd(), PollFlags::IN));
        let mut awaited: Vec<PollFd<'_>> = [Some(deaths), server].into_iter().flatten().collect();
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // An interrupted one is looked at like one whose time is over.
        let _ = poll(&mut awaited, left.as_ref());
        // Who died is asked of the kernel; signals that were put together tell less.
        while matches!(self.deaths.0.read_signal(), Ok(Some(_))) {}
        awaited.get(1).is_some_and(|server| !server.revents().is_empty())
    }

    /// Waits until no descendant is left, but not longer than `span`.
    pub(super) fn is_childless_within(&mut self, span: Duration) -> bool {
        let deadline = Instant::now() + span;
        loop {
            match self.next(deadline.saturating_duration_since(Instant::now())) {
                Some(Happening::Childless) => return true,
                Some(Happening::ShellEnded(_) | Happening::Stop) => {}
                None => return false,
            }
        }
    }

    /// Ends everything that descends from this process; says whether something
    /// survived even SIGKILL.
    pub(super) fn end(&mut self, grace: Duration) -> bool {
        signal_descendants(Signal::TERM);
        // A stopped process acts on SIGTERM only when it runs again.
        signal_descendants(Signal::CONT);
        if self.is_childless_within(grace) {
            return false;
        }
        let deadline = Instant::now() + KILL_PATIENCE;
        while Instant::now() < deadline {
            signal_descendants(Signal::KILL);
            if self.is_childless_within(KILL_ROUND) {
                return false;
            }
        }
        true
    }
}

fn exit_code(status: WaitStatus) -> i32 {
    status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal))
        .unwrap_or(-1)
}

/// Kills what descends from `root` now, without waiting; what it forks meanwhile
/// is missed.
pub(in crate::environment) fn kill_below(root: Pid) {
    signal_below(root, Signal::KILL);
}

fn signal_descendants(signal: Signal) {
    signal_below(getpid(), signal);
}

fn signal_below(root: Pid, signal: Signal) {
    for pid in descendants(root, &parents()) {
        // It may have ended since it was listed.
        let _ = kill_process(pid, signal);
    }
}

/// All processes under `root`, parents before their children, so that a parent
/// cannot start a new child after its old ones were dealt with.
fn descendants(root: Pid, parents: &HashMap<Pid, Vec<Pid>>) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut todo = std::collections::VecDeque::from([root]);
    while let Some(pid) = todo.pop_front() {
        for child in parents.get(&pid).into_iter().flatten() {
            found.push(*child);
            todo.push_back(*child);
        }
    }
    found
}

/// The children of every process of this machine.
fn parents() -> HashMap<Pid, Vec<Pid>> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        let Ok(stat) = fs::read(entry.path().join("stat")) else {
            continue;
        };
        if let Some(parent) = parent_of(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// The parent's id in `pid (name) state ppid …`; the name may hold anything,
/// so the fields are counted from its last parenthesis.
fn parent_of(stat: &[u8]) -> Option<Pid> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    Pid::from_raw(fields.split_ascii_whitespace().nth(1)?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    #[test]
    fn the_parent_is_found_behind_a_hostile_name() {
        assert_eq!(parent_of(b"12 (a) S 3 (b) c) S 7 12 12 0 -1"), Some(pid(7)));
        assert_eq!(parent_of(b"12 (init) S 0 1 1"), None);
        assert_eq!(parent_of(b"garbage"), None);
    }

    #[test]
    fn parents_come_before_their_children() {
        let tree = HashMap::from([
            (pid(1), vec![pid(5), pid(2)]),
            (pid(2), vec![pid(9)]),
            (pid(7), vec![pid(8)]),
        ]);
        assert_eq!(descendants(pid(1), &tree), [pid(5), pid(2), pid(9)]);
    }
}
