//! Bubblewrap around the `exec` process: spaces of its own for mounts, processes,
//! messages, names and, where the network is closed, for the network.
//!
//! It is one more wall, not another way: inside, the process confines the
//! command as it always does. What is mounted is what `visible` names, so both
//! mechanisms show the same machine.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::exec::description::Confinement;
use super::visible::{MACHINE, READABLE, SYSTEM, is_public};

const PROGRAMS: &[&str] = &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];

/// Where the server's binary appears inside.
const INSIDE: &str = "/run/hermes-exec";

/// The installed program, if any.
pub(super) fn find() -> Option<PathBuf> {
    PROGRAMS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// The arguments that lead to `program exec` inside. They hold paths only, since
/// other processes can read them. The process ends by itself when the server
/// dies, and the kernel ends whatever it might leave behind.
pub(super) fn arguments(program: &Path, confinement: &Confinement) -> Vec<OsString> {
    let mut list = Arguments::default();
    list.add([
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]);
    if !confinement.network {
        list.add(["--unshare-net"]);
    }
    let public = READABLE.iter().map(Path::new).filter(|path| is_public(path));
    for path in SYSTEM.iter().map(Path::new).chain(public) {
        list.mount("--ro-bind-try", path, path);
    }
    list.add([
        "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm",
    ]);
    for path in MACHINE.iter().map(Path::new).filter(|path| path.starts_with("/sys")) {
        list.mount("--ro-bind-try", path, path);
    }
    match confinement.writable.get(1) {
        // The session's temporary directory, under the name that scripts assume.
        Some(tmp) if !tmp.starts_with("/tmp") => list.mount("--bind", tmp, Path::new("/tmp")),
        // Mounting the workspace below would leave marks in that directory.
        _ => list.add(["--perms", "1777", "--tmpfs", "/tmp"]),
    }
    for path in &confinement.readable {
        list.mount("--ro-bind-try", path, path);
    }
    for path in &confinement.writable {
        list.mount("--bind", path, path);
    }
    list.mount("--ro-bind", program, Path::new(INSIDE));
    list.add(["--chdir", "/", "--", INSIDE]);
    list.words
}

#[derive(Default)]
struct Arguments {
    words: Vec<OsString>,
    made: BTreeSet<PathBuf>,
}

impl Arguments {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.words.extend(words.map(OsString::from));
    }

    /// A mount, and the directories above it. Left alone bubblewrap makes those
    /// so that only root may enter.
    fn mount(&mut self, how: &str, from: &Path, to: &Path) {
        let mut above: Vec<_> = to.ancestors().skip(1).filter(|path| path.parent().is_some()).collect();
        above.reverse();
        for directory in above {
            if self.made.insert(directory.to_path_buf()) {
                self.add(["--perms", "0755", "--dir"]);
                self.words.push(directory.into());
            }
        }
        self.words.extend([OsString::from(how), from.into(), to.into()]);
    }
}
