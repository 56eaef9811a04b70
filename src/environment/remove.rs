//! Removing a session's directories, however its commands left them: nested
//! deeper than a stack or the open files of this process reach, or closed to
//! their owner, as caches of modules are.
//!
//! Nothing here recurses and at most three directories are open at a time: what
//! lies deeper is moved up beneath the first one before it is emptied. Links are
//! removed, never followed.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, chmodat, open, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Names read at once; they are gone before more are read.
const AT_ONCE: usize = 1024;

/// Removes a directory with all in it; blocks. One that is not there is no error.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = match open(path, flags, Mode::empty()) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut removal = Removal {
        top,
        waiting: Vec::new(),
        moved: 0,
    };
    loop {
        let found = names(&removal.top)?;
        if found.is_empty() {
            return std::fs::remove_dir(path);
        }
        for (name, is_directory) in found {
            if is_directory {
                opened_up(&removal.top, &name);
                removal.waiting.push(name);
            } else {
                unlinkat(&removal.top, &name, AtFlags::empty())?;
            }
        }
        while let Some(name) = removal.waiting.pop() {
            let directory = openat(&removal.top, &name, flags, Mode::empty())?;
            removal.empty(&directory)?;
            unlinkat(&removal.top, &name, AtFlags::REMOVEDIR)?;
        }
    }
}

struct Removal {
    top: OwnedFd,
    /// Directories beneath the top that are still to be emptied.
    waiting: Vec<CString>,
    /// How many directories were moved there.
    moved: u64,
}

impl Removal {
    /// Removes what is in a directory; directories in it become ones beneath the
    /// top.
    fn empty(&mut self, directory: &OwnedFd) -> io::Result<()> {
        loop {
            let found = names(directory)?;
            for (name, is_directory) in &found {
                if *is_directory {
                    self.lift(directory, name)?;
                } else {
                    unlinkat(directory, name, AtFlags::empty())?;
                }
            }
            if found.is_empty() {
                return Ok(());
            }
        }
    }

    fn lift(&mut self, from: &OwnedFd, name: &CString) -> io::Result<()> {
        opened_up(from, name);
        loop {
            self.moved += 1;
            let free = CString::new(format!(".removed-{}", self.moved))?;
            match renameat(from, name, &self.top, &free) {
                // Left by a removal that was cut off.
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
                Ok(()) => {
                    self.waiting.push(free);
                    return Ok(());
                }
            }
        }
    }
}

/// Lets its owner read and change a directory. Where that fails the next step
/// says so.
fn opened_up(above: &OwnedFd, name: &CString) {
    let _ = chmodat(above, name, Mode::RWXU, AtFlags::empty());
}

/// Some names of a directory, and which of them are directories.
fn names(directory: &OwnedFd) -> io::Result<Vec<(CString, bool)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes() == b"." || name.to_bytes() == b".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => FileType::from_raw_mode(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode),
            known => known,
        };
        found.push((name.to_owned(), kind == FileType::Directory));
        if found.len() == AT_ONCE {
            break;
        }
    }
    Ok(found)
}
