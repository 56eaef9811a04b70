//! `read_file`: a page of a text file with numbered lines, secrets masked.
//!
//! Order of refusals: no path, devices, kinds that are not text, files that may
//! hold secrets, what is outside the workspace. The name is judged first and,
//! once it is open, the file that links led to.

use std::fs::File;
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::page::{self, Content, Page, Range};
use super::target::{self, Answer, Target, error};
use super::{binary, similar};
use crate::environment::FileError;
use crate::guard::file_access::Refusal;
use crate::guard::redact::{Mode, redact};
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Host, Judged, Place, Spec, Tool};

inventory::submit!(Registered(&ReadFile));

/// Bounds of the original.
const DEFAULT_LINES: usize = 500;
const MAX_LINES: usize = 2_000;
/// From here on a wide page of a file deserves a word of advice.
const LARGE_BYTES: u64 = 512_000;
const WIDE_LINES: usize = 200;

struct ReadFile;

impl Tool for ReadFile {
    fn spec(&self) -> Spec {
        Spec {
            name: "read_file",
            toolset: "file",
            emoji: "📖",
            description: "Reads a text file, a page at a time. Every line comes as `number|text`; the number and the \
                bar are not part of the file. Use this instead of cat, head or tail. Long files: go on with `offset` \
                as the result says. Images and other binary files cannot be read.",
            requires_env: &[],
            // Stored results are read with this tool; storing its own would go in circles.
            result_limit: ResultLimit::Unlimited,
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
                "offset": {
                    "type": "integer",
                    "description": "The first line to read, counted from 1.",
                    "default": 1,
                    "minimum": 1,
                },
                "limit": {
                    "type": "integer",
                    "description": "How many lines to read at most.",
                    "default": DEFAULT_LINES,
                    "maximum": MAX_LINES,
                },
            },
            "required": ["path"],
        })
    }

    fn example(&self) -> Value {
        json!({"path": "notes.txt"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Read
    }

    fn footprint(&self, arguments: &Value, place: &Place<'_>) -> Footprint {
        target::footprint(arguments, place, Footprint::Reads)
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
            match read(&call).await {
                Ok(page) => Done {
                    result: page.to_string(),
                    ..Done::default()
                },
                Err(refused) => Done {
                    cancelled: call.cancel.is_cancelled(),
                    ..Done::failure(refused.to_string())
                },
            }
        })
    }
}

async fn read(call: &Call) -> Answer {
    let range = range(&call.arguments);
    let path = target::argument(&call.arguments).ok_or_else(|| error("`path` is missing: name the file to read"))?;
    let target = Target::of(call, path).await?;
    let refusal = target.may_read();
    if let Err(device @ Refusal::Device(_)) = refusal {
        return Err(error(device));
    }
    if binary::has_binary_extension(&target.path) {
        return Err(error(format!(
            "`{path}` is a binary file, which cannot be read as text; use `terminal` with a program that understands it"
        )));
    }
    refusal.map_err(error)?;
    let file = match target.workspace.open_read(&target.path).await {
        Ok(file) => file,
        Err(FileError::Missing { .. }) => return Err(missing(&target).await),
        Err(failed) => return Err(target.failed(&failed)),
    };
    target.may_read_opened(&target::real_path(&file, &target.path))?;
    let bytes = file.metadata().map_err(error)?.len();
    match scan(file, range, call.cancel.clone()).await.map_err(error)? {
        Content::Text(page) => Ok(shown(&page, range, bytes)),
        Content::Binary => Err(json!({
            "error": format!("`{path}` holds binary content, which cannot be read as text"),
            "is_binary": true,
            "file_size": bytes,
        })),
    }
}

async fn scan(file: File, range: Range, cancel: CancellationToken) -> std::io::Result<Content> {
    let work = move || page::read(file, range, || cancel.is_cancelled());
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|failed| Err(std::io::Error::other(failed)))
}

