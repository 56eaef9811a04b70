//! Making a workspace what a snapshot says. What has to change is told by two
//! snapshots, the one of this moment and the one that is wanted; then each step
//! opens the directory above anew, follows no link, and names one plain name in
//! it, so whatever a command does meanwhile leads nowhere else. A step that fails
//! is told and hurts no other.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, chmod, fchmod, fchown, futimens, mkdirat, openat, renameat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use super::tree::{Stamp, Tree, What};
use super::vault::{Vault, copy};
use crate::environment::directory::Directory;
use crate::environment::replace::own;
use crate::environment::workspace::Owner;

/// What was done, and what could not be.
#[derive(Debug, Default)]
pub struct PutBack {
    /// Files and links written, directories made.
    pub written: u64,
    /// Names taken away that came since.
    pub removed: u64,
    /// Names that are not as they were, each with the reason.
    pub left: Vec<(PathBuf, String)>,
}

/// What has to be done, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan<'a> {
    /// What is in a directory before the directory.
    pub remove: Vec<&'a Path>,
    /// A directory before what is in it.
    pub put: Vec<(&'a Path, &'a What)>,
    /// What is not touched, though it is not as it was.
    pub left: Vec<(&'a Path, &'static str)>,
}

pub(super) fn plan<'a>(now: &'a Tree, then: &'a Tree) -> Plan<'a> {
    let mut plan = Plan::default();
    for (path, is) in &now.names {
        match (is, then.names.get(path)) {
            (_, None) if then.leaves_out(path) => {}
            (What::LeftOut { .. }, None) => plan.left.push((path, "it is new, and no snapshot could keep it")),
            (_, None) => plan.remove.push(path),
            (_, Some(What::LeftOut { .. })) => {}
            (What::LeftOut { .. }, Some(_)) => plan.left.push((path, "no snapshot could keep what it is now")),
            (is, Some(was)) if is_same(is, was) => {}
            (is, Some(was)) => {
                let in_place = matches!(
                    (is, was),
                    (
                        What::File { .. } | What::Link { .. },
                        What::File { .. } | What::Link { .. }
                    ) | (What::Directory { .. }, What::Directory { .. })
                );
                if !in_place {
                    plan.remove.push(path);
                }
                plan.put.push((path, was));
            }
        }
    }
    plan.remove.reverse();
    for (path, was) in &then.names {
        match was {
            _ if now.names.contains_key(path) || now.leaves_out(path) => {}
            What::LeftOut { .. } => plan.left.push((path, "it is gone, and the snapshot does not hold it")),
            was => plan.put.push((path, was)),
        }
    }
    plan.put.sort_by_key(|(path, _)| *path);
    plan
}

fn is_same(is: &What, was: &What) -> bool {
    match (is, was) {
        (
            What::File { mode, sha256, .. },
            What::File {
                mode: old,
                sha256: before,
                ..
            },
        ) => mode == old && sha256 == before,
        (is, was) => is == was,
    }
}

pub(super) fn put_back((root, owner): (&Directory, Owner), vault: &Vault, now: &Tree, then: &Tree) -> PutBack {
    let plan = plan(now, then);
    let mut done = PutBack::default();
    let opened = open_up(root, now, &plan);
    for path in &plan.remove {
        match remove(root, path, now.names.get(*path)) {
            Ok(()) => done.removed += 1,
            Err(error) => done.left.push(((*path).to_owned(), super::said(&error))),
        }
    }
    for (path, was) in &plan.put {
        match put(root, owner, vault, (path, was)) {
            Ok(()) => done.written += 1,
            Err(error) => done.left.push(((*path).to_owned(), super::said(&error))),
        }
    }
    // From within outwards, or a closed directory could not be entered any more.
    for (path, was) in plan.put.iter().rev() {
        if let What::Directory { mode } = was {
            set_mode(root, path, *mode)
                .unwrap_or_else(|error| done.left.push(((*path).to_owned(), super::said(&error))));
        }
    }
    for (path, mode) in opened.iter().rev() {
        // It may be among those that were taken away.
        let _ = set_mode(root, path, *mode);
    }
    let left = plan
        .left
        .iter()
        .map(|(path, why)| ((*path).to_owned(), (*why).to_owned()));
    done.left.extend(left);
    done.left.sort();
    done
}

