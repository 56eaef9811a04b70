//! The directories of one session: its work and its private temporary files.
//!
//! They lie under the data directory by tenant and session, and only there:
//! names that could lead elsewhere are refused.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Gid, Mode, OFlags, Uid, open};

use super::command::EnvironmentError;
use super::identity::{self, Identity};
use super::local::LocalSettings;
use super::remove;

/// The places of one session; clones share them.
#[derive(Clone, Debug)]
pub struct Workspace {
    pub(super) roots: Arc<[Root]>,
    identity: Option<Identity>,
}

/// The session's user and group; nothing where it has none of its own.
pub(super) type Owner = Option<(Uid, Gid)>;

/// A directory that file tools may enter. Held open, so that it is the same
/// directory even when its path is given to another.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) directory: OwnedFd,
    pub(super) access: Access,
    /// Who owns new files, where this process has the choice.
    pub(super) owner: Owner,
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

    /// Whom its commands become, when not the server's own user.
    pub(super) fn identity(&self) -> Option<Identity> {
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
        let directory = directory(&settings, &tenant, &session);
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

/// Removes a session's directories with all in them.
pub(super) async fn remove(settings: &LocalSettings, tenant: &str, session: &str) -> Result<(), EnvironmentError> {
    let directory = directory(settings, &name(tenant)?, &name(session)?);
    let path = directory.clone();
    let removed = tokio::task::spawn_blocking(move || remove::remove(&path)).await;
    removed
        .map_err(io::Error::other)
        .and_then(|result| result)
        .map_err(|source| EnvironmentError::Workspace {
            path: directory,
            source,
        })
}

fn directory(settings: &LocalSettings, tenant: &str, session: &str) -> PathBuf {
    settings.data_dir.join("workspaces").join(tenant).join(session)
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
    let (work, tmp) = (directory.join("work"), directory.join("tmp"));
    let identity = identity::settle(&directory, &[&work, &tmp])?;
    let owner = identity.map(|identity| (Uid::from_raw(identity.user), Gid::from_raw(identity.group)));
    let mut roots = vec![root(&work, Access::Write, owner)?, root(&tmp, Access::Write, owner)?];
    for (paths, access) in [(&settings.writable, Access::Write), (&settings.readable, Access::Read)] {
        for path in paths {
            roots.push(root(&path.canonicalize()?, access, None)?);
        }
    }
    let identity = identity.filter(|identity| identity.user != 0);
    Ok(Workspace {
        roots: roots.into(),
        identity,
    })
}

fn root(path: &Path, access: Access, owner: Owner) -> io::Result<Root> {
    let directory = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Root {
        path: path.to_path_buf(),
        directory,
        access,
        owner,
    })
}
