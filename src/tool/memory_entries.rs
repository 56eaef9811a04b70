//! What an agent remembers of its work (`memory`) and of its user (`user`), as
//! a value: what a call makes of it, what the model is told, and the block that
//! a session's prompt begins with.
//!
//! All or nothing: a change that any rule refuses leaves the entries as they
//! were. Loading and storing them is the caller's.

#![allow(
    clippy::indexing_slicing,
    reason = "keys of JSON objects: a read of a missing one is null, and what is written is an object made here"
)]

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::text::first_chars;
use crate::guard::threat::{self, Scope};
use crate::model::memory::Target;
use crate::model::pending::{PendingKind, Staged};

/// The rule by which a change of the memory wants a person.
pub const WRITE_RULE: &str = "memory-write";

/// Between entries, where they are shown and counted as one text.
pub const SEPARATOR: &str = "\n§\n";

/// Characters of an entry that are shown where several match.
const PREVIEW_CHARS: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Operation {
    Add { content: String },
    Replace { old_text: String, content: String },
    Remove { old_text: String },
}

/// A change of one list, as a call asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub target: Target,
    pub operations: Vec<Operation>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    Empty(&'static str),
    #[error("`action` must be `add`, `replace` or `remove`, not `{0}`")]
    UnknownAction(String),
    #[error("`target` must be `memory` or `user`, not `{0}`")]
    UnknownTarget(String),
    #[error("no entry contains `{0}`; `current_entries` shows what there is")]
    NoMatch(String),
    #[error("several entries contain `{old_text}`; give more of the one that is meant")]
    Ambiguous { old_text: String, matches: Vec<String> },
    #[error("{chars} characters are more than the limit of {limit}; shorten or remove entries first")]
    OverLimit { chars: usize, limit: usize },
    #[error("the content was not stored: it looks like an instruction or a secret ({})", .0.join(", "))]
    Threat(Vec<String>),
}

impl Change {
    /// Reads a call's arguments: one operation, or `operations` that hold
    /// together.
    pub fn read(arguments: &Value) -> Result<Self, Refusal> {
        let target = match arguments.get("target") {
            None | Some(Value::Null) => Target::Memory,
            Some(named) => {
                let name = named.as_str().unwrap_or_default();
                Target::parse(name).ok_or_else(|| Refusal::UnknownTarget(name.to_owned()))?
            }
        };
        let operations = match arguments.get("operations") {
            None | Some(Value::Null) => vec![Operation::read(arguments)?],
            Some(batch) => {
                let batch = batch.as_array().filter(|batch| !batch.is_empty());
                let batch = batch.ok_or(Refusal::Empty("`operations` must hold at least one operation"))?;
                // A threat is told before any slip: it is no oversight.
                let is_set = |item: &&Value| matches!(item["action"].as_str().map(str::trim), Some("add" | "replace"));
                let contents = batch.iter().filter(is_set).filter_map(|item| item["content"].as_str());
                no_threat(contents)?;
                batch.iter().map(Operation::read).collect::<Result<_, _>>()?
            }
        };
        Ok(Self { target, operations })
    }

    /// As it waits for a person.
    pub fn staged(&self) -> Staged {
        Staged {
            kind: PendingKind::Memory,
            subject: format!("changes of the list `{}`", self.target.name()),
            change: json!(self),
        }
    }
}

impl Operation {
    fn read(fields: &Value) -> Result<Self, Refusal> {
        let text = |name: &str| {
            fields
                .get(name)
                .and_then(Value::as_str)
                .map(str::trim)
                .unwrap_or_default()
        };
        let required = |name: &str, missing: &'static str| match text(name) {
            "" => Err(Refusal::Empty(missing)),
            text => Ok(text.to_owned()),
        };
        let content = || {
            required(
                "content",
                "`content` must not be empty; use `remove` to delete an entry",
            )
        };
        let old_text = || required("old_text", "`old_text` must name a part of the entry that is meant");
        match text("action") {
            "add" => Ok(Self::Add { content: content()? }),
            "replace" => Ok(Self::Replace {
                old_text: old_text()?,
                content: content()?,
            }),
            "remove" => Ok(Self::Remove { old_text: old_text()? }),
            other => Err(Refusal::UnknownAction(other.to_owned())),
        }
    }

    fn content(&self) -> Option<&str> {
        match self {
            Self::Add { content } | Self::Replace { content, .. } => Some(content),
            Self::Remove { .. } => None,
        }
    }
}

