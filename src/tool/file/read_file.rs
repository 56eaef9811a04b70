//! `read_file`: a page of a text file with numbered lines, secrets masked.
//!
//! Order of refusals: no path, devices, kinds that are not text, files that may
//! hold secrets, what is outside the workspace. The name is judged first and,
//! once it is open, the file that links led to. Lines that the model has seen
//! and that did not change since are not shown again.

use std::fs::File;
use std::io::Seek;
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::page::{self, Bounds, Content, Page, Range};
use super::target::{self, Answer, Answered, Target, error};
use super::{binary, display, extract, similar};
use crate::environment::FileError;
use crate::guard::file_access::Refusal;
use crate::guard::redact::{Mode, redact};
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::file_views::{FileKey, FileNews, FileViews, Lines, Repeat, Stamp};
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool};

inventory::submit!(Registered(&ReadFile));

/// Bounds of the original.
const DEFAULT_LINES: usize = 500;
const MAX_LINES: usize = 2_000;
/// From here on a wide page of a file deserves a word of advice.
const LARGE_BYTES: u64 = 512_000;
const WIDE_LINES: usize = 200;

pub(super) struct ReadFile;

impl Tool for ReadFile {
    fn spec(&self) -> Spec {
        Spec {
            name: "read_file",
            toolset: "file",
            emoji: "📖",
            description: "Reads a text file, a page at a time. Every line comes as `number|text`; the number and the \
                bar are not part of the file. Use this instead of cat, head or tail. Long files: go on with `offset` \
                as the result says. The text of notebooks (.ipynb), documents (.docx) and \
                spreadsheets (.xlsx) is taken out of them. Images and other binary files cannot be read.",
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

    fn subject(&self, arguments: &Value) -> String {
        target::subject(arguments)
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async move {
            let done = target::done(read(&call).await);
            Done {
                cancelled: done.failed && call.cancel.is_cancelled(),
                ..done
            }
        })
    }
}

async fn read(call: &Call) -> Answer {
    let range = range(&call.arguments, call.host.files.max_lines);
    let path = target::argument(&call.arguments).ok_or_else(|| error("`path` is missing: name the file to read"))?;
    let target = Target::of(call, path).await?;
    let refusal = target.may_read();
    if let Err(device @ Refusal::Device(_)) = refusal {
        return Err(error(device));
    }
    let document = extract::Kind::of(&target.path);
    let is_binary = binary::has_binary_extension(&target.path);
    if is_binary && document.is_none() {
        return Err(not_text(&target).await);
    }
    refusal.map_err(error)?;
    let file = match target.workspace.open_read(&target.path).await {
        Ok(file) => file,
        Err(FileError::Missing { .. }) => return Err(missing(&target).await),
        Err(failed) => return Err(target.failed(&failed)),
    };
    let real = target::real_path(&file, &target.path);
    target.may_read_opened(&real)?;
    let stamp = target::stamp(&file).map_err(error)?;
    let asked = Asked {
        file: FileKey::of(&real),
        lines: Lines {
            offset: range.offset,
            limit: range.limit,
        },
        stamp,
    };
    let repeat = FileViews::parse(&call.seen_files).repeat(&asked.file, asked.lines, stamp);
    match repeat {
        Repeat::Unchanged => return Ok(asked.unchanged(path)),
        Repeat::Blocked(times) => return Err(blocked(path, times)),
        Repeat::No | Repeat::Often(_) => {}
    }
    let bounds = Bounds {
        line_chars: call.host.files.line_chars,
        page_chars: call.host.files.page_chars,
    };
    let cancel = call.cancel.clone();
    let scan = move || scan(file, document, range, bounds, &|| cancel.is_cancelled());
    let (content, is_extracted) = blocking(scan).await.map_err(error)?;
    if is_binary && !is_extracted {
        return Err(not_text(&target).await);
    }
    match content {
        Content::Text(page) => {
            let mut fields = shown(&page, range, stamp.bytes);
            if is_extracted {
                fields.insert("extracted_document".to_owned(), json!(true));
            }
            if let Repeat::Often(times) = repeat {
                fields.insert("_warning".to_owned(), json!(often(times)));
            }
            Ok(asked.shown(Value::Object(fields), &page))
        }
        Content::Binary => Err(json!({
            "error": format!("`{path}` holds binary content, which cannot be read as text"),
            "is_binary": true,
            "file_size": stamp.bytes,
        })),
    }
}

/// A page of the file, and whether it is of the text that was taken out of a
/// document. What turns out to be no such document is read as it is.
fn scan(
    mut file: File,
    document: Option<extract::Kind>,
    range: Range,
    bounds: Bounds,
    is_stopped: &dyn Fn() -> bool,
) -> std::io::Result<(Content, bool)> {
    let text = match document {
        Some(kind) => kind.text(file.try_clone()?, is_stopped),
        None => return Ok((page::read(file, range, bounds, is_stopped)?, false)),
    };
    match text {
        Ok(text) => Ok((page::read(text.as_bytes(), range, bounds, is_stopped)?, true)),
        Err(_) => {
            // The copy shares its place in the file.
            file.rewind()?;
            Ok((page::read(file, range, bounds, is_stopped)?, false))
        }
    }
}

/// A page that was asked for, in the state in which its file is.
struct Asked {
    file: FileKey,
    lines: Lines,
    stamp: Stamp,
}

impl Asked {
    fn unchanged(self, path: &str) -> Answered {
        Answered {
            fields: json!({
                "status": "unchanged",
                "message": display::UNCHANGED,
                "path": path,
                "dedup": true,
                "content_returned": false,
            }),
            news: Some(FileNews::Repeated {
                file: self.file,
                lines: self.lines,
            }),
            kept: None,
        }
    }

