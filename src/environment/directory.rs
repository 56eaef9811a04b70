//! A directory held open, for looking at a whole tree: what is beneath it is
//! reached from it and by no link, so nothing that a command does meanwhile leads
//! elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

use super::files::{EntryKind, FileError, kind};
use super::workspace::Workspace;

/// A pipe in a file's place makes nobody wait.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// An open directory of a workspace. Its calls block.
#[derive(Debug)]
pub struct Directory {
    file: OwnedFd,
    /// Where it lies, links resolved.
    path: PathBuf,
}

/// A name in a directory, as the system has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: OsString,
    pub kind: EntryKind,
}

impl Workspace {
    /// The directory that a path names, links on the way followed as always.
    pub async fn open_directory(&self, path: &Path) -> Result<Directory, FileError> {
        self.in_directory(path, |directory| directory).await
    }

    /// What is to be done in that directory, done where calls may block.
    pub async fn in_directory<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce(Directory) -> T + Send + 'static,
    ) -> Result<T, FileError> {
        self.blocking(path, |place| {
            let file = place.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
            let link = format!("/proc/self/fd/{}", file.as_raw_fd());
            let path = std::fs::read_link(link).map_err(|error| place.failed(error))?;
            Ok(work(Directory { file, path }))
        })
        .await
    }
}

impl Directory {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory beneath this one; `relative` is made of names found in it.
    pub fn directory(&self, relative: &Path) -> io::Result<Self> {
        let file = self.open(relative, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let path = self.path.join(relative);
        Ok(Self { file, path })
    }

    /// An ordinary file beneath this one, for reading.
    pub fn file(&self, relative: &Path) -> io::Result<File> {
        let file = self.open(relative, READ)?;
        length(&file).map(|_| File::from(file))
    }

    /// An ordinary file in this one, for reading, and its length. A name is one
    /// step, so without following a link it cannot lead elsewhere, and the kernel
    /// need not watch the way: a search does this for every file.
    pub fn file_named(&self, name: &OsStr) -> io::Result<(File, u64)> {
        if name == ".." || name.as_bytes().contains(&b'/') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = openat(
            &self.file,
            name,
            READ | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        length(&file).map(|length| (File::from(file), length))
    }

    /// What a name in it stands for, the link itself for a link.
    pub(super) fn look(&self, name: &Path) -> Result<Stat, Errno> {
        statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Where the link of this name points, as it is written.
    pub(super) fn link(&self, name: &Path) -> Result<PathBuf, Errno> {
        let to = readlinkat(&self.file, name, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(to.into_bytes())))
    }

    pub(super) fn open(&self, relative: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let relative = if relative.as_os_str().is_empty() {
            Path::new(".")
        } else {
            relative
        };
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(openat2(&self.file, relative, flags, Mode::empty(), resolve)?)
    }

    /// What is in it, in no order.
    pub fn entries(&self) -> io::Result<Vec<Named>> {
        self.listed()?.collect()
    }

    /// The same, one after another as they are read.
    pub fn listed(&self) -> io::Result<impl Iterator<Item = io::Result<Named>>> {
        let mut entries = Dir::read_from(&self.file)?;
        Ok(std::iter::from_fn(move || {
            loop {
                let entry = match entries.next()? {
                    Ok(entry) => entry,
                    Err(error) => return Some(Err(error.into())),
                };
                let name = entry.file_name();
                if name.to_bytes() == b"." || name.to_bytes() == b".." {
                    continue;
                }
                let file_type = match entry.file_type() {
                    FileType::Unknown => statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)
                        .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                    known => known,
                };
                return Some(Ok(Named {
                    name: OsString::from_vec(name.to_bytes().to_vec()),
                    kind: kind(file_type),
                }));
            }
        }))
    }

    /// Length and time of change in nanoseconds, of a name in it.
    pub fn state(&self, name: &OsStr) -> Result<(u64, i64), Errno> {
        let stat = statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let at = stat
            .st_mtime
            .saturating_mul(1_000_000_000)
            .saturating_add_unsigned(stat.st_mtime_nsec);
        Ok((u64::try_from(stat.st_size).unwrap_or(0), at))
    }
}

/// Of an ordinary file; all else is refused.
fn length(file: &OwnedFd) -> io::Result<u64> {
    let stat = fstat(file)?;
    match kind(FileType::from_raw_mode(stat.st_mode)) {
        EntryKind::File => Ok(u64::try_from(stat.st_size).unwrap_or(0)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
