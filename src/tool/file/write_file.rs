//! `write_file`: puts text in the place of a whole file, in one step.
//!
//! Order of refusals: no path, no content, system files, the agent's own
//! configuration, content that is a display of `read_file`, logins, syntax that
//! a program could not read, what is outside the workspace. Nothing is written
//! unless all of them let it pass.

use std::io::Read;
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::display;
use super::syntax::Syntax;
use super::target::{self, Answer, Target, error};
use crate::base::text::first_chars;
use crate::environment::{FileError, Parents};
use crate::guard::file_access::Refusal;
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Host, Judged, Place, Spec, Tool};

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
                are kept. JSON and YAML files are checked first and not written when they are malformed.",
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

    fn unavailable(&self, _host: &Host) -> Option<String> {
        None
    }

    fn judge(&self, _arguments: &Value, _place: &Place<'_>, _host: &Host) -> Judged {
        Judged::Allow
    }

    fn subject(&self, arguments: &Value) -> String {
        target::argument(arguments).unwrap_or_default().to_owned()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async move {
            match write(&call).await {
                Ok(written) => Done {
                    result: written.to_string(),
                    ..Done::default()
                },
                Err(refused) => Done::failure(refused.to_string()),
            }
        })
    }
}

async fn write(call: &Call) -> Answer {
    let path = target::argument(&call.arguments).ok_or_else(|| error("`path` is missing: name the file to write"))?;
    let content = content(&call.arguments)?;
    let target = Target::of(call, path).await?;
    refuse(&target, content)?;
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
    let resolved = resolved(&target).await;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("bytes_written", json!(written));
    put("dirs_created", json!(dirs_created));
    if let Some(syntax) = Syntax::of(&target.path) {
        let message = format!("well-formed {}", syntax.name());
        put("lint", json!({"status": "ok", "message": message}));
    }
    put("resolved_path", json!(resolved));
    put("files_modified", json!([resolved]));
    Ok(Value::Object(fields))
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

fn refuse(target: &Target, content: &str) -> Result<(), Value> {
    let refusal = target.may_write();
    if let Err(first @ (Refusal::System(_) | Refusal::OwnConfig(_))) = refusal {
        return Err(error(first));
    }
    if display::is_numbered_display(content) {
        return Err(error(
            "the content is what read_file displays, with line numbers, so nothing was written: leave out the numbers \
             and bars and write the text itself",
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
}

impl Existing {
    async fn of(target: &Target) -> Result<Self, Value> {
        let file = match target.workspace.open_read(&target.path).await {
            Ok(file) => file,
            Err(FileError::Missing { .. }) => return Ok(Self::default()),
            Err(failed) => return Err(target.failed(&failed)),
        };
        target.may_write_opened(&target::real_path(&file, &target.path))?;
        let read = move || {
            let mut start = Vec::new();
            // A character has at most four bytes.
            let bytes = 4 * LOOKED_AT_CHARS as u64;
            file.take(bytes).read_to_end(&mut start).map(|_| start)
        };
        let start = tokio::task::spawn_blocking(read).await.map_err(error)?.map_err(error)?;
        let text = String::from_utf8_lossy(&start);
        Ok(Self {
            has_bom: text.starts_with(BOM),
            has_crlf: first_chars(&text, LOOKED_AT_CHARS).contains("\r\n"),
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

/// Where the file lies, links resolved.
async fn resolved(target: &Target) -> PathBuf {
    match target.workspace.open_read(&target.path).await {
        Ok(file) => target::real_path(&file, &target.path),
        // Gone or changed since; the name is still the right one to tell.
        Err(_) => crate::guard::file_access::normalised(Path::new(&target.path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::testing::Bench;

    async fn write_one(bench: &Bench, arguments: Value) -> Value {
        let done = bench.run(&WriteFile, arguments).await;
        let written: Value = serde_json::from_str(&done.result).unwrap();
        assert_eq!(done.failed, written.get("error").is_some(), "{written}");
        written
    }

    fn on_disk(bench: &Bench, path: &str) -> String {
        std::fs::read_to_string(bench.root().join(path)).unwrap()
    }

    #[tokio::test]
    async fn a_new_file_is_written_with_its_directories() {
        let bench = Bench::new().await;
        let written = write_one(&bench, json!({"path": "a/b/c.txt", "content": "한\n"})).await;
        let path = bench.root().join("a/b/c.txt");
        let whole = json!({
            "bytes_written": 4, "dirs_created": true, "resolved_path": path, "files_modified": [path],
        });
        assert_eq!(written, whole);
        assert_eq!(on_disk(&bench, "a/b/c.txt"), "한\n");
        let written = write_one(&bench, json!({"path": "a/b/c.txt", "content": ""})).await;
        assert_eq!(written["dirs_created"], false);
        assert_eq!(on_disk(&bench, "a/b/c.txt"), "");
    }

    #[tokio::test]
    async fn line_ends_mark_and_mode_of_the_old_file_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let bench = Bench::new().await;
        let path = bench.workspace().await.root().join("run.bat");
        std::fs::write(&path, "\u{feff}one\r\ntwo\r\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
        write_one(&bench, json!({"path": "run.bat", "content": "a\nb\r\n"})).await;
        assert_eq!(on_disk(&bench, "run.bat"), "\u{feff}a\r\nb\r\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o751);
    }

    #[tokio::test]
    async fn links_inside_are_followed_and_links_outside_are_not() {
        let bench = Bench::new().await;
        let root = bench.workspace().await.root().to_path_buf();
        std::fs::write(root.join("real.txt"), "old").unwrap();
        std::os::unix::fs::symlink("real.txt", root.join("inside")).unwrap();
        std::os::unix::fs::symlink("/tmp", root.join("outside")).unwrap();
        let written = write_one(&bench, json!({"path": "inside", "content": "new"})).await;
        assert_eq!(written["resolved_path"], json!(root.join("real.txt")));
        assert_eq!(on_disk(&bench, "real.txt"), "new");
        let written = write_one(&bench, json!({"path": "outside/hermes-test", "content": "new"})).await;
        assert!(
            written["error"].as_str().unwrap().contains("outside the workspace"),
            "{written}"
        );
    }

    #[tokio::test]
    async fn refusals_come_in_their_order_and_write_nothing() {
        let bench = Bench::new().await;
        std::fs::create_dir(bench.workspace().await.root().join("d")).unwrap();
        let shown = "1|a\n2|b";
        for (arguments, reason) in [
            (json!({"content": "x"}), "`path` is missing"),
            (json!({"path": "/etc/passwd"}), "`content` is missing"),
            (json!({"path": "/etc/passwd", "content": 7}), "must be text"),
            (
                json!({"path": "/etc/passwd", "content": shown}),
                "belongs to the system",
            ),
            (
                json!({"path": "~/.hermes/config.yaml", "content": shown}),
                "own configuration",
            ),
            (
                json!({"path": "~/.ssh/id_rsa", "content": shown}),
                "what read_file displays",
            ),
            (
                json!({"path": "~/.ssh/id_rsa", "content": "x"}),
                "credentials or logins",
            ),
            (
                json!({"path": "/home/alice/.netrc", "content": "x"}),
                "credentials or logins",
            ),
            (json!({"path": "/srv/x.json", "content": "{"}), "no well-formed JSON"),
            (json!({"path": "x.yml", "content": "a: b: c"}), "no well-formed YAML"),
            (json!({"path": "/srv/x.json", "content": "{}"}), "outside the workspace"),
            (json!({"path": "d", "content": "x"}), "is a directory"),
        ] {
            let written = write_one(&bench, arguments.clone()).await;
            assert!(
                written["error"].as_str().unwrap().contains(reason),
                "{arguments}: {written}"
            );
        }
        let left: Vec<_> = std::fs::read_dir(bench.root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["d"]);
    }

    #[tokio::test]
    async fn well_formed_data_is_written_and_said_to_be() {
        let bench = Bench::new().await;
        let written = write_one(&bench, json!({"path": "x.json", "content": "{\"a\": 1}"})).await;
        assert_eq!(written["lint"]["status"], "ok");
    }
}