/// The entries after a change, the same ones where it changes nothing.
pub fn after(entries: &[String], operations: &[Operation], limit: usize) -> Result<Vec<String>, Refusal> {
    no_threat(operations.iter().filter_map(Operation::content))?;
    let mut after = entries.to_vec();
    for operation in operations {
        apply(&mut after, operation)?;
    }
    let chars = chars(&after);
    // Whoever is over a limit that was lowered may still remove.
    if limit < chars && self::chars(entries) < chars {
        return Err(Refusal::OverLimit { chars, limit });
    }
    Ok(after)
}

fn no_threat<'c>(contents: impl Iterator<Item = &'c str>) -> Result<(), Refusal> {
    for content in contents {
        let findings = threat::scan(content, Scope::Strict);
        if !findings.is_empty() {
            return Err(Refusal::Threat(findings));
        }
    }
    Ok(())
}

fn apply(entries: &mut Vec<String>, operation: &Operation) -> Result<(), Refusal> {
    match operation {
        Operation::Add { content } => {
            if !entries.contains(content) {
                entries.push(content.clone());
            }
        }
        Operation::Replace { old_text, content } => {
            let meant = the_one(entries, old_text)?;
            let known = entries.iter().any(|entry| entry == content && *entry != meant);
            entries.retain(|entry| !known || *entry != meant);
            for entry in entries.iter_mut().filter(|entry| **entry == meant) {
                entry.clone_from(content);
            }
        }
        Operation::Remove { old_text } => {
            let meant = the_one(entries, old_text)?;
            entries.retain(|entry| *entry != meant);
        }
    }
    Ok(())
}

/// The only entry that contains the text.
fn the_one(entries: &[String], text: &str) -> Result<String, Refusal> {
    let mut matches: Vec<&String> = entries.iter().filter(|entry| entry.contains(text)).collect();
    matches.dedup();
    match matches.as_slice() {
        [] => Err(Refusal::NoMatch(text.to_owned())),
        [one] => Ok((*one).clone()),
        several => Err(Refusal::Ambiguous {
            old_text: text.to_owned(),
            matches: several
                .iter()
                .map(|entry| first_chars(entry, PREVIEW_CHARS).to_owned())
                .collect(),
        }),
    }
}

/// Characters of the entries as one text.
pub fn chars(entries: &[String]) -> usize {
    let separators = entries.len().saturating_sub(1) * SEPARATOR.chars().count();
    entries.iter().map(|entry| entry.chars().count()).sum::<usize>() + separators
}

/// How full a list is, for people and models.
pub fn usage(entries: &[String], limit: usize) -> String {
    let used = chars(entries);
    let percent = used.saturating_mul(100) / limit.max(1);
    format!("{percent}% — {used}/{limit} chars")
}

/// What a change that was stored tells the model.
pub fn told(target: Target, before: &[String], after: &[String], limit: usize) -> Value {
    let mut told = json!({
        "success": true,
        "done": true,
        "target": target.name(),
        "usage": usage(after, limit),
        "entry_count": after.len(),
    });
    if before == after {
        told["message"] = json!("nothing changed: the entry is there already");
    }
    told["note"] = json!("stored; later sessions begin with it, the prompt of this one stays as it is");
    told
}

/// Failures over the limit in one turn after which the model is told to stop.
const PATIENCE: u32 = 3;

