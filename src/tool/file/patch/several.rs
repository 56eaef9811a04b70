//! A patch of several files: all of it is tried on their texts before the first
//! is written. Should a write fail after that, what has landed is told.

#![allow(
    clippy::indexing_slicing,
    reason = "keys of JSON objects: a read of a missing one is null, and what is written is an object made here"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::edited::{Edited, failure, shown_diff};
use super::{crosses, refused};
use crate::guard::file_access::normalised;
use crate::model::artifact::Kept;
use crate::tool::edit::v4a::{self, Changes, Landing, Operation};
use crate::tool::file::landing;
use crate::tool::file::target::{Target, error};
use crate::tool::file_views::{FileKey, FileNews};
use crate::tool::{Call, Done, ToolWrites};

/// Files of one patch, and the memory that their texts take.
const MAX_FILES: usize = 200;
const MAX_TEXT: usize = 64 << 20;
/// Programs are checked in so many files of a patch; each may take seconds.
const MAX_LINTED: usize = 8;

pub(super) async fn patch(call: &Call) -> Done {
    let Some(text) = call.arguments["patch"].as_str().filter(|text| !text.trim().is_empty()) else {
        return refused("`patch` is missing: it holds the patch in V4A form");
    };
    let operations = match v4a::parse(text) {
        Ok(operations) if operations.is_empty() => {
            return refused("the patch names no file: begin each with `*** Update File: PATH` or another header");
        }
        Ok(operations) => operations,
        Err(error) => return refused(error),
    };
    let mut work = match Work::open(call, &operations).await {
        Ok(work) => work,
        Err(refusal) => return Done::failure(failure(refusal).to_string()),
    };
    let changes = match work.plan(operations).await {
        Ok(changes) => changes,
        Err(refusal) => return Done::failure(failure(refusal).to_string()),
    };
    for step in &changes.steps {
        if let Err(refusal) = work.carry_out(call, step).await {
            return work.stopped(&refusal);
        }
    }
    work.done()
}

/// A patch under way.
struct Work {
    targets: BTreeMap<String, Target>,
    files: BTreeMap<String, Edited>,
    told: Told,
}

/// What the result says.
#[derive(Default)]
struct Told {
    diff: String,
    modified: Vec<Value>,
    created: Vec<Value>,
    deleted: Vec<Value>,
    lint: Map<String, Value>,
    warnings: Vec<String>,
    news: Vec<FileNews>,
    kept: Vec<Kept>,
}

impl Work {
    /// Opens every file that the patch names and that is there.
    async fn open(call: &Call, operations: &[Operation]) -> Result<Self, Value> {
        let mut work = Self {
            targets: BTreeMap::new(),
            files: BTreeMap::new(),
            told: Told::default(),
        };
        let mut spelled: BTreeMap<PathBuf, String> = BTreeMap::new();
        let mut bytes = 0;
        for path in operations.iter().flat_map(Operation::paths) {
            if work.targets.contains_key(path) {
                continue;
            }
            if v4a::has_parent_component(path) {
                return Err(error(format!("`{path}`: a path of a patch holds no `..`")));
            }
            if MAX_FILES <= work.targets.len() {
                return Err(error(format!(
                    "the patch names more than {MAX_FILES} files; send it in parts"
                )));
            }
            let (target, edited) = Edited::open(call, path, crosses(&call.arguments)).await?;
            if let Some(other) = spelled.insert(normalised(&target.path), path.to_owned()) {
                return Err(error(format!(
                    "`{other}` and `{path}` are one file: spell it the same everywhere"
                )));
            }
            bytes += edited.as_ref().map_or(0, |edited| edited.text.len());
            if MAX_TEXT < bytes {
                return Err(error("the files of the patch are too long together; send it in parts"));
            }
            work.targets.insert(path.to_owned(), target);
            if let Some(edited) = edited {
                work.files.insert(path.to_owned(), edited);
            }
        }
        Ok(work)
    }

    /// All paths of the patch were opened before.
    fn target(&self, path: &str) -> Result<&Target, Value> {
        self.targets
            .get(path)
            .ok_or_else(|| error(format!("`{path}` was not opened")))
    }

    /// Tries everything; the first word about anything wrong comes from here.
    async fn plan(&self, operations: Vec<Operation>) -> Result<Changes, Value> {
        let texts: BTreeMap<String, String> = self
            .files
            .iter()
            .map(|(path, edited)| (path.clone(), edited.text.clone()))
            .collect();
        let plan = tokio::task::spawn_blocking(move || v4a::plan(&operations, &texts));
        let changes = plan.await.map_err(error)?.map_err(|invalid| {
            let one_is_secret = self.targets.values().find(|target| target.may_read().is_err());
            let text = match one_is_secret {
                Some(secret) => format!(
                    "the patch does not fit (`{}` may hold secrets and is not shown)",
                    secret.shown
                ),
                None => invalid.to_string(),
            };
            json!({"error": format!("nothing was changed:\n{text}"), "phase": "validation"})
        })?;
        for step in &changes.steps {
            if let Landing::Write { path, content, .. } = step
                && let Some(target) = self.targets.get(path)
            {
                landing::is_well_formed(target, content)?;
            }
        }
        Ok(changes)
    }

