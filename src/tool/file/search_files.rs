//! `search_files`: lines that match a pattern, or files by their names.
//!
//! Results come in the order of the paths (names: newest first), so that a page
//! follows the one before. Files that are not to be read are left out before
//! they are looked at: whether something is in them is a secret too.

mod shown;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::search::content::{Looking, Results};
use super::search::names::{Names, names};
use super::search::walk::Tree;
use super::search::{Leash, Wanted, Window};
use super::similar;
use super::target::{self, Target, error};
use crate::environment::{EntryKind, FileError};
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::file_views::{FileKey, FileNews, FileViews, Repeat};
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Place, Spec, Tool, ToolWrites};

inventory::submit!(Registered(&SearchFiles));

const LIMIT: usize = 50;
/// More would not fit into a result.
const MAX_LIMIT: usize = 1_000;
/// As far as results are kept in order; who needs more needs another pattern.
const MAX_OFFSET: usize = 10_000;
const MAX_CONTEXT: usize = 20;
/// The original's figure.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_PATTERN_BYTES: usize = 64 << 10;

struct SearchFiles;

impl Tool for SearchFiles {
    fn spec(&self) -> Spec {
        Spec {
            name: "search_files",
            toolset: "file",
            emoji: "🔎",
            description: "Searches the workspace; use it instead of grep, rg, find or ls in the terminal. target \
                \"content\" finds lines that match a regular expression (file_glob limits the files, output_mode: \
                content, files_only or count), target \"files\" finds files by a glob, newest first. Hidden files and \
                what ignore files name are left out. Results come in pages: see limit and offset.",
            requires_env: &[],
            result_limit: ResultLimit::Chars(100_000),
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "A regular expression for content; a glob such as *.rs or src/**/test_* for files.",
                },
                "target": {
                    "type": "string",
                    "enum": ["content", "files"],
                    "description": "What to look at: the lines of files, or their names.",
                    "default": "content",
                },
                "path": {
                    "type": "string",
                    "description": "The directory or file to search; left out: where the session stands.",
                    "default": ".",
                },
                "file_glob": {"type": "string", "description": "Only files that match it, e.g. *.py (content only)."},
                "limit": {"type": "integer", "description": "Results of one page.", "default": 50, "minimum": 1},
                "offset": {"type": "integer", "description": "Results to pass over.", "default": 0, "minimum": 0},
                "output_mode": {
                    "type": "string",
                    "enum": ["content", "files_only", "count"],
                    "description": "Lines, files that have any, or how many each has (content only).",
                    "default": "content",
                },
                "context": {
                    "type": "integer",
                    "description": "Lines shown before and after each match.",
                    "default": 0,
                    "minimum": 0,
                },
            },
            "required": ["pattern"],
        })
    }

    fn example(&self) -> Value {
        json!({"pattern": "one"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Read
    }

    fn footprint(&self, arguments: &Value, place: &Place<'_>) -> Footprint {
        Footprint::Reads(vec![target::normal(root(arguments), place)])
    }

    fn subject(&self, arguments: &Value) -> String {
        arguments["pattern"].as_str().unwrap_or_default().to_owned()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async move {
            match search(&call).await {
                Ok(done) => done,
                Err(refusal) => Done::failure(refusal.to_string()),
            }
        })
    }
}

fn root(arguments: &Value) -> &str {
    target::argument(arguments).unwrap_or(".")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Lines,
    Files,
    Counts,
}

/// What a call asks for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    pattern: String,
    of_names: bool,
    root: String,
    glob: Option<String>,
    window: Window,
    mode: Mode,
    context: usize,
}

