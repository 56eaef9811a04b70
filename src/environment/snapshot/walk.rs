//! Making a snapshot: all names first, so that it is known what there is to leave
//! out; then the content of what changed since the snapshot before.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::Bounds;
use super::tree::{LeftOut, Stamp, Tree, What};
use super::vault::Vault;
use crate::environment::directory::Directory;

/// What came of it.
#[derive(Debug)]
pub enum Taken {
    Tree {
        tree: Tree,
        /// Files that it holds, and their bytes.
        files: u64,
        bytes: u64,
    },
    /// There is more than a snapshot may hold.
    TooMany,
}

/// A name that was looked at and not read.
enum Seen {
    Known(What),
    File { mode: u32, stamp: Stamp },
}

pub(super) fn take(root: &Directory, vault: &Vault, before: Option<&Tree>, bounds: &Bounds) -> io::Result<Taken> {
    let began = vault.now()?;
    let Some(mut seen) = walk(root, bounds)? else {
        return Ok(Taken::TooMany);
    };
    seen.sort_by(|(one, _), (other, _)| one.cmp(other));
    let (mut tree, mut files, mut bytes) = (Tree::default(), 0, 0);
    tree.began = began;
    for (path, seen) in seen {
        let what = match seen {
            Seen::Known(what) => Some(what),
            Seen::File { mode, stamp } => {
                let room = bounds.bytes.saturating_sub(bytes);
                let held = held(
                    root,
                    vault,
                    &path,
                    (stamp, known(before, &path, &stamp)),
                    (bounds, room),
                )?;
                held.map(|held| match held {
                    Ok((sha256, size)) => {
                        (files, bytes) = (files + 1, bytes + size);
                        What::File { mode, sha256, stamp }
                    }
                    Err(why) => What::LeftOut { why },
                })
            }
        };
        tree.names.extend(what.map(|what| (path, what)));
    }
    Ok(Taken::Tree { tree, files, bytes })
}

/// The hash of the content, if the snapshot before has the same state.
fn known<'a>(before: Option<&'a Tree>, path: &Path, stamp: &Stamp) -> Option<&'a str> {
    let before = before?;
    match before.names.get(path)? {
        What::File {
            sha256, stamp: known, ..
        } if known == stamp && stamp.changed < before.began => Some(sha256),
        _ => None,
    }
}

type Held = Result<(String, u64), LeftOut>;

/// Puts a file into the vault, unless it is there; nothing if it is gone.
fn held(
    root: &Directory,
    vault: &Vault,
    path: &Path,
    (stamp, known): (Stamp, Option<&str>),
    (bounds, room): (&Bounds, u64),
) -> io::Result<Option<Held>> {
    if bounds.file_bytes < stamp.size {
        return Ok(Some(Err(LeftOut::Long)));
    }
    if room < stamp.size {
        return Ok(Some(Err(LeftOut::NoRoom)));
    }
    if let Some(sha256) = known.filter(|sha256| vault.has(sha256)) {
        return Ok(Some(Ok((sha256.to_owned(), stamp.size))));
    }
    let file = match root.file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Ok(Some(Err(LeftOut::Closed))),
    };
    // It may have grown since it was looked at.
    let put = vault.put(file, bounds.file_bytes.min(room))?;
    Ok(Some(put.ok_or(LeftOut::Long)))
}

/// Every name, or nothing where there are too many.
fn walk(root: &Directory, bounds: &Bounds) -> io::Result<Option<Vec<(PathBuf, Seen)>>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(above) = open.pop() {
        let entries = root.directory(&above).and_then(|directory| {
            let entries = directory.entries()?;
            Ok((directory, entries))
        });
        let (directory, entries) = match entries {
            Ok(entries) => entries,
            Err(error) if above.as_os_str().is_empty() => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => {
                let why = LeftOut::Closed;
                found.push((above, Seen::Known(What::LeftOut { why })));
                continue;
            }
        };
        for entry in entries {
            if bounds.files <= found.len() {
                return Ok(None);
            }
            let path = above.join(&entry.name);
            let name = Path::new(&entry.name);
            if bounds.without.contains(&entry.name) {
                let why = LeftOut::Named;
                found.push((path, Seen::Known(What::LeftOut { why })));
                continue;
            }
            let Ok(stat) = directory.look(name) else { continue };
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                open.push(path.clone());
            }
            found.extend(seen(&directory, name, &stat).map(|seen| (path, seen)));
        }
    }
    Ok(Some(found))
}

fn seen(directory: &Directory, name: &Path, stat: &Stat) -> Option<Seen> {
    // Nothing that is put back runs as another than who runs it.
    let mode = stat.st_mode & 0o1777;
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Seen::File {
            mode,
            stamp: stamp(stat),
        },
        FileType::Directory => Seen::Known(What::Directory { mode }),
        FileType::Symlink => Seen::Known(What::Link {
            to: directory.link(name).ok()?,
        }),
        _ => Seen::Known(What::LeftOut { why: LeftOut::Special }),
    })
}

fn stamp(stat: &Stat) -> Stamp {
    let nanoseconds = |seconds: i64, rest: u64| seconds.saturating_mul(1_000_000_000).saturating_add_unsigned(rest);
    Stamp {
        size: u64::try_from(stat.st_size).unwrap_or(0),
        inode: stat.st_ino,
        modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    }
}
