//! Taking files away and moving them, within a workspace.
//!
//! The last name of a path is acted on itself: of a link the link, never what it
//! points to. Directories above it are opened by the rules of `place`.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, OFlags, RenameFlags, fsync, renameat_with, unlinkat};
use rustix::io::Errno;

use super::files::{FileError, Parents};
use super::place::{Place, look};
use super::replace::open_directory;
use super::workspace::Workspace;

impl Workspace {
    /// Takes one file, link or empty directory away.
    pub async fn remove_one(&self, path: &Path) -> Result<(), FileError> {
        self.blocking(path, |place| {
            let (directory, name) = parent(place, Parents::Require)?;
            let flags = match kind(place, &directory, &name)? {
                FileType::Directory => AtFlags::REMOVEDIR,
                _ => AtFlags::empty(),
            };
            unlinkat(&directory, &name, flags).map_err(|error| place.failed(error.into()))?;
            fsync(&directory).map_err(|error| place.failed(error.into()))
        })
        .await
    }

    /// Gives a file another name, where there is none yet; missing directories
    /// on the way are made.
    pub async fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        let (workspace, to) = (self.clone(), to.to_path_buf());
        self.blocking(from, move |place| {
            let target = Place::of(&workspace, &to)?;
            let (old, old_name) = parent(place, Parents::Require)?;
            if kind(place, &old, &old_name)? == FileType::Directory {
                return Err(FileError::IsDirectory {
                    path: place.shown.clone(),
                });
            }
            let (new, new_name) = parent(&target, Parents::Create)?;
            let moved = renameat_with(&old, &old_name, &new, &new_name, RenameFlags::NOREPLACE);
            moved.map_err(|error| match error {
                Errno::EXIST => FileError::Exists {
                    path: target.shown.clone(),
                },
                error => target.failed(error.into()),
            })?;
            fsync(&new).map_err(|error| target.failed(error.into()))
        })
        .await
    }
}

/// The directory that holds the last name, and that name.
fn parent(place: &Place<'_>, parents: Parents) -> Result<(OwnedFd, PathBuf), FileError> {
    if !place.is_writable() {
        return Err(FileError::ReadOnly {
            path: place.shown.clone(),
        });
    }
    let (above, name) = place.split()?;
    let directory = match parents {
        Parents::Require => place.open_beneath(&above, OFlags::RDONLY | OFlags::DIRECTORY)?,
        Parents::Create => open_directory(place, &above, parents)?,
    };
    Ok((directory, name))
}

fn kind(place: &Place<'_>, directory: &OwnedFd, name: &Path) -> Result<FileType, FileError> {
    let found = look(directory, name).map_err(|error| place.failed(error.into()))?;
    let found = found.ok_or_else(|| FileError::Missing {
        path: place.shown.clone(),
    })?;
    Ok(FileType::from_raw_mode(found.st_mode))
}