impl Asked {
    fn read(arguments: &Value) -> Result<Self, Value> {
        let pattern = arguments["pattern"].as_str().filter(|pattern| !pattern.is_empty());
        let pattern = pattern.ok_or_else(|| error("`pattern` is missing: it says what to look for"))?;
        if MAX_PATTERN_BYTES < pattern.len() {
            return Err(error("`pattern` is too long"));
        }
        let of_names = match arguments["target"].as_str().unwrap_or("content") {
            "content" | "grep" => false,
            "files" | "find" => true,
            _ => return Err(error("`target` is `content` or `files`")),
        };
        let mode = match arguments["output_mode"].as_str().unwrap_or("content") {
            "content" => Mode::Lines,
            "files_only" => Mode::Files,
            "count" => Mode::Counts,
            _ => return Err(error("`output_mode` is `content`, `files_only` or `count`")),
        };
        let offset = number(arguments, "offset", 0);
        if MAX_OFFSET < offset {
            return Err(error(format!(
                "`offset` is at most {MAX_OFFSET}: narrow the pattern instead"
            )));
        }
        let glob = arguments["file_glob"].as_str().filter(|glob| !glob.trim().is_empty());
        Ok(Self {
            pattern: pattern.to_owned(),
            of_names,
            root: root(arguments).to_owned(),
            glob: glob.map(str::to_owned),
            window: Window {
                offset,
                limit: number(arguments, "limit", LIMIT).clamp(1, MAX_LIMIT),
            },
            mode,
            context: number(arguments, "context", 0).min(MAX_CONTEXT),
        })
    }

    /// The same question again has the same key.
    fn key(&self, cwd: &Path) -> FileKey {
        FileKey::of(Path::new(&format!("{}\n{self:?}", cwd.display())))
    }
}

/// Numbers that make no sense are taken for the default.
fn number(arguments: &Value, name: &str, default: usize) -> usize {
    let value = &arguments[name];
    let text = || value.as_str().and_then(|text| text.trim().parse().ok());
    let number: Option<i64> = value.as_i64().or_else(text);
    number.map_or(default, |number| usize::try_from(number).unwrap_or(0))
}

async fn search(call: &Call) -> Result<Done, Value> {
    let asked = Asked::read(&call.arguments)?;
    let key = asked.key(&call.cwd);
    let repeat = FileViews::parse(&call.seen_files).searched(&key);
    if let Repeat::Blocked(times) = repeat {
        return Err(blocked(&asked.pattern, times));
    }
    let mut said = answer(call, &asked).await?;
    if let Repeat::Often(times) = repeat {
        said.put(
            "_warning",
            json!(format!(
                "the same search ran {times} times in a row; the next is not answered"
            )),
        );
    }
    Ok(Done {
        result: said.text(),
        writes: ToolWrites {
            files: vec![FileNews::Searched { search: key }],
            ..ToolWrites::default()
        },
        ..Done::default()
    })
}

fn blocked(pattern: &str, times: u32) -> Value {
    json!({
        "error": format!(
            "BLOCKED: this search ran {times} times in a row, and its results stand above. Work with what you have, \
             look for something else, or go on to the next step."
        ),
        "pattern": pattern,
        "already_searched": times,
    })
}

async fn answer(call: &Call, asked: &Asked) -> Result<Said, Value> {
    let target = Target::of(call, &asked.root).await?;
    target.may_read().map_err(error)?;
    let leash = Leash {
        deadline: Instant::now() + PATIENCE,
        cancel: call.cancel.clone(),
    };
    let is_directory = match target.workspace.metadata(&target.path).await {
        Ok(metadata) => metadata.kind == EntryKind::Directory,
        Err(FileError::Missing { .. }) => return Err(missing(&target).await),
        Err(failed) => return Err(target.failed(&failed)),
    };
    if asked.of_names {
        if !is_directory {
            return Err(error(format!(
                "`{}` is no directory: files are looked for in one",
                asked.root
            )));
        }
        let tree = tree(&target, Some(&asked.names_glob())).await?;
        let window = asked.window;
        let found = tokio::task::spawn_blocking(move || names(&tree, window, &leash))
            .await
            .map_err(error)?;
        return Ok(shown::names(asked, &found));
    }
    if asked.pattern.contains('\n') || has_line_end(&asked.pattern) {
        return Ok(shown::line_bound());
    }
    let names_only = asked.mode != Mode::Lines;
    let looking = Looking::new(
        &asked.pattern,
        asked.context,
        asked.window,
        names_only,
        target.places.clone(),
    )
    .map_err(|failed| error(format!("the pattern is no regular expression: {failed}")))?;
    let work = if is_directory {
        let tree = tree(&target, asked.glob.as_deref()).await?;
        tokio::task::spawn_blocking(move || looking.tree(&tree, &leash))
    } else {
        let file = target
            .workspace
            .open_read(&target.path)
            .await
            .map_err(|failed| target.failed(&failed))?;
        target.may_read_opened(&target::real_path(&file, &target.path))?;
        let name = PathBuf::from(&asked.root);
        tokio::task::spawn_blocking(move || looking.one(file, &name, &leash))
    };
    let found: Results = work.await.map_err(error)?;
    Ok(shown::content(asked, is_directory, &found))
}