    fn shown(self, fields: Value, page: &Page) -> Answered {
        let is_first = self.lines.offset == 1;
        Answered {
            fields,
            news: Some(FileNews::Shown {
                whole: is_first
                    && page.lines.len() == page.total_lines
                    && page.counted_bytes.is_none()
                    && !page.has_cut_lines,
                file: self.file,
                lines: self.lines,
                stamp: self.stamp,
            }),
            kept: None,
        }
    }
}

fn blocked(path: &str, times: u32) -> Value {
    json!({
        "error": format!(
            "BLOCKED: `{path}` was asked for with the same lines {times} times in a row, and the answer stands above. \
             Work with what you have, read other lines, or go on to the next step."
        ),
        "path": path,
        "already_read": times,
    })
}

fn often(times: u32) -> String {
    format!(
        "these lines were read {times} times in a row; the next time they are not shown. If the file keeps changing, \
         do something else first."
    )
}

/// The refusal of a file that its name says is no text. Of images the model is
/// told what they are, for there may be a tool that sees them.
async fn not_text(target: &Target) -> Value {
    let path = &target.shown;
    let mut refusal = Map::new();
    let mut put = |name: &str, value: Value| drop(refusal.insert(name.to_owned(), value));
    let text = format!(
        "`{path}` is a binary file, which cannot be read as text; use `vision_analyze` for images where it is offered, \
         or `terminal` with a program that understands it"
    );
    put("error", json!(text));
    if binary::is_image(&target.path)
        && target.may_read().is_ok()
        && let Ok(metadata) = target.workspace.metadata(&target.path).await
    {
        put("is_image", json!(true));
        put("is_binary", json!(true));
        put("file_size", json!(metadata.bytes));
        put(
            "hint",
            json!("this is an image: `vision_analyze` can look at it where it is offered"),
        );
    }
    Value::Object(refusal)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|failed| Err(std::io::Error::other(failed)))
}

/// Numbers that make no sense are taken for the defaults.
fn range(arguments: &Value, max_lines: usize) -> Range {
    let number = |name: &str, default: usize| {
        let value = &arguments[name];
        let text = || value.as_str().and_then(|text| text.trim().parse::<i64>().ok());
        let number = value.as_i64().or_else(text);
        number.map_or(default, |number| usize::try_from(number.max(1)).unwrap_or(default))
    };
    Range {
        offset: number("offset", 1),
        limit: number("limit", DEFAULT_LINES).min(max_lines),
    }
}

fn shown(page: &Page, range: Range, bytes: u64) -> Map<String, Value> {
    let last = range.offset.saturating_sub(1).saturating_add(page.lines.len());
    let (total, is_guess) = page.lines_of(bytes);
    let truncated = last < total && range.offset <= total;
    let next = last.saturating_add(1);
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("content", json!(numbered(&page.lines, range.offset)));
    put("total_lines", json!(total));
    if is_guess {
        put("total_lines_estimated", json!(true));
    }
    put("file_size", json!(bytes));
    put("truncated", json!(truncated || page.is_clamped));
    if page.is_full {
        put("truncated_by", json!("bytes"));
        put("next_offset", json!(next));
    }
    let cut = "this line alone is longer than a page and was cut; ";
    let cut = if page.is_clamped { cut } else { "" };
    if truncated {
        let text = format!(
            "{cut}lines {} to {last} of {total}; use offset={next} to read on",
            range.offset
        );
        put("hint", json!(text));
    } else if page.is_clamped {
        put("hint", json!(format!("{cut}it is the last of {total}")));
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
    fields
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
mod tests;