    async fn carry_out(&mut self, call: &Call, step: &Landing) -> Result<(), Value> {
        if call.cancel.is_cancelled() {
            return Err(error("the call was stopped"));
        }
        match step {
            Landing::Write { path, content, is_new } => self.write(call, path, content, *is_new).await,
            Landing::Delete { path } => {
                let target = self.target(path)?;
                let removed = target.workspace.remove_one(&target.path).await;
                removed.map_err(|failed| target.failed(&failed))?;
                let text = self.files.get(path).map_or("", |gone| gone.text.as_str());
                let diff = format!("{}# Deleted: {path}\n", shown_diff(target, Some(text), None));
                let gone = json!(normalised(&target.path));
                self.files.remove(path);
                self.told.diff.push_str(&diff);
                self.told.deleted.push(gone);
                Ok(())
            }
            Landing::Move { path, to } => self.rename(call, path, to).await,
        }
    }

    async fn write(&mut self, call: &Call, path: &str, content: &str, is_new: bool) -> Result<(), Value> {
        let target = self.target(path)?;
        let before = self.files.get(path);
        let put = match before {
            Some(edited) => edited.write(call, content).await?,
            None => landing::put(call, target, content.as_bytes().to_vec(), None).await?,
        };
        let diff = shown_diff(target, before.map(|edited| edited.text.as_str()), Some(content));
        let warning = before.and_then(|edited| edited.warning(call));
        let news = match before {
            Some(edited) if !is_new => edited.news(&put),
            _ => put.landed.news(),
        };
        self.told.diff.push_str(&diff);
        self.told.warnings.extend(warning);
        self.told.news.extend(news);
        self.told.kept.extend(put.kept);
        let list = if is_new {
            &mut self.told.created
        } else {
            &mut self.told.modified
        };
        let landed = json!(put.landed.path);
        if !list.contains(&landed) {
            list.push(landed);
        }
        if let Some(lint) = put.lint.filter(|_| self.told.lint.len() < MAX_LINTED) {
            self.told.lint.insert(path.to_owned(), lint);
        }
        self.reopen(call, path).await
    }

    async fn rename(&mut self, call: &Call, path: &str, to: &str) -> Result<(), Value> {
        let (from, target) = (self.target(path)?, self.target(to)?);
        let moved = from.workspace.rename(&from.path, &target.path).await;
        moved.map_err(|failed| from.failed(&failed))?;
        let (old, new) = (normalised(&from.path), normalised(&target.path));
        self.told.diff.push_str(&format!("# Moved: {path} -> {to}\n"));
        self.told
            .modified
            .push(json!(format!("{} -> {}", old.display(), new.display())));
        let knew = self.files.remove(path);
        self.reopen(call, to).await?;
        // What was known of the file is known of it under its new name.
        if let (Some((_, before)), Some((file, stamp))) = (
            knew.as_ref().and_then(Edited::key),
            self.files.get(to).and_then(Edited::key),
        ) {
            self.told.news.push(FileNews::Edited {
                file: FileKey::clone(file),
                before: *before,
                stamp: *stamp,
            });
        }
        Ok(())
    }

    /// A later operation may touch the file again.
    async fn reopen(&mut self, call: &Call, path: &str) -> Result<(), Value> {
        let (_, edited) = Edited::open(call, path, true).await?;
        if let Some(edited) = edited {
            self.files.insert(path.to_owned(), edited);
        }
        Ok(())
    }

    fn done(self) -> Done {
        let mut fields = Map::new();
        fields.insert("success".to_owned(), json!(true));
        self.told.finish(fields, false)
    }

    /// A write failed after all.
    fn stopped(self, refusal: &Value) -> Done {
        let why = refusal["error"].as_str().unwrap_or_default();
        let landed = self.told.modified.len() + self.told.created.len() + self.told.deleted.len();
        let text = match landed {
            0 => format!("nothing was changed: {why}"),
            _ => format!("{why}. The operations before had landed and stay; they are listed here."),
        };
        let mut fields = Map::new();
        fields.insert("success".to_owned(), json!(false));
        fields.insert("error".to_owned(), json!(text));
        self.told.finish(fields, true)
    }
}

impl Told {
    fn finish(self, mut fields: Map<String, Value>, failed: bool) -> Done {
        let mut say = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        say("diff", json!(self.diff));
        say("files_modified", json!(self.modified));
        say("files_created", json!(self.created));
        say("files_deleted", json!(self.deleted));
        if !self.lint.is_empty() {
            say("lint", Value::Object(self.lint));
        }
        if !self.warnings.is_empty() {
            say("_warning", json!(self.warnings.join("\n")));
        }
        Done {
            result: Value::Object(fields).to_string(),
            failed,
            writes: ToolWrites {
                files: self.news,
                artifacts: self.kept,
                ..ToolWrites::default()
            },
            ..Done::default()
        }
    }
}
