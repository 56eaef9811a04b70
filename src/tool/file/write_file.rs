//! `write_file`: puts text in the place of a whole file, in one step.
//!
//! Order of refusals: no path, no content, system files, the agent's own
//! configuration, another profile, content that is a display of `read_file`,
//! logins, syntax that a program could not read, what is outside the workspace.
//! Nothing is written unless all of them let it pass.

use std::io::Read;
use std::path::PathBuf;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::display;
use super::lint::{LINTED_BYTES, Linter};
use super::syntax::Syntax;
use super::target::{self, Answer, Answered, Target, error};
use super::warning::warning;
use crate::base::text::first_chars;
use crate::environment::{FileError, Parents};
use crate::guard::file_access::Refusal;
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::file_views::{FileKey, FileNews, FileViews, Stamp};
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool};

inventory::submit!(Registered(&WriteFile));

/// The part of a file that tells its line ends (the original's figure).
const LOOKED_AT_CHARS: usize = 4_096;
const BOM: &str = "\u{feff}";

struct WriteFile;

impl Tool for WriteFile {
    fn spec(&self) -> Spec {
        Spec {
            name: "write_file",
            toolset: "file",
            emoji: "✍️",
            description: "Writes a whole file: its old content is replaced, missing directories are made. Use this \
                instead of echo or heredocs in the terminal. Line ends and a byte-order mark of an existing file \
                are kept. JSON, YAML and TOML files are checked first and not written when they are malformed.",
            requires_env: &[],
            result_limit: ResultLimit::Chars(100_000),
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "The file: absolute, relative to the working directory, or with ~ for the workspace.",
                },
                "content": {"type": "string", "description": "The whole new content of the file."},
                "cross_profile": {
                    "type": "boolean",
                    "description": "true: write into another agent profile or a sandbox's copy of one. Only when the \
                        user asked for that.",
                    "default": false,
                },
            },
            "required": ["path", "content"],
        })
    }

    fn example(&self) -> Value {
        json!({"path": "notes.txt", "content": "one\ntwo\n"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Write
    }

    fn footprint(&self, arguments: &Value, place: &Place<'_>) -> Footprint {
        target::footprint(arguments, place, Footprint::Writes)
    }

    fn subject(&self, arguments: &Value) -> String {
        target::subject(arguments)
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async move { target::done(write(&call).await) })
    }
}

async fn write(call: &Call) -> Answer {
    let path = target::argument(&call.arguments).ok_or_else(|| error("`path` is missing: name the file to write"))?;
    let content = content(&call.arguments)?;
    let target = Target::of(call, path).await?;
    let crosses = call.arguments.get("cross_profile") == Some(&Value::Bool(true));
    refuse(&target, content, crosses)?;
    let existing = Existing::of(&target).await?;
    let bytes = existing.dress(content).into_bytes();
    let written = bytes.len();
    let dirs_created = match target.path.parent() {
        Some(parent) => !target
            .workspace
            .exists(parent)
            .await
            .map_err(|failed| target.failed(&failed))?,
        None => false,
    };
    let done = target
        .workspace
        .write_atomic(&target.path, bytes, Parents::Create)
        .await;
    done.map_err(|failed| target.failed(&failed))?;
    let landed = Landed::of(&target).await;
    let seen = FileViews::parse(&call.seen_files);
    let lint = lint(call, &target, &landed, existing.before).await;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("bytes_written", json!(written));
    put("dirs_created", json!(dirs_created));
    if let Some(lint) = lint {
        put("lint", lint);
    }
    put("resolved_path", json!(landed.path));
    put("files_modified", json!([landed.path]));
    if let Some(warning) = warning(&seen, existing.replaced.as_ref(), &target, &landed.path) {
        put("_warning", json!(warning));
    }
    Ok(Answered {
        fields: Value::Object(fields),
        news: landed.news(),
    })
}

/// What is said of the new content: data was checked before it was written, and
/// programs are checked where they lie.
async fn lint(call: &Call, target: &Target, landed: &Landed, before: Option<Vec<u8>>) -> Option<Value> {
    if let Some(syntax) = Syntax::of(&target.path) {
        let message = format!("well-formed {}", syntax.name());
        return Some(json!({"status": "ok", "message": message}));
    }
    let linter = Linter::of(&landed.path)?;
    if landed.stamp.is_none_or(|stamp| LINTED_BYTES as u64 <= stamp.bytes) {
        return Some(json!({"status": "skipped", "message": "the file is too long to be checked"}));
    }
    Some(linter.field(call, target, &landed.path, before).await)
}

/// Models drop the content of a long call more often than they mean to write
/// nothing.
fn content(arguments: &Value) -> Result<&str, Value> {
    match arguments.get("content") {
        None | Some(Value::Null) => Err(error(
            "`content` is missing, so nothing was written. It may have been cut off: send the call again with the \
             whole content, or write the file in smaller parts; an empty file is `\"content\": \"\"`",
        )),
        Some(Value::String(content)) => Ok(content),
        Some(_) => Err(error("`content` must be text, so nothing was written")),
    }
}

fn refuse(target: &Target, content: &str, crosses: bool) -> Result<(), Value> {
    let refusal = target.may_write();
    if let Err(first @ (Refusal::System(_) | Refusal::OwnConfig(_))) = refusal {
        return Err(error(first));
    }
    if !crosses {
        target.stays_in_profile().map_err(error)?;
    }
    if display::is_numbered_display(content) {
        return Err(error(
            "the content is what read_file displays, with line numbers, so nothing was written: leave out the numbers \
             and bars and write the text itself",
        ));
    }
    if display::is_unchanged_notice(content) {
        return Err(error(
            "the content is what read_file says of a file that did not change, so nothing was written: write the \
             text itself, as an earlier result shows it",
        ));
    }
    refusal.map_err(error)?;
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

/// How the file is written that is about to be replaced.
#[derive(Default)]
struct Existing {
    has_bom: bool,
    has_crlf: bool,
    /// Which file it is and in what state, if there is one.
    replaced: Option<(FileKey, Stamp)>,
    /// Its content, where a checker will want to compare.
    before: Option<Vec<u8>>,
}

impl Existing {
    async fn of(target: &Target) -> Result<Self, Value> {
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
    fn dress(&self, content: &str) -> String {
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
struct Landed {
    /// Links resolved.
    path: PathBuf,
    stamp: Option<Stamp>,
}

impl Landed {
    async fn of(target: &Target) -> Self {
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

    fn news(&self) -> Option<FileNews> {
        self.stamp.map(|stamp| FileNews::Written {
            file: FileKey::of(&self.path),
            stamp,
        })
    }
}

#[cfg(test)]
mod tests;
