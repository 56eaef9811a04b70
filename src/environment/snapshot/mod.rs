//! A workspace as it was at one moment: its names and modes, and the content of
//! its files under their hashes, kept outside of it. Here is how one is made, and
//! how a workspace is made like it again; when, and how many are kept, is for
//! others to say. Links are kept as links and never followed, either way.

mod put_back;
mod tree;
mod vault;
mod walk;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

pub use put_back::PutBack;
pub use tree::{LeftOut, Tree, What};
pub use vault::Vault;
pub use walk::Taken;

use super::files::FileError;
use super::workspace::Workspace;

/// What a snapshot holds at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Names; a workspace with more has no snapshot.
    pub files: usize,
    /// Of one file; a longer one is left out.
    pub file_bytes: u64,
    /// Of all files together; what does not fit is left out.
    pub bytes: u64,
    /// Names that are left out wherever they stand, with all beneath them.
    pub without: Vec<OsString>,
}

impl Workspace {
    /// What is there now, its content in the vault. What `before` has in the same
    /// state is not read again.
    pub async fn snapshot(&self, vault: Vault, before: Option<Tree>, bounds: Arc<Bounds>) -> Result<Taken, FileError> {
        let root = self.open_directory(self.root()).await?;
        self.blocking(self.root(), move |place| {
            walk::take(&root, &vault, before.as_ref(), &bounds).map_err(|error| place.failed(error))
        })
        .await
    }

    /// Makes the workspace what `then` says. `now` is a snapshot of this moment:
    /// what it could not hold is left as it is.
    pub async fn put_back(&self, vault: Vault, now: Tree, then: Tree) -> Result<PutBack, FileError> {
        let root = self.open_directory(self.root()).await?;
        let owner = self.roots.first().and_then(|root| root.owner);
        let owner = owner.filter(|_| rustix::process::geteuid().is_root());
        self.blocking(self.root(), move |_| {
            Ok(put_back::put_back((&root, owner), &vault, &now, &then))
        })
        .await
    }
}

/// What a failed step says of itself.
fn said(error: &io::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
