//! A shell that was started before its script was known, for the next of several
//! commands: confined like any other, it waits at the pipe its script comes through.
//! What it was started in is compared with what is there when the script comes; where
//! anything differs it runs nothing, and the server starts another.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, Stat, fstat, open, stat};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid};

use super::confine::Walls;
use super::description::{Confinement, Description, Go, Report, order};
use super::shell::{Started, nearest};
use super::tell;
use crate::environment::visible::{DEVICES, MACHINE, READABLE, SYSTEM};

/// What was looked at longer ago is not relied on, and a process without work leaves.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// What a shell was started in ahead, for the next one that is to stand in the same
/// place behind the same walls: made once, and compared each time a script comes.
pub(super) struct Standing {
    confinement: Confinement,
    cwd: PathBuf,
    pub(super) ground: Ground,
    pub(super) walls: Option<Walls>,
}

impl Standing {
    pub(super) fn new(description: &Description, ground: Ground, walls: Option<Walls>) -> Self {
        Self {
            confinement: description.confinement.clone(),
            cwd: description.cwd.clone(),
            ground,
            walls,
        }
    }

    pub(super) fn suits(&self, description: &Description) -> bool {
        description.held && self.confinement == description.confinement && self.cwd == description.cwd
    }
}

/// What the walls and the shell's directory are made of. It is kept open, so that
/// nothing else can get its number meanwhile.
pub(super) struct Ground(Vec<Option<(OwnedFd, Stat)>>);

impl Ground {
    pub(super) fn of(description: &Description) -> Self {
        Self(with_paths(description, |path| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let file = open(path, flags, Mode::empty()).ok()?;
            let stat = fstat(&file).ok()?;
            Some((file, stat))
        }))
    }

    fn is_still(&self, description: &Description) -> bool {
        let now = with_paths(description, |path| stat(path).ok());
        let before = self.0.iter().map(|found| found.as_ref().map(|(_, stat)| named(stat)));
        before.eq(now.iter().map(|found| found.as_ref().map(named)))
    }
}

/// Which file it is, and who may use it.
fn named(stat: &Stat) -> (u64, u64, u32, u32, u32) {
    (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_uid, stat.st_gid)
}

fn with_paths<T>(description: &Description, look: impl Fn(&Path) -> T) -> Vec<T> {
    let confinement = &description.confinement;
    let directory = nearest(description);
    let own = confinement.writable.iter().chain(&confinement.readable);
    let own = own.chain([&directory]).map(AsRef::as_ref);
    let machine = SYSTEM
        .iter()
        .chain(READABLE)
        .chain(MACHINE)
        .chain(DEVICES)
        .map(Path::new);
    own.chain(machine).map(look).collect()
}

/// Waits for the script and lets the shell run it; how long it may take comes
/// back. `None`: nothing ran, and the shell is gone.
pub(super) fn until_go(
    server: &mut UnixStream,
    description: &Description,
    started: &mut Started,
    ground: &Ground,
) -> Option<Duration> {
    let limit = wait(server).and_then(|go| {
        let is_same = waits(started.pid) && ground.is_still(description);
        // A process of the same user may have stopped it.
        let _ = kill_process_group(started.pid, Signal::CONT);
        let gone = is_same.then(|| started.let_go(&go.script).ok()).flatten();
        gone.map(|()| Duration::from_millis(go.timeout_ms))
    });
    if limit.is_none() {
        // It has read nothing, so it has no children.
        let _ = kill_process_group(started.pid, Signal::KILL);
        let _ = waitpid(Some(started.pid), WaitOptions::empty());
        drop(tell(server, &Report::Spoiled));
    }
    limit
}

/// The script, if it comes in time; the server may be gone, or want it no more.
fn wait(server: &mut UnixStream) -> Option<Go> {
    server.set_read_timeout(Some(PATIENCE)).ok()?;
    let go = order(server).ok()?;
    // From here on the socket only ends.
    server.set_read_timeout(None).ok()?;
    Some(go)
}

fn waits(shell: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(shell), options), Ok(None))
}
