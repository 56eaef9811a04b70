//! The directories of one session: its work and its private temporary files.
//!
//! They lie under the data directory by tenant and session. A server that runs
//! as root gives every workspace to a user of its own, so that commands of two
//! sessions share nothing even where the sandbox has a gap.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Gid, Mode, OFlags, Uid, chown, open};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use super::command::EnvironmentError;
use super::local::LocalSettings;

/// The range that Linux distributions leave to nobody, between containers and
/// the values some systems take for negative; 28 bits wide.
const FIRST_USER: u32 = 0x7000_0000;
const USER_BITS: u32 = 0x0fff_ffff;

/// The places of one session; clones share them.
#[derive(Clone, Debug)]
pub struct Workspace {
    pub(super) roots: Arc<[Root]>,
    identity: Option<(u32, u32)>,
}

/// A directory that file tools may enter. Held open, so that it is the same
/// directory even when its path is given to another.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) directory: OwnedFd,
    pub(super) access: Access,
    /// Who owns new files, where this process has the choice.
    pub(super) owner: Option<(Uid, Gid)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    Read,
}

impl Workspace {
    /// Where commands start and relative paths begin; without symbolic links.
    pub fn root(&self) -> &Path {
        self.path(0)
    }

    /// Temporary files of this session alone.
    pub fn tmp(&self) -> &Path {
        self.path(1)
    }

    /// The user and group its commands run as, when not the server's.
    pub(super) fn identity(&self) -> Option<(u32, u32)> {
        self.identity
    }

    fn path(&self, index: usize) -> &Path {
        self.roots.get(index).map_or(Path::new("/"), |root| &root.path)
    }

    pub(super) async fn open(
        settings: &Arc<LocalSettings>,
        tenant: &str,
        session: &str,
    ) -> Result<Self, EnvironmentError> {
        let settings = Arc::clone(settings);
        let (tenant, session) = (name(tenant)?, name(session)?);
        let directory = settings.data_dir.join("workspaces").join(&tenant).join(&session);
        let failed = |source| EnvironmentError::Workspace {
            path: directory.clone(),
            source,
        };
        let path = directory.clone();
        let opened = tokio::task::spawn_blocking(move || prepare(&settings, &path)).await;
        opened
            .map_err(io::Error::other)
            .and_then(|result| result)
            .map_err(failed)
    }
}

/// A name that stays one path component.
fn name(text: &str) -> Result<String, EnvironmentError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if text.is_empty() || text.len() > 128 || !text.bytes().all(is_plain) {
        return Err(EnvironmentError::Name { name: text.to_owned() });
    }
    Ok(text.to_owned())
}

fn prepare(settings: &LocalSettings, directory: &Path) -> io::Result<Workspace> {
    let (work, tmp) = (directory.join("work"), directory.join("tmp"));
    for path in [&work, &tmp] {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    }
    let directory = directory.canonicalize()?;
    let owner = match geteuid().is_root() {
        true => Some(own_user(&directory, &[&work, &tmp])?),
        false => None,
    };
    let mut roots = vec![
        root(&directory.join("work"), Access::Write, owner)?,
        root(&directory.join("tmp"), Access::Write, owner)?,
    ];
    for (paths, access) in [(&settings.writable, Access::Write), (&settings.readable, Access::Read)] {
        for path in paths {
            roots.push(root(&path.canonicalize()?, access, None)?);
        }
    }
    let identity = owner
        .map(|(user, group)| (user.as_raw(), group.as_raw()))
        .filter(|(user, _)| *user != 0);
    Ok(Workspace {
        roots: roots.into(),
        identity,
    })
}

fn root(path: &Path, access: Access, owner: Option<(Uid, Gid)>) -> io::Result<Root> {
    let directory = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Root {
        path: path.to_path_buf(),
        directory,
        access,
        owner,
    })
}

/// Gives new directories to the session's user. In a container whose user space
/// lacks that user they stay root's, and commands run as root without powers.
fn own_user(directory: &Path, places: &[&PathBuf]) -> io::Result<(Uid, Gid)> {
    let user = user_of(directory);
    for place in places {
        if fs::metadata(place)?.uid() == 0 {
            match chown(place.as_path(), Some(Uid::from_raw(user)), Some(Gid::from_raw(user))) {
                Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let work = places.first().map(fs::metadata).transpose()?;
    let (user, group) = work.map_or((0, 0), |metadata| (metadata.uid(), metadata.gid()));
    Ok((Uid::from_raw(user), Gid::from_raw(group)))
}

/// A number that follows from the place, so that it is the same after every
/// start without being written down.
fn user_of(directory: &Path) -> u32 {
    let digest = Sha256::digest(directory.as_os_str().as_encoded_bytes());
    let bytes = digest
        .iter()
        .take(4)
        .fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
    FIRST_USER | (bytes & USER_BITS)
}