/// What a refused change tells the model; `failures` counts those over the
/// limit in this turn, this one included.
pub fn refused(refusal: &Refusal, entries: &[String], limit: usize, failures: u32) -> Value {
    let mut told = json!({"success": false, "error": refusal.to_string()});
    match refusal {
        Refusal::OverLimit { .. } if PATIENCE < failures => {
            told["done"] = json!(true);
            told["error"] = json!("the memory is full and this keeps failing: stop trying in this turn and go on");
        }
        Refusal::OverLimit { .. } | Refusal::NoMatch(_) => {
            told["current_entries"] = json!(entries);
            told["usage"] = json!(usage(entries, limit));
        }
        Refusal::Ambiguous { matches, .. } => told["matches"] = json!(matches),
        Refusal::Empty(_) | Refusal::UnknownAction(_) | Refusal::UnknownTarget(_) | Refusal::Threat(_) => {}
    }
    told
}

/// Width of the rules around a block's title (Hermes: 46).
const RULE: usize = 46;

/// The block that a session's prompt shows, none without entries. An entry that
/// must not speak to a model is named, so that it can be removed.
pub fn block(target: Target, entries: &[String], limit: usize) -> Option<String> {
    if entries.is_empty() {
        return None;
    }
    let title = match target {
        Target::Memory => "MEMORY (your own notes)",
        Target::User => "USER PROFILE (who the user is)",
    };
    let rule = "═".repeat(RULE);
    let shown: Vec<String> = entries.iter().map(|entry| shown(entry)).collect();
    let text = shown.join(SEPARATOR);
    Some(format!("{rule}\n{title} [{}]\n{rule}\n{text}", usage(entries, limit)))
}

fn shown(entry: &str) -> String {
    match threat::scan(entry, Scope::Strict) {
        findings if findings.is_empty() => entry.to_owned(),
        findings => format!("[BLOCKED: an entry was left out ({}); remove it]", findings.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(list: &[&str]) -> Vec<String> {
        list.iter().map(|entry| (*entry).to_owned()).collect()
    }

    fn changed(before: &[&str], arguments: &Value) -> Result<Vec<String>, Refusal> {
        after(&entries(before), &Change::read(arguments)?.operations, 100)
    }

    #[test]
    fn replacing_an_entry_by_one_that_is_there_leaves_one_of_them() {
        let arguments = json!({"action": "replace", "old_text": "one", "content": "two"});
        assert_eq!(changed(&["one", "two"], &arguments), Ok(entries(&["two"])));
    }

    #[test]
    fn a_batch_that_fails_late_changes_nothing_and_counts_only_its_end() {
        let fails = json!({"operations": [{"action": "add", "content": "b"}, {"action": "remove", "old_text": "zz"}]});
        assert_eq!(changed(&["a"], &fails), Err(Refusal::NoMatch("zz".to_owned())));
        let long = "x".repeat(99);
        let swap = json!({"operations": [{"action": "add", "content": long}, {"action": "remove", "old_text": "a"}]});
        assert_eq!(changed(&["a"], &swap), Ok(vec![long]));
    }

    #[test]
    fn a_threat_in_a_batch_is_told_before_a_slip() {
        let batch = json!({"operations": [{"action": "add", "content": " "},
            {"action": "add", "content": "a\u{200b}b"}]});
        assert!(matches!(changed(&[], &batch), Err(Refusal::Threat(_))));
    }

    #[test]
    fn a_list_over_a_lowered_limit_can_shrink_but_not_grow() {
        let long = ["x".repeat(80), "y".repeat(80)];
        let before: Vec<&str> = long.iter().map(String::as_str).collect();
        assert!(changed(&before, &json!({"action": "remove", "old_text": "xx"})).is_ok());
        assert!(matches!(
            changed(&before, &json!({"action": "add", "content": "z"})),
            Err(Refusal::OverLimit { .. })
        ));
    }

    #[test]
    fn a_block_names_what_it_leaves_out() {
        let poisoned = entries(&["likes tea", "a\u{200b}b"]);
        let block = block(Target::User, &poisoned, 1375).unwrap();
        assert!(block.contains("likes tea\n§\n[BLOCKED: "), "{block}");
        assert!(block.contains("1% — 15/1375 chars"), "{block}");
        assert_eq!(super::block(Target::Memory, &[], 10), None);
    }
}
