//! The shell of one command: how the script reaches it and how the directory it
//! ended in comes back, both outside its standard streams.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

use super::description::Description;

/// The longest path the kernel gives out, with its end.
const PATH_BYTES: usize = 4097;

/// Where a good shell usually lies, best first.
const SHELLS: &[&str] = &["/usr/bin/bash", "/bin/bash", "/usr/local/bin/bash", "/bin/sh"];

/// Descriptors given to bash, clear of what scripts use. Other shells know
/// single digits only and get the highest of those.
pub(super) const BASH_DESCRIPTORS: i32 = 200;
/// How many the shell is given.
pub(super) const INHERITED: i32 = 2;
const OTHER_DESCRIPTORS: i32 = 8;

/// A running shell.
pub(super) struct Started {
    pub(super) pid: Pid,
    place: File,
    /// Where the script goes of a shell that waits for it.
    script: Option<File>,
}

impl Started {
    /// The directory the shell ended in, if it came to say so.
    pub(super) fn place(&self) -> Option<PathBuf> {
        let mut bytes = vec![0; PATH_BYTES];
        self.place.read_exact_at(&mut bytes, 0).ok()?;
        let text = bytes.split(|byte| *byte == 0).next()?;
        // A report is text; a directory that is none cannot be asked for again.
        let path = Path::new(std::str::from_utf8(text.strip_suffix(b"\n")?).ok()?);
        path.is_absolute().then(|| path.to_path_buf())
    }

    /// Lets a shell that waits run this, of at most [`super::description::LONGEST_GO`]
    /// bytes.
    pub(super) fn let_go(&mut self, script: &str) -> io::Result<()> {
        let mut pipe = self.script.take().ok_or(io::ErrorKind::InvalidInput)?;
        pipe.write_all(script.as_bytes())
    }
}

/// Starts the shell from the calling thread, whose walls it inherits.
pub(super) fn start(description: &Description, stdin: Option<&[u8]>) -> io::Result<Started> {
    let shell = SHELLS.iter().find(|path| Path::new(path).is_file());
    let shell = *shell.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this machine has no shell"))?;
    let is_bash = shell.ends_with("bash");
    let first = if is_bash { BASH_DESCRIPTORS } else { OTHER_DESCRIPTORS };
    if description.held && !is_bash {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (source, later) = source(description)?;
    let script = inherited(&source, first)?;
    let place = place()?;
    let told = inherited(&place, first)?;
    let input = match stdin {
        _ if description.terminal => Stdio::from(io::stdout().as_fd().try_clone_to_owned()?),
        Some(bytes) => Stdio::from(memory("stdin", bytes)?),
        None => Stdio::null(),
    };
    let child = Command::new(shell)
        .arg("-c")
        .arg(wrapper(is_bash, script.as_raw_fd(), told.as_raw_fd()))
        .arg(if is_bash { "bash" } else { "sh" })
        .env_clear()
        .envs(description.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(nearest(description))
        .stdin(input)
        .process_group(0)
        .spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(Started {
        pid: pid.ok_or(io::ErrorKind::InvalidData)?,
        place,
        script: later,
    })
}

/// What the script is read from and, if it comes later, where it goes then.
fn source(description: &Description) -> io::Result<(File, Option<File>)> {
    if !description.held {
        return Ok((memory("script", description.script.as_bytes())?, None));
    }
    let (source, later) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((source.into(), Some(later.into())))
}

/// Reads the script, has the shell tell its directory when it exits however it
/// does, and runs the script as if it stood here alone.
fn wrapper(is_bash: bool, script: i32, place: i32) -> String {
    let read = if is_bash {
        // The clock of one that waited begins here.
        format!("IFS= read -r -d '' __script <&{script}; SECONDS=0")
    } else {
        format!("__script=$(cat <&{script})")
    };
    format!("{read}; exec {script}<&-; trap 'pwd -P >&{place}' EXIT; eval \"unset __script; $__script\"")
}

/// The wanted directory, or the nearest above it that exists; the workspace
/// when there is none.
pub(super) fn nearest(description: &Description) -> PathBuf {
    let wanted = &description.cwd;
    let there = wanted
        .ancestors()
        .find(|path| path.is_dir())
        .filter(|path| path.parent().is_some());
    let workspace = description.confinement.writable.first();
    there
        .map(Path::to_path_buf)
        .or_else(|| workspace.cloned())
        .unwrap_or_else(|| "/".into())
}

/// A file without a name that holds `bytes`, to be read from its beginning.
fn memory(name: &str, bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Room for one path that cannot be made larger.
fn place() -> io::Result<File> {
    let file = File::from(memfd_create("place", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(u64::try_from(PATH_BYTES).map_err(io::Error::other)?)?;
    fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file)
}

/// The same file under the first free descriptor from `first` on, which the
/// shell inherits. Nothing else is started by this process.
fn inherited(file: &File, first: i32) -> io::Result<OwnedFd> {
    let high = fcntl_dupfd_cloexec(file, first)?;
    fcntl_setfd(&high, FdFlags::empty())?;
    Ok(high)
}
