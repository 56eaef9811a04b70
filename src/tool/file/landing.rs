//! Putting text where a file is, as every tool that writes does it: in the old
//! file's manner, checked before and after, in one step.

use std::io::Read;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::lint::{LINTED_BYTES, Linter};
use super::syntax::Syntax;
use super::target::{self, Target, error};
use crate::base::text::first_chars;
use crate::environment::{FileError, Parents};
use crate::model::artifact::{Kept, hex};
use crate::tool::Call;
use crate::tool::artifacts::kept_file;
use crate::tool::file_views::{FileKey, FileNews, Stamp};

/// The part of a file that tells its line ends (the original's figure).
const LOOKED_AT_CHARS: usize = 4_096;
pub(super) const BOM: &str = "\u{feff}";

/// A file that was written.
pub(super) struct Put {
    pub(super) dirs_created: bool,
    pub(super) landed: Landed,
    pub(super) lint: Option<Value>,
    /// The file as something the call made, where it lies in the workspace.
    pub(super) kept: Option<Kept>,
}

/// Writes the bytes and looks at what lies there then; `before` is what a
/// checker compares with.
pub(super) async fn put(call: &Call, target: &Target, bytes: Vec<u8>, before: Option<&[u8]>) -> Result<Put, Value> {
    let workspace = &target.workspace;
    let dirs_created = match target.path.parent() {
        Some(parent) => !workspace
            .exists(parent)
            .await
            .map_err(|failed| target.failed(&failed))?,
        None => false,
    };
    let (size, sha256) = (bytes.len(), hex(&Sha256::digest(&bytes)));
    let done = workspace.write_atomic(&target.path, bytes, Parents::Create).await;
    done.map_err(|failed| target.failed(&failed))?;
    let landed = Landed::of(target).await;
    Ok(Put {
        dirs_created,
        kept: kept_file(workspace.root(), &landed.path, size as u64, sha256),
        lint: lint(call, target, &landed, before).await,
        landed,
    })
}

/// Data that no program could read is not written.
pub(super) fn is_well_formed(target: &Target, content: &str) -> Result<(), Value> {
    let syntax = Syntax::of(&target.path);
    if let Some((syntax, fault)) = syntax.and_then(|syntax| Some((syntax, syntax.fault(content)?))) {
        let name = syntax.name();
        return Err(json!({
            "error": format!("the content is no well-formed {name}, so nothing was written: {fault}"),
            "lint": {"status": "error", "output": fault},
        }));
    }
    Ok(())
}

/// What is said of the new content: data was checked before it was written, and
/// programs are checked where they lie.
async fn lint(call: &Call, target: &Target, landed: &Landed, before: Option<&[u8]>) -> Option<Value> {
    if let Some(syntax) = Syntax::of(&target.path) {
        let message = format!("well-formed {}", syntax.name());
        return Some(json!({"status": "ok", "message": message}));
    }
    let linter = Linter::of(&landed.path)?;
    if landed.stamp.is_none_or(|stamp| LINTED_BYTES as u64 <= stamp.bytes) {
        return Some(json!({"status": "skipped", "message": "the file is too long to be checked"}));
    }
    Some(
        linter
            .field(call, target, &landed.path, before.map(<[u8]>::to_vec))
            .await,
    )
}

/// How the file is written that is about to be replaced.
#[derive(Default)]
pub(super) struct Existing {
    pub(super) has_bom: bool,
    pub(super) has_crlf: bool,
    /// Which file it is and in what state, if there is one.
    pub(super) replaced: Option<(FileKey, Stamp)>,
    /// Its content, where a checker will want to compare.
    pub(super) before: Option<Vec<u8>>,
}

impl Existing {
    pub(super) async fn of(target: &Target) -> Result<Self, Value> {
        let file = match target.workspace.open_read(&target.path).await {
            Ok(file) => file,
            Err(FileError::Missing { .. }) => return Ok(Self::default()),
            Err(failed) => return Err(target.failed(&failed)),
        };
        let real = target::real_path(&file, &target.path);
        target.may_write_opened(&real)?;
        let stamp = target::stamp(&file).map_err(error)?;
        let is_linted = Linter::of(&real).is_some();
        let read = move || {
            let mut start = Vec::new();
            // A character has at most four bytes.
            let bytes = if is_linted { LINTED_BYTES } else { 4 * LOOKED_AT_CHARS };
            file.take(bytes as u64).read_to_end(&mut start).map(|_| start)
        };
        let start = tokio::task::spawn_blocking(read).await.map_err(error)?.map_err(error)?;
        let text = String::from_utf8_lossy(&start);
        Ok(Self {
            has_bom: text.starts_with(BOM),
            has_crlf: first_chars(&text, LOOKED_AT_CHARS).contains("\r\n"),
            replaced: Some((FileKey::of(&real), stamp)),
            before: (is_linted && start.len() < LINTED_BYTES).then_some(start),
        })
    }

    /// The new content with the marks of the old.
    pub(super) fn dress(&self, content: &str) -> String {
        let bom = if self.has_bom && !content.starts_with(BOM) {
            BOM
        } else {
            ""
        };
        if self.has_crlf {
            return format!("{bom}{}", content.replace("\r\n", "\n").replace('\n', "\r\n"));
        }
        format!("{bom}{content}")
    }
}

/// The file as it lies there now.
pub(super) struct Landed {
    /// Links resolved.
    pub(super) path: PathBuf,
    pub(super) stamp: Option<Stamp>,
}

impl Landed {
    pub(super) async fn of(target: &Target) -> Self {
        match target.workspace.open_read(&target.path).await {
            Ok(file) => Self {
                path: target::real_path(&file, &target.path),
                stamp: target::stamp(&file).ok(),
            },
            // Gone or changed since; the name is still the right one to tell.
            Err(_) => Self {
                path: crate::guard::file_access::normalised(&target.path),
                stamp: None,
            },
        }
    }

    pub(super) fn news(&self) -> Option<FileNews> {
        self.stamp.map(|stamp| FileNews::Written {
            file: FileKey::of(&self.path),
            stamp,
        })
    }
}