/// Numbers that make no sense are taken for the defaults.
fn range(arguments: &Value) -> Range {
    let number = |name: &str, default: usize| {
        let value = &arguments[name];
        let text = || value.as_str().and_then(|text| text.trim().parse::<i64>().ok());
        let number = value.as_i64().or_else(text);
        number.map_or(default, |number| usize::try_from(number.max(1)).unwrap_or(default))
    };
    Range {
        offset: number("offset", 1),
        limit: number("limit", DEFAULT_LINES).min(MAX_LINES),
    }
}

fn shown(page: &Page, range: Range, bytes: u64) -> Value {
    let last = range.offset.saturating_sub(1).saturating_add(page.lines.len());
    let truncated = last < page.total_lines && range.offset <= page.total_lines;
    let (next, total) = (last.saturating_add(1), page.total_lines);
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("content", json!(numbered(&page.lines, range.offset)));
    put("total_lines", json!(total));
    put("file_size", json!(bytes));
    put("truncated", json!(truncated));
    if page.is_full {
        put("truncated_by", json!("bytes"));
        put("next_offset", json!(next));
    }
    if truncated {
        let text = format!(
            "lines {} to {last} of {total}; use offset={next} to read on",
            range.offset
        );
        put("hint", json!(text));
    } else if page.lines.is_empty() && 0 < total {
        put(
            "hint",
            json!(format!("the file has {total} lines; offset is behind its end")),
        );
    }
    if truncated && LARGE_BYTES < bytes && WIDE_LINES < range.limit {
        let advice = "this is a large file: read the parts you need with offset and a small limit";
        put("_hint", json!(advice));
    }
    put("is_binary", json!(false));
    put("is_image", json!(false));
    Value::Object(fields)
}

/// The lines with their numbers, secrets masked. A secret of several lines
/// becomes one; the lines behind it keep the numbers they have in the file.
fn numbered(lines: &[String], first: usize) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let redacted = redact(&lines.join("\n"), Mode::File);
    let mut at = 0;
    let mut content = Vec::new();
    for line in redacted.split('\n') {
        let rest = lines.get(at..).unwrap_or_default();
        if !line.contains("«redacted:") {
            at += rest.iter().position(|original| original == line).unwrap_or(0);
        }
        content.push(format!("{}|{line}", first.saturating_add(at)));
        at += 1;
    }
    content.join("\n")
}

