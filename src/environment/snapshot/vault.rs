//! The content of files under its SHA-256, in a directory of its own: what two
//! snapshots have in common is there once. A content appears whole or not at all.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

const CHUNK_BYTES: usize = 128 << 10;

/// A cheap name for the directory.
#[derive(Clone, Debug)]
pub struct Vault {
    /// By the first two letters of the hash.
    held: PathBuf,
    /// What is still being written.
    coming: PathBuf,
}

impl Vault {
    /// One at a time may write to it: what an earlier writer did not finish is
    /// taken away.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let vault = Self::at(directory);
        match fs::remove_dir_all(&vault.coming) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for path in [&vault.held, &vault.coming] {
            made(path)?;
        }
        Ok(vault)
    }

    /// For reading.
    pub fn at(directory: &Path) -> Self {
        Self {
            held: directory.join("held"),
            coming: directory.join("coming"),
        }
    }

    /// The time as the file system has it.
    pub(super) fn now(&self) -> io::Result<i64> {
        let file = File::create(self.coming.join("now"))?.metadata()?;
        let seconds = file.ctime().saturating_mul(1_000_000_000);
        Ok(seconds.saturating_add(file.ctime_nsec()))
    }

    fn path(&self, sha256: &str) -> PathBuf {
        let (above, rest) = sha256.split_at_checked(2).unwrap_or_default();
        self.held.join(above).join(rest)
    }

    pub fn has(&self, sha256: &str) -> bool {
        self.path(sha256).is_file()
    }

    pub(super) fn get(&self, sha256: &str) -> io::Result<File> {
        File::open(self.path(sha256))
    }

    /// Keeps what is read, and gives its hash and length; nothing where it is
    /// longer than `max_bytes`.
    pub(super) fn put(&self, mut source: impl Read, max_bytes: u64) -> io::Result<Option<(String, u64)>> {
        let new = self.coming.join("new");
        let mut to = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        let (sha256, size) = copy(&mut source, &mut to, max_bytes)?;
        if max_bytes < size {
            fs::remove_file(&new)?;
            return Ok(None);
        }
        let path = self.path(&sha256);
        if let Some(above) = path.parent() {
            made(above)?;
        }
        fs::rename(&new, &path)?;
        Ok(Some((sha256, size)))
    }

    /// Takes away what nobody names any more.
    pub fn sweep(&self, named: &HashSet<String>) -> io::Result<()> {
        for above in fs::read_dir(&self.held)? {
            let above = above?;
            for rest in fs::read_dir(above.path())? {
                let rest = rest?;
                let hash = format!("{}{}", above.file_name().display(), rest.file_name().display());
                if !named.contains(&hash) {
                    fs::remove_file(rest.path())?;
                }
            }
        }
        Ok(())
    }
}

/// Copies and hashes; stops soon behind `max_bytes`.
pub(super) fn copy(source: &mut impl Read, to: &mut impl Write, max_bytes: u64) -> io::Result<(String, u64)> {
    let (mut hash, mut size, mut chunk) = (Sha256::new(), 0_u64, vec![0; CHUNK_BYTES]);
    while size <= max_bytes {
        let count = source.read(&mut chunk)?;
        let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else {
            break;
        };
        hash.update(read);
        to.write_all(read)?;
        size += count as u64;
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((sha256, size))
}

fn made(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}
