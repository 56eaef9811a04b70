//! Files of a workspace, for tools: no path leads out of it.
//!
//! Every path is opened by the kernel beneath a directory that is held open
//! (`openat2`), so there is no moment between a check and its use. Links inside
//! are followed, links and `..` that lead out are refused. Blocking work runs
//! off the runtime's threads.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, statat};
use rustix::io::Errno;

use super::workspace::{Access, Root, Workspace};
use crate::base::Timestamp;

/// A listing is cut here; a model could not read more.
const MAX_ENTRIES: usize = 50_000;
/// The kernel asks to try again when a directory moves during a look-up.
const MAX_TRIES: usize = 16;

/// What a name stands for, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    /// Only in listings: what a link points to is not looked up there.
    Link,
    /// A socket, a pipe, a device.
    Other,
}

/// One name of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub kind: EntryKind,
    pub bytes: u64,
    /// The permission bits.
    pub mode: u32,
    pub modified_at: Timestamp,
}

/// Whether missing directories on the way are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    Create,
    Require,
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("`{path}` is outside the workspace")]
    Outside { path: PathBuf },
    #[error("`{path}` may be read but not written")]
    ReadOnly { path: PathBuf },
    #[error("`{path}` does not exist")]
    Missing { path: PathBuf },
    #[error("`{path}` is a directory")]
    IsDirectory { path: PathBuf },
    #[error("`{path}` is not a directory")]
    NotDirectory { path: PathBuf },
    #[error("`{path}` is not an ordinary file")]
    NotFile { path: PathBuf },
    #[error("`{path}` is longer than {max_bytes} bytes")]
    TooLong { path: PathBuf, max_bytes: u64 },
    #[error("`{path}`: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Workspace {
    /// The whole file, refused when it is longer than `max_bytes`.
    pub async fn read(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        self.blocking(path, move |place| {
            let mut bytes = Vec::new();
            // One byte more tells a longer file from one that fits.
            let source = place.open_file()?;
            source
                .take(max_bytes.saturating_add(1))
                .read_to_end(&mut bytes)
                .map_err(|error| place.failed(error))?;
            match u64::try_from(bytes.len()) {
                Ok(length) if length <= max_bytes => Ok(bytes),
                _ => Err(FileError::TooLong {
                    path: place.shown.clone(),
                    max_bytes,
                }),
            }
        })
        .await
    }

    /// The file open for reading, for those too long to be read whole.
    pub async fn open_read(&self, path: &Path) -> Result<File, FileError> {
        self.blocking(path, |place| place.open_file()).await
    }

    pub async fn metadata(&self, path: &Path) -> Result<Metadata, FileError> {
        self.blocking(path, |place| {
            let file = place.open(OFlags::PATH)?;
            fstat(file)
                .map(|stat| metadata(&stat))
                .map_err(|error| place.failed(error.into()))
        })
        .await
    }

    /// Whether something is there; a path outside is an error, not a no.
    pub async fn exists(&self, path: &Path) -> Result<bool, FileError> {
        match self.metadata(path).await {
            Ok(_) => Ok(true),
            Err(FileError::Missing { .. } | FileError::NotDirectory { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The names in a directory, sorted.
    pub async fn list_dir(&self, path: &Path) -> Result<Vec<Entry>, FileError> {
        self.blocking(path, |place| {
            let directory = place.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
            entries(&directory).map_err(|error| place.failed(error.into()))
        })
        .await
    }

    /// Puts `bytes` in the place of the file in one step: a reader sees the old
    /// content or the new one, a crash leaves one of them. The file's mode stays.
    pub async fn write_atomic(&self, path: &Path, bytes: Vec<u8>, parents: Parents) -> Result<(), FileError> {
        self.blocking(path, move |place| super::replace::replace(place, &bytes, parents))
            .await
    }

    /// An absolute path as the model should see it: relative ones count from the
    /// workspace. No file is looked at.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.root().join(path)
    }

    async fn blocking<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce(&Place<'_>) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let (workspace, path) = (self.clone(), path.to_path_buf());
        let shown = path.clone();
        let done = tokio::task::spawn_blocking(move || work(&Place::of(&workspace, &path)?)).await;
        done.unwrap_or_else(|error| {
            Err(FileError::Io {
                path: shown,
                source: io::Error::other(error),
            })
        })
    }
}

/// A path as a root and what lies beneath it.
pub(super) struct Place<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) root: &'a Root,
    /// Never absolute; `..` in it is the kernel's to judge.
    pub(super) beneath: PathBuf,
    /// As the caller wrote it.
    pub(super) shown: PathBuf,
}