async fn missing(target: &Target) -> Value {
    let directory = target.path.parent().unwrap_or(Path::new("/"));
    let wanted = target.path.file_name().unwrap_or_default().to_string_lossy();
    // Without a directory there is nothing to suggest.
    let entries = target.workspace.list_dir(directory).await.unwrap_or_default();
    let found = similar::similar(&wanted, entries.iter().map(|entry| entry.name.as_str()));
    let found: Vec<PathBuf> = found.into_iter().map(|name| directory.join(name)).collect();
    json!({"error": format!("File not found: {}", target.shown), "similar_files": found})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Parents;
    use crate::tool::testing::Bench;

    async fn bench(files: &[(&str, &str)]) -> Bench {
        let bench = Bench::new().await;
        let workspace = bench.workspace().await;
        for (path, content) in files {
            let bytes = content.as_bytes().to_vec();
            workspace
                .write_atomic(Path::new(path), bytes, Parents::Create)
                .await
                .unwrap();
        }
        bench
    }

    async fn read_one(bench: &Bench, arguments: Value) -> Value {
        let done = bench.run(&ReadFile, arguments).await;
        let read: Value = serde_json::from_str(&done.result).unwrap();
        assert_eq!(done.failed, read.get("error").is_some(), "{read}");
        read
    }

    #[tokio::test]
    async fn a_file_comes_with_numbered_lines() {
        let bench = bench(&[("a.txt", "one\ntwo\nthree\n")]).await;
        let read = read_one(&bench, json!({"path": "a.txt"})).await;
        let whole = json!({
            "content": "1|one\n2|two\n3|three", "total_lines": 3, "file_size": 14, "truncated": false,
            "is_binary": false, "is_image": false,
        });
        assert_eq!(read, whole);
        let read = read_one(&bench, json!({"path": "~/a.txt", "offset": 2, "limit": "1"})).await;
        assert_eq!(read["content"], "2|two");
        assert_eq!(read["hint"], "lines 2 to 2 of 3; use offset=3 to read on");
        let read = read_one(&bench, json!({"path": "a.txt", "offset": "many", "limit": -4})).await;
        assert_eq!(read["content"], "1|one");
        let read = read_one(&bench, json!({"path": "a.txt", "offset": 9})).await;
        assert_eq!((&read["content"], &read["truncated"]), (&json!(""), &json!(false)));
        assert_eq!(read["hint"], "the file has 3 lines; offset is behind its end");
    }

    #[tokio::test]
    async fn a_page_that_is_full_says_where_to_go_on() {
        let bench = bench(&[("long.txt", &format!("{}\n", "x".repeat(1_500)).repeat(600))]).await;
        let read = read_one(&bench, json!({"path": "long.txt"})).await;
        let next = read["next_offset"].as_u64().unwrap();
        assert_eq!(
            (&read["truncated_by"], &read["truncated"]),
            (&json!("bytes"), &json!(true))
        );
        assert!(read["content"].as_str().unwrap().ends_with('x') && read["_hint"].is_string());
        let read = read_one(&bench, json!({"path": "long.txt", "offset": next, "limit": 1})).await;
        assert!(read["content"].as_str().unwrap().starts_with(&format!("{next}|x")));
    }

    #[tokio::test]
    async fn secrets_are_masked_and_later_lines_keep_their_numbers() {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
        let marker = ["PRIVATE", "KEY"].join(" ");
        let file = format!("first\n-----BEGIN {marker}-----\n{body}\n{body}\n-----END {marker}-----\nlast\n");
        let bench = bench(&[("key.txt", &file)]).await;
        let read = read_one(&bench, json!({"path": "key.txt"})).await;
        let content = read["content"].as_str().unwrap();
        assert!(content.contains("«redacted:") && !content.contains("MIIE"), "{content}");
        assert!(
            content.starts_with("1|first\n2|") && content.ends_with("\n6|last"),
            "{content}"
        );
    }

    #[tokio::test]
    async fn what_is_not_to_be_read_is_refused_with_the_reason() {
        let bench = bench(&[(".env", "A=1"), ("a.png", "x"), ("blob", "\0\0\0\u{1}"), ("d/x", "")]).await;
        std::os::unix::fs::symlink(".env", bench.root().join("plain.txt")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", bench.root().join("out.txt")).unwrap();
        for (path, reason) in [
            ("/dev/zero", "device"),
            ("a.png", "binary file"),
            (".env", "may hold secrets"),
            ("plain.txt", "may hold secrets"),
            ("~/.hermes/auth.json", "may hold secrets"),
            ("blob", "binary content"),
            ("/etc/hostname", "outside the workspace"),
            ("out.txt", "outside the workspace"),
            ("../../x", "outside the workspace"),
            ("d", "is a directory"),
            ("", "`path` is missing"),
        ] {
            let read = read_one(&bench, json!({"path": path})).await;
            assert!(read["error"].as_str().unwrap().contains(reason), "{path}: {read}");
        }
    }

    #[tokio::test]
    async fn a_missing_file_comes_with_names_like_it() {
        let bench = bench(&[("d/notes.md", ""), ("d/other.rs", "")]).await;
        let read = read_one(&bench, json!({"path": "d/notes.txt"})).await;
        assert_eq!(read["error"], "File not found: d/notes.txt");
        assert_eq!(read["similar_files"], json!([bench.root().join("d/notes.md")]));
        let read = read_one(&bench, json!({"path": "nowhere/notes.txt"})).await;
        assert_eq!(read["similar_files"], json!([]));
    }

    #[tokio::test]
    async fn a_cancelled_read_ends_as_cancelled() {
        let bench = bench(&[("a.txt", "one")]).await;
        let call = bench.call(json!({"path": "a.txt"}));
        call.cancel.cancel();
        assert!(ReadFile.run(call).await.cancelled);
    }
}
