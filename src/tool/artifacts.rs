//! Files that calls wrote, as the artifacts that are told of them: where they are,
//! and the hash of what they held then.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::environment::Workspace;
use crate::model::artifact::{Held, Kept, hex};

/// Read at once while a file is hashed.
const CHUNK_BYTES: usize = 256 << 10;

/// A file that was written; nothing where it lies outside of the workspace.
pub fn kept_file(root: &Path, path: &Path, size: u64, sha256: String) -> Option<Kept> {
    let inside = path.strip_prefix(root).ok()?.to_str()?;
    let name = path.file_name()?.to_str()?;
    Some(Kept {
        name: name.to_owned(),
        media_type: mime_guess::from_path(path).first_or_octet_stream().to_string(),
        held: Held::File {
            path: inside.to_owned(),
            size: i64::try_from(size).ok()?,
            sha256,
        },
    })
}

/// A file of the workspace that somebody says was written.
pub async fn named_file(workspace: &Workspace, path: &str) -> Option<Kept> {
    let whole = workspace.root().join(path);
    let file = workspace.open_read(&whole).await.ok()?;
    let digest = tokio::task::spawn_blocking(move || digest(file)).await.ok()?;
    let (size, sha256) = digest.ok()?;
    kept_file(workspace.root(), &whole, size, sha256)
}

/// Length and SHA-256 of what follows in the file.
pub fn digest(mut file: impl Read) -> std::io::Result<(u64, String)> {
    let (mut hash, mut size, mut chunk) = (Sha256::new(), 0, vec![0; CHUNK_BYTES]);
    loop {
        let count = file.read(&mut chunk)?;
        let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else {
            return Ok((size, hex(&hash.finalize())));
        };
        hash.update(read);
        size += count as u64;
    }
}
