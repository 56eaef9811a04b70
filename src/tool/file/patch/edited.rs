//! A file that is to be changed: its text as a model knows it, and the way back
//! to its bytes.

use serde_json::{Value, json};

use crate::environment::FileError;
use crate::guard::file_access::Refusal;
use crate::guard::redact::{Mode, redact};
use crate::tool::Call;
use crate::tool::edit::diff;
use crate::tool::file::landing::{self, BOM, Existing, Put};
use crate::tool::file::target::{Target, error};
use crate::tool::file_views::{FileKey, FileNews, FileViews, Knowledge, Stamp};

/// What is held in memory to be changed.
pub(super) const MAX_BYTES: u64 = 16 << 20;

/// A file in the state in which it was read.
pub(super) struct Edited {
    pub(super) target: Target,
    /// Without the mark of the encoding; with plain line ends where the file has
    /// the other ones throughout.
    pub(super) text: String,
    existing: Existing,
}

impl Edited {
    /// The file behind a path that may be written; nothing when there is none.
    pub(super) async fn open(call: &Call, path: &str, crosses: bool) -> Result<(Target, Option<Self>), Value> {
        let target = Target::of(call, path).await?;
        let refusal = target.may_write();
        if let Err(first @ (Refusal::System(_) | Refusal::OwnConfig(_))) = refusal {
            return Err(error(first));
        }
        if !crosses {
            target.stays_in_profile().map_err(error)?;
        }
        refusal.map_err(error)?;
        let existing = Existing::of(&target).await?;
        if existing.replaced.is_none() {
            return Ok((target, None));
        }
        let bytes = target
            .workspace
            .read(&target.path, MAX_BYTES)
            .await
            .map_err(|failed| match failed {
                FileError::TooLong { .. } => error(format!(
                    "`{path}` is too long to be patched ({} MiB at most); change it with a command",
                    MAX_BYTES >> 20
                )),
                other => target.failed(&other),
            })?;
        let text = String::from_utf8(bytes).map_err(|_| {
            error(format!(
                "`{path}` is no UTF-8 text, and patching would damage it; change it with a command"
            ))
        })?;
        let mut edited = Self {
            target: Target::of(call, path).await?,
            text: String::new(),
            existing,
        };
        edited.take(&text);
        Ok((target, Some(edited)))
    }

    fn take(&mut self, text: &str) {
        let plain = text.strip_prefix(BOM).unwrap_or(text);
        // Line ends of both kinds stay as they are: each passage keeps its own.
        self.existing.has_crlf = !plain.replace("\r\n", "").contains('\n') && plain.contains("\r\n");
        self.text = if self.existing.has_crlf {
            plain.replace("\r\n", "\n")
        } else {
            plain.to_owned()
        };
    }

    /// A passage of a call as it would stand in the text.
    pub(super) fn passage(&self, text: &str) -> String {
        if self.existing.has_crlf {
            text.replace("\r\n", "\n")
        } else {
            text.to_owned()
        }
    }

    /// What must hold of the new text before anything is written.
    pub(super) fn accepts(&self, text: &str) -> Result<(), Value> {
        landing::is_well_formed(&self.target, text)
    }

    /// Writes the new text, unless the file changed since it was read, and makes
    /// sure that it lies there.
    pub(super) async fn write(&self, call: &Call, text: &str) -> Result<Put, Value> {
        let shown = &self.target.shown;
        let now = Existing::of(&self.target).await?;
        if now.replaced != self.existing.replaced {
            return Err(error(format!(
                "`{shown}` changed while it was being patched, so it was not written: read it again, then patch it"
            )));
        }
        let bytes = self.existing.dress(text).into_bytes();
        let length = bytes.len();
        let put = landing::put(call, &self.target, bytes, self.existing.before.as_deref()).await?;
        let written = self.target.workspace.read(&self.target.path, MAX_BYTES * 4).await;
        let lies_there = written.is_ok_and(|bytes| {
            bytes.len() == length
                && String::from_utf8_lossy(&bytes)
                    .replace("\r\n", "\n")
                    .ends_with(&text.replace("\r\n", "\n"))
        });
        if !lies_there {
            return Err(error(format!(
                "`{shown}` was written but does not hold the new text: something else writes it too. Read it again"
            )));
        }
        Ok(put)
    }

    /// What the session has seen of the file afterwards.
    pub(super) fn news(&self, put: &Put) -> Option<FileNews> {
        let (_, before) = self.existing.replaced.clone()?;
        put.landed.stamp.map(|stamp| FileNews::Edited {
            file: FileKey::of(&put.landed.path),
            before,
            stamp,
        })
    }

    pub(super) fn key(&self) -> Option<&(FileKey, Stamp)> {
        self.existing.replaced.as_ref()
    }

    /// What is said beside success: that the model may not know what it changed.
    pub(super) fn warning(&self, call: &Call) -> Option<String> {
        let (file, stamp) = self.key()?;
        let shown = &self.target.shown;
        match FileViews::parse(&call.seen_files).knowledge(file, *stamp) {
            Knowledge::NeverRead => Some(format!(
                "this session had not read `{shown}` before it changed it; read a file before you change it"
            )),
            Knowledge::Changed => Some(format!(
                "`{shown}` had changed on disk since this session last read it; another agent, a command or a person \
                 may have written it. What they wrote elsewhere in it is kept; read it again before the next change."
            )),
            Knowledge::Partial | Knowledge::Whole => None,
        }
    }
}

/// The change as a model sees it: secrets masked, nothing of files that are not
/// to be read.
pub(super) fn shown_diff(target: &Target, before: Option<&str>, after: Option<&str>) -> String {
    if target.may_read().is_err() {
        return format!("# Changed: {} (it may hold secrets and is not shown)\n", target.shown);
    }
    redact(&diff::unified(&target.shown, before, after), Mode::File)
}

/// A text of a file beside an error, by the same rules.
pub(super) fn shown_text(target: &Target, text: &str) -> String {
    match target.may_read() {
        Ok(()) => redact(text, Mode::File),
        Err(_) => String::new(),
    }
}

/// The refusal in the form of this tool.
pub(super) fn failure(refusal: Value) -> Value {
    let mut fields = json!({"success": false});
    if let (Some(fields), Value::Object(refusal)) = (fields.as_object_mut(), refusal) {
        fields.extend(refusal);
    }
    fields
}
