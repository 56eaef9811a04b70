//! A path of a tool as a place beneath a root, and no way out of it.
//!
//! The kernel opens every path beneath a directory that is held open
//! (`openat2`), so there is no moment between a check and its use. Links inside
//! are followed; links and `..` that lead out are refused.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Stat, openat2, readlinkat, statat};
use rustix::io::Errno;

use super::files::FileError;
use super::workspace::{Access, Root, Workspace};

/// As the kernel's own limit for links in one path.
pub(super) const MAX_LINKS: usize = 40;
/// The kernel asks to try again when a directory moves during a look-up.
const MAX_TRIES: usize = 16;

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

    /// Opens what lies here. The kernel takes every absolute link for one that
    /// leads out; when the last name is such a link it is judged as a path.
    pub(super) fn open(&self, flags: OFlags) -> Result<OwnedFd, FileError> {
        let mut opened = self.open_beneath(&self.beneath, flags);
        let mut next = None;
        for _ in 0..MAX_LINKS {
            if !matches!(opened, Err(FileError::Outside { .. })) {
                break;
            }
            let Some(place) = next.as_ref().unwrap_or(self).beyond() else {
                break;
            };
            opened = place.open_beneath(&place.beneath, flags);
            next = Some(place);
        }
        opened
    }

    /// Where the link under the last name points, if it is one.
    fn beyond(&self) -> Option<Self> {
        let (above, name) = self.split().ok()?;
        let directory = self.open_beneath(&above, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
        self.follow(&directory, &above, &name).ok()
    }

    /// The directory part and the last name.
    pub(super) fn split(&self) -> Result<(PathBuf, PathBuf), FileError> {
        let Some(Component::Normal(name)) = self.beneath.components().next_back() else {
            return Err(FileError::IsDirectory {
                path: self.shown.clone(),
            });
        };
        let above = self.beneath.parent().filter(|above| !above.as_os_str().is_empty());
        Ok((above.unwrap_or(Path::new(".")).to_path_buf(), PathBuf::from(name)))
    }

    /// The place that the link `name` in `directory` points to: in this root, in
    /// another, or an error.
    pub(super) fn follow(&self, directory: &OwnedFd, above: &Path, name: &Path) -> Result<Self, FileError> {
        let link = readlinkat(directory, name, Vec::new()).map_err(|error| self.failed(error.into()))?;
        let link = PathBuf::from(OsString::from_vec(link.into_bytes()));
        let mut next =
            Self::of(self.workspace, &self.root.path.join(above).join(link)).map_err(|_| FileError::Outside {
                path: self.shown.clone(),
            })?;
        next.shown.clone_from(&self.shown);
        Ok(next)
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