impl<'a> Place<'a> {
    pub(super) fn of(workspace: &'a Workspace, path: &Path) -> Result<Self, FileError> {
        let absolute = workspace.absolute(path);
        let inside = |root: &'a Root| absolute.strip_prefix(&root.path).ok().map(|rest| (root, rest));
        // The longest root wins, so that a root inside another keeps its rules.
        let found = workspace
            .roots
            .iter()
            .filter_map(inside)
            .min_by_key(|(_, rest)| rest.components().count());
        let (root, rest) = found.ok_or_else(|| FileError::Outside {
            path: path.to_path_buf(),
        })?;
        let beneath = if rest.as_os_str().is_empty() {
            Path::new(".")
        } else {
            rest
        };
        Ok(Self {
            workspace,
            root,
            beneath: beneath.to_path_buf(),
            shown: path.to_path_buf(),
        })
    }

    pub(super) fn open(&self, flags: OFlags) -> Result<OwnedFd, FileError> {
        self.open_beneath(&self.beneath, flags)
    }

    pub(super) fn open_beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, FileError> {
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            match openat2(&self.root.directory, path, flags, Mode::empty(), resolve) {
                Ok(file) => return Ok(file),
                Err(Errno::AGAIN | Errno::INTR) if tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(self.failed(error.into())),
            }
        }
    }

    /// An ordinary file, for reading. Opening a pipe would wait for its writer.
    fn open_file(&self) -> Result<File, FileError> {
        let file = self.open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = fstat(&file).map_err(|error| self.failed(error.into()))?;
        match kind(FileType::from_raw_mode(stat.st_mode)) {
            EntryKind::File => Ok(File::from(file)),
            EntryKind::Directory => Err(FileError::IsDirectory {
                path: self.shown.clone(),
            }),
            EntryKind::Link | EntryKind::Other => Err(FileError::NotFile {
                path: self.shown.clone(),
            }),
        }
    }

    pub(super) fn is_writable(&self) -> bool {
        self.root.access == Access::Write
    }

    pub(super) fn failed(&self, source: io::Error) -> FileError {
        let path = self.shown.clone();
        match Errno::from_io_error(&source) {
            Some(Errno::XDEV | Errno::LOOP) => FileError::Outside { path },
            Some(Errno::NOENT) => FileError::Missing { path },
            Some(Errno::NOTDIR) => FileError::NotDirectory { path },
            Some(Errno::ISDIR) => FileError::IsDirectory { path },
            _ => FileError::Io { path, source },
        }
    }
}

/// What a name in an open directory stands for, the link itself for a link.
pub(super) fn look(directory: &OwnedFd, name: &Path) -> Result<Option<Stat>, Errno> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn entries(directory: &OwnedFd) -> Result<Vec<Entry>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "." || name == ".." {
            continue;
        }
        let file_type = match entry.file_type() {
            FileType::Unknown => statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            known => known,
        };
        found.push(Entry {
            name,
            kind: kind(file_type),
        });
        if found.len() == MAX_ENTRIES {
            break;
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn kind(file_type: FileType) -> EntryKind {
    match file_type {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

fn metadata(stat: &Stat) -> Metadata {
    let milliseconds = stat
        .st_mtime
        .saturating_mul(1000)
        .saturating_add_unsigned(stat.st_mtime_nsec / 1_000_000);
    Metadata {
        kind: kind(FileType::from_raw_mode(stat.st_mode)),
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & 0o7777,
        modified_at: Timestamp(milliseconds),
    }
}
