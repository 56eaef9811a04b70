//! Files of a workspace, for tools: no path leads out of it.
//!
//! How a path is kept inside is `place`'s matter; here is what can be done with
//! it. Blocking work runs off the runtime's threads.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, fstat, statat};
use rustix::io::Errno;

use super::place::Place;
use super::replace::replace;
use super::workspace::Workspace;
use crate::base::Timestamp;

/// A listing is cut here; a model could not read more.
const MAX_ENTRIES: usize = 50_000;

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
    #[error("`{path}` is there already")]
    Exists { path: PathBuf },
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
            let source = open_file(place)?;
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
        self.blocking(path, open_file).await
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
        self.blocking(path, move |place| replace(place, &bytes, parents)).await
    }

    /// An absolute path as the model should see it: relative ones count from the
    /// workspace. No file is looked at.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.root().join(path)
    }

    pub(super) async fn blocking<T: Send + 'static>(
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

/// An ordinary file, for reading. Opening a pipe would wait for its writer.
fn open_file(place: &Place<'_>) -> Result<File, FileError> {
    let file = place.open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let stat = fstat(&file).map_err(|error| place.failed(error.into()))?;
    let path = place.shown.clone();
    match kind(FileType::from_raw_mode(stat.st_mode)) {
        EntryKind::File => Ok(File::from(file)),
        EntryKind::Directory => Err(FileError::IsDirectory { path }),
        EntryKind::Link | EntryKind::Other => Err(FileError::NotFile { path }),
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

pub(super) fn kind(file_type: FileType) -> EntryKind {
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
