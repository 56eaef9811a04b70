//! Putting new content in the place of a file in one step, beneath a root.
//!
//! The content goes to a new file in the same directory, which then takes the
//! old one's name. Nothing here leaves the root: each directory is opened by the
//! rules of `place`, and only plain names are used inside it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, chownat, fchmod, fchown, fsync, mkdirat, openat, renameat,
    unlinkat,
};
use rustix::io::Errno;

use super::files::{FileError, Parents};
use super::place::{MAX_LINKS, Place, look};
use super::workspace::Owner;

pub(super) fn replace(place: &Place<'_>, bytes: &[u8], parents: Parents) -> Result<(), FileError> {
    let target = Target::find(place, parents)?;
    let place = &target.place;
    let existing = target.existing.as_ref();
    match existing.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        None | Some(FileType::RegularFile) => {}
        Some(FileType::Directory) => {
            return Err(FileError::IsDirectory {
                path: place.shown.clone(),
            });
        }
        Some(_) => {
            return Err(FileError::NotFile {
                path: place.shown.clone(),
            });
        }
    }
    let owner = match existing {
        Some(stat) if place.root.owner.is_none() => Some((Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid))),
        _ => place.root.owner,
    };
    let mode = existing.map_or(Mode::from_raw_mode(0o644), |stat| {
        Mode::from_raw_mode(stat.st_mode & 0o7777)
    });
    write(&target, bytes, mode, owner).map_err(|error| place.failed(error))
}

/// Where the content goes, links followed.
struct Target<'a> {
    place: Place<'a>,
    directory: OwnedFd,
    name: PathBuf,
    existing: Option<Stat>,
}

impl<'a> Target<'a> {
    fn find(first: &Place<'a>, parents: Parents) -> Result<Self, FileError> {
        let mut place = Place {
            beneath: first.beneath.clone(),
            shown: first.shown.clone(),
            ..*first
        };
        for _ in 0..MAX_LINKS {
            if !place.is_writable() {
                return Err(FileError::ReadOnly { path: place.shown });
            }
            let (above, name) = place.split()?;
            let directory = open_directory(&place, &above, parents)?;
            let existing = look(&directory, &name).map_err(|error| place.failed(error.into()))?;
            let is_link = existing.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
            if !is_link {
                return Ok(Self {
                    place,
                    directory,
                    name,
                    existing,
                });
            }
            place = place.follow(&directory, &above, &name)?;
        }
        Err(FileError::Outside {
            path: first.shown.clone(),
        })
    }
}

pub(super) fn open_directory(place: &Place<'_>, path: &Path, parents: Parents) -> Result<OwnedFd, FileError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match place.open_beneath(path, flags) {
        Err(FileError::Missing { .. }) if parents == Parents::Create => {}
        opened => return opened,
    }
    let mut reached = PathBuf::from(".");
    let mut directory = place.open_beneath(&reached, flags)?;
    for component in path.components() {
        reached.push(component);
        directory = match place.open_beneath(&reached, flags) {
            Err(FileError::Missing { .. }) => {
                make_directory(place, &directory, Path::new(&component))?;
                place.open_beneath(&reached, flags)?
            }
            opened => opened?,
        };
    }
    Ok(directory)
}

/// Gives a name to the session's user, where it has one.
pub(super) fn own(directory: &OwnedFd, name: &Path, owner: Owner) -> Result<(), Errno> {
    match owner {
        Some((user, group)) => chownat(directory, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW),
        None => Ok(()),
    }
}

fn make_directory(place: &Place<'_>, above: &OwnedFd, name: &Path) -> Result<(), FileError> {
    let made = match mkdirat(above, name, Mode::from_raw_mode(0o755)) {
        Ok(()) => own(above, name, place.root.owner),
        // Someone else was faster.
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    };
    made.map_err(|error| place.failed(error.into()))
}

fn write(target: &Target<'_>, bytes: &[u8], mode: Mode, owner: Option<(Uid, Gid)>) -> io::Result<()> {
    let temporary = format!(".hermes-{:016x}.tmp", getrandom::u64().map_err(io::Error::other)?);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(
        &target.directory,
        &temporary,
        flags,
        Mode::from_raw_mode(0o600),
    )?);
    let written = file
        .write_all(bytes)
        .and_then(|()| give(&file, mode, owner))
        .and_then(|()| {
            Ok(renameat(
                &target.directory,
                &temporary,
                &target.directory,
                &target.name,
            )?)
        });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = unlinkat(&target.directory, &temporary, AtFlags::empty());
        return written;
    }
    Ok(fsync(&target.directory)?)
}

fn give(file: &File, mode: Mode, owner: Option<(Uid, Gid)>) -> io::Result<()> {
    if let Some((user, group)) = owner.filter(|_| rustix::process::geteuid().is_root()) {
        fchown(file, Some(user), Some(group))?;
    }
    // After the owner, whose change would clear some bits of the mode.
    fchmod(file, mode)?;
    file.sync_all()
}
