//! The checkpoints of one workspace on the disk: for each a small file that
//! describes it, written last, and one with its names; beside them the content of
//! all. What a crash leaves half-made is no checkpoint.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::environment::snapshot::{Tree, Vault, What};
use crate::model::checkpoint::{Checkpoint, CheckpointState};
use crate::model::id::CheckpointId;

const HEAD: &str = "json";
const TREE: &str = "names";

/// Its calls block.
#[derive(Clone, Debug)]
pub(super) struct Shelf(PathBuf);

impl Shelf {
    pub(super) fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Whether there may be any.
    pub(super) fn is_there(&self) -> bool {
        self.0.is_dir()
    }

    pub(super) fn make(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    fn file(&self, id: CheckpointId, kind: &str) -> PathBuf {
        self.0.join(format!("{id}.{kind}"))
    }

    fn lock_file(&self, name: &str) -> io::Result<File> {
        let path = self.0.join(name);
        File::options().create(true).truncate(false).write(true).open(path)
    }

    /// The lock of whoever makes checkpoints.
    pub(super) fn lock(&self) -> io::Result<File> {
        let file = self.lock_file("making.lock")?;
        file.lock()?;
        Ok(file)
    }

    /// Holds the workspace with others that work in it; where there are no
    /// checkpoints there is nothing to be restored, and nothing to be held.
    pub(super) fn hold(&self) -> io::Result<Option<File>> {
        let file = match self.lock_file("working.lock") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        file.lock_shared()?;
        Ok(Some(file))
    }

    /// Holds the workspace alone, if nobody works in it.
    pub(super) fn hold_alone(&self) -> io::Result<Option<File>> {
        let file = self.lock_file("working.lock")?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn vault(&self) -> io::Result<Vault> {
        Vault::open(&self.0)
    }

    pub(super) fn vault_to_read(&self) -> Vault {
        Vault::at(&self.0)
    }

    /// All of them, newest first. One that cannot be read is none.
    pub(super) fn heads(&self) -> io::Result<Vec<Checkpoint>> {
        let mut heads: Vec<Checkpoint> = self.ids(HEAD)?.into_iter().filter_map(|id| self.head(id)).collect();
        heads.sort_by_key(|head| std::cmp::Reverse(head.id));
        Ok(heads)
    }

    fn head(&self, id: CheckpointId) -> Option<Checkpoint> {
        let text = fs::read(self.file(id, HEAD)).ok()?;
        serde_json::from_slice(&text)
            .inspect_err(|error| tracing::warn!(checkpoint = %id, %error, "a checkpoint cannot be read"))
            .ok()
    }

    /// The ids that have a file of this kind.
    fn ids(&self, kind: &str) -> io::Result<Vec<CheckpointId>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let path = PathBuf::from(entry?.file_name());
            let is_kind = path.extension().is_some_and(|extension| extension == kind);
            let id: Option<CheckpointId> = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            ids.extend(id.filter(|_| is_kind));
        }
        Ok(ids)
    }

    pub(super) fn tree(&self, id: CheckpointId) -> io::Result<Tree> {
        Tree::read(BufReader::new(File::open(self.file(id, TREE))?))
    }

    /// The names of the newest checkpoint that has any.
    pub(super) fn newest_tree(&self) -> Option<Tree> {
        let newest = self.heads().ok()?.into_iter().find(is_held)?;
        self.tree(newest.id).ok()
    }

    pub(super) fn put(&self, head: &Checkpoint, tree: Option<&Tree>) -> io::Result<()> {
        if let Some(tree) = tree {
            whole(&self.file(head.id, TREE), |file| tree.write(file))?;
        }
        whole(&self.file(head.id, HEAD), |file| Ok(serde_json::to_writer(file, head)?))
    }

    /// Keeps the newest `most`, and of those that hold nothing only one that is the
    /// newest of all: they do not drive out the others.
    pub(super) fn prune(&self, most: usize) -> io::Result<()> {
        let heads = self.heads()?;
        let (held, empty): (Vec<_>, Vec<_>) = heads.iter().partition(|head| is_held(head));
        let newest = heads.first().map(|head| head.id);
        let empty = empty.into_iter().filter(|head| Some(head.id) != newest);
        let gone: Vec<CheckpointId> = held.into_iter().skip(most).chain(empty).map(|head| head.id).collect();
        for id in &gone {
            fs::remove_file(self.file(*id, HEAD))?;
        }
        let kept: HashSet<CheckpointId> = self.ids(HEAD)?.into_iter().collect();
        let mut freed = HashSet::new();
        for id in self.ids(TREE)?.into_iter().filter(|id| !kept.contains(id)) {
            freed.extend(self.tree(id).map(hashes).unwrap_or_default());
            fs::remove_file(self.file(id, TREE))?;
        }
        // Mostly the next one has the same.
        let newest = self.newest_tree().map(hashes).unwrap_or_default();
        if freed.is_subset(&newest) {
            return Ok(());
        }
        let mut named = newest;
        for id in self.ids(TREE)? {
            named.extend(hashes(self.tree(id)?));
        }
        self.vault_to_read().sweep(&named)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

fn is_held(head: &Checkpoint) -> bool {
    head.state != CheckpointState::Skipped
}

fn hashes(tree: Tree) -> HashSet<String> {
    let files = tree.names.into_values().filter_map(|what| match what {
        What::File { sha256, .. } => Some(sha256),
        _ => None,
    });
    files.collect()
}

/// Writes a file that is there whole or not at all, also after a loss of power.
fn whole(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = BufWriter::new(File::create(&new)?);
    write(&mut file)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    fs::rename(new, path)
}