/// Lets their owner into the directories in which something changes; gives the
/// modes that they have to have afterwards.
fn open_up<'a>(root: &Directory, now: &'a Tree, plan: &Plan<'_>) -> Vec<(&'a Path, u32)> {
    let touched = plan
        .remove
        .iter()
        .copied()
        .chain(plan.put.iter().map(|(path, _)| *path));
    let above: BTreeSet<&Path> = touched.flat_map(|path| path.ancestors().skip(1)).collect();
    let mut opened = Vec::new();
    for (path, what) in &now.names {
        let What::Directory { mode } = what else { continue };
        if mode & 0o700 != 0o700 && above.contains(path.as_path()) && set_mode(root, path, mode | 0o700).is_ok() {
            let stays = !plan.put.iter().any(|(put, _)| *put == path.as_path());
            opened.extend(stays.then_some((path.as_path(), *mode)));
        }
    }
    opened
}

fn set_mode(root: &Directory, path: &Path, mode: u32) -> io::Result<()> {
    let directory = root.open(path, OFlags::PATH | OFlags::DIRECTORY)?;
    // A directory that may not be read can be opened in no other way.
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    Ok(chmod(link, Mode::from_raw_mode(mode))?)
}

/// The directory above, and the name in it.
fn above(root: &Directory, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let above = path.parent().unwrap_or(Path::new(""));
    let directory = root.open(above, OFlags::RDONLY | OFlags::DIRECTORY)?;
    Ok((directory, PathBuf::from(name)))
}

fn remove(root: &Directory, path: &Path, is: Option<&What>) -> io::Result<()> {
    let (directory, name) = above(root, path)?;
    let flags = match is {
        Some(What::Directory { .. }) => AtFlags::REMOVEDIR,
        _ => AtFlags::empty(),
    };
    match unlinkat(&directory, &name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn put(root: &Directory, owner: Owner, vault: &Vault, (path, was): (&Path, &What)) -> io::Result<()> {
    let (directory, name) = above(root, path)?;
    match was {
        What::Directory { .. } => match mkdirat(&directory, &name, Mode::RWXU) {
            Ok(()) => Ok(own(&directory, &name, owner)?),
            // Only its mode has to change.
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        },
        What::File { mode, sha256, stamp } => in_place(&directory, &name, |temporary| {
            file(&directory, temporary, vault, (sha256, stamp)).and_then(|file| give(&file, *mode, owner, stamp))
        }),
        What::Link { to } => in_place(&directory, &name, |temporary| {
            symlinkat(to, &directory, temporary)?;
            Ok(own(&directory, temporary, owner)?)
        }),
        What::LeftOut { .. } => Ok(()),
    }
}

/// Makes something under another name, which then takes the place of `name`.
fn in_place(directory: &OwnedFd, name: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = format!(".hermes-{:016x}.tmp", getrandom::u64().map_err(io::Error::other)?);
    let temporary = Path::new(&temporary);
    let made = make(temporary).and_then(|()| Ok(renameat(directory, temporary, directory, name)?));
    if made.is_err() {
        // The first error is the one to tell.
        let _ = unlinkat(directory, temporary, AtFlags::empty());
    }
    made
}

fn file(directory: &OwnedFd, name: &Path, vault: &Vault, (sha256, stamp): (&str, &Stamp)) -> io::Result<File> {
    let mut source = vault.get(sha256)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(directory, name, flags, Mode::from_raw_mode(0o600))?);
    let (copied, _) = copy(&mut source, &mut file, stamp.size)?;
    match copied == sha256 {
        true => Ok(file),
        false => Err(io::Error::other("what was kept of it is damaged")),
    }
}

fn give(file: &File, mode: u32, owner: Owner, stamp: &Stamp) -> io::Result<()> {
    if let Some((user, group)) = owner {
        fchown(file, Some(user), Some(group))?;
    }
    // After the owner, whose change would clear some bits of the mode.
    fchmod(file, Mode::from_raw_mode(mode))?;
    let time = Timespec {
        tv_sec: stamp.modified.div_euclid(1_000_000_000),
        tv_nsec: stamp.modified.rem_euclid(1_000_000_000),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(futimens(file, &times)?)
}