impl Asked {
    /// A plain word is the end of a name.
    fn names_glob(&self) -> String {
        let is_plain = !self.pattern.contains(['*', '/']);
        if is_plain {
            format!("*{}", self.pattern)
        } else {
            self.pattern.clone()
        }
    }
}

/// `\n` as the pattern's own escape; `\\n` is a backslash and a letter.
fn has_line_end(pattern: &str) -> bool {
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character == '\\' && characters.next() == Some('n') {
            return true;
        }
    }
    false
}

/// The directory, and those above it up to the root of the workspace.
async fn tree(target: &Target, glob: Option<&str>) -> Result<Tree, Value> {
    let open = async |path: &Path| {
        let opened = target.workspace.open_directory(path).await;
        opened.map_err(|failed| target.failed(&failed))
    };
    let root = open(&target.path).await?;
    let mut above = Vec::new();
    let top = target.workspace.root();
    let mut up = root.path().parent();
    while let Some(path) = up.filter(|path| path.starts_with(top)) {
        above.push(open(path).await?);
        up = path.parent();
    }
    above.reverse();
    let wanted =
        Wanted::new(root.path(), glob).map_err(|failed| error(format!("the glob cannot be used: {failed}")))?;
    Ok(Tree { root, above, wanted })
}

async fn missing(target: &Target) -> Value {
    let directory = target.path.parent().unwrap_or(Path::new("/"));
    let wanted = target.path.file_name().unwrap_or_default().to_string_lossy();
    let entries = target.workspace.list_dir(directory).await.unwrap_or_default();
    let found = similar::similar(&wanted, entries.iter().map(|entry| entry.name.as_str()));
    let found: Vec<PathBuf> = found.into_iter().map(|name| directory.join(name)).collect();
    json!({"error": format!("Path not found: {}", target.shown), "similar_paths": found})
}

/// A result and what is said behind it.
struct Said {
    fields: Map<String, Value>,
    hint: Option<String>,
}

impl Said {
    fn new(total: usize) -> Self {
        let mut said = Self {
            fields: Map::new(),
            hint: None,
        };
        said.put("total_count", json!(total));
        said
    }

    fn put(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }

    /// The rest of a list that was shown in part.
    fn cut(&mut self, window: Window, total: usize) {
        if window.end() < total {
            self.put("truncated", json!(true));
            let advice = match window.end() {
                next if next <= MAX_OFFSET => format!("use offset={next} for more, or a narrower pattern"),
                _ => "use a narrower pattern".to_owned(),
            };
            self.hint = Some(format!("[Results are cut: {total} in all; {advice}]"));
        }
    }

    /// What kept the search from being complete.
    fn limits(&mut self, is_cut: bool, unread: usize, omitted: usize) {
        if is_cut {
            self.put("limit_reason", json!("search_timeout"));
            self.put("truncated", json!(true));
        }
        if 0 < unread {
            let text = format!("{unread} files or directories could not be searched to their end");
            self.put("warning", json!(text));
        }
        if 0 < omitted {
            self.put("_omitted", json!(omitted));
        }
    }

    fn text(self) -> String {
        let json = Value::Object(self.fields).to_string();
        match self.hint {
            Some(hint) => format!("{json}\n\n{hint}"),
            None => json,
        }
    }
}

/// Used by [`shown`] for a page of names.
fn page_of_names<'n>(names: impl Iterator<Item = &'n PathBuf>, asked: &Asked) -> Vec<String> {
    let page = names.skip(asked.window.offset).take(asked.window.limit);
    page.map(|path| asked.shown(path)).collect()
}

impl Asked {
    /// A found path as the model may use it in its next call.
    fn shown(&self, relative: &Path) -> String {
        match self.root.as_str() {
            "." | "./" => relative.to_string_lossy().into_owned(),
            root => Path::new(root).join(relative).to_string_lossy().into_owned(),
        }
    }
}

fn names_page(asked: &Asked, found: &Names) -> Vec<String> {
    page_of_names(found.newest.iter(), asked)
}

#[cfg(test)]
mod tests;
