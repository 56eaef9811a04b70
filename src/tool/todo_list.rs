//! A session's task list as a value: what a call makes of it, what the model is
//! told, what is shown again after a compaction.
//!
//! Tolerant on purpose: a bad item becomes a visible placeholder, so that one
//! slip does not lose the whole plan. Storing the list is the caller's.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::base::text::first_chars;

/// Bounds of the original.
const MAX_ITEMS: usize = 256;
const MAX_CONTENT_CHARS: usize = 4_000;
const CUT_MARK: &str = "… [truncated]";
const NO_ID: &str = "?";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

impl Status {
    fn parse(value: &Value) -> Option<Self> {
        Some(match value.as_str()?.trim().to_lowercase().as_str() {
            "pending" => Self::Pending,
            "in_progress" => Self::InProgress,
            "completed" => Self::Completed,
            "cancelled" => Self::Cancelled,
            _ => return None,
        })
    }

    fn is_active(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Completed => "[x]",
            Self::Cancelled => "[~]",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub id: String,
    pub content: String,
    pub status: Status,
}

/// The items in the order the model gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TodoList {
    items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`todos` must be a list of items with `id`, `content` and `status`")]
pub struct NotAList;

impl TodoList {
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The list after a call with these arguments, none when it only reads.
    pub fn after(&self, args: &Map<String, Value>) -> Result<Option<Self>, NotAList> {
        let items = match args.get("todos") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) => items.clone(),
            // Some models write the list as JSON in a text.
            Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| NotAList)?,
            Some(_) => return Err(NotAList),
        };
        let items = latest(items);
        let merges = args.get("merge") == Some(&Value::Bool(true));
        let mut list = if merges { self.merged(&items) } else { replaced(&items) };
        list.items.truncate(MAX_ITEMS);
        Ok(Some(list))
    }

    /// What the call returns: every item and how many there are of each kind.
    pub fn result(&self) -> Value {
        let count = |status| self.items.iter().filter(|item| item.status == status).count();
        json!({
            "todos": self.items,
            "summary": {
                "total": self.items.len(),
                "pending": count(Status::Pending),
                "in_progress": count(Status::InProgress),
                "completed": count(Status::Completed),
                "cancelled": count(Status::Cancelled),
            },
        })
    }

    /// What is left to do, for a conversation whose beginning was summarised;
    /// none when nothing is.
    pub fn note(&self) -> Option<String> {
        let active: Vec<String> = self
            .items
            .iter()
            .filter(|item| item.status.is_active())
            .map(|item| {
                let content: Vec<&str> = item.content.split_whitespace().collect();
                format!("- {} {}. {}", item.status.mark(), item.id, content.join(" "))
            })
            .collect();
        if active.is_empty() {
            return None;
        }
        Some(format!(
            "[Your task list was kept while the conversation was shortened]\n{}",
            active.join("\n")
        ))
    }

    /// Known items take what is given and valid, new ones go to the end.
    fn merged(&self, changes: &[Value]) -> Self {
        let mut list = self.clone();
        for change in changes {
            let Some(id) = id_of(change) else { continue };
            match list.items.iter_mut().find(|item| item.id == id) {
                Some(item) => {
                    if let Some(content) = content_of(change) {
                        item.content = content;
                    }
                    if let Some(status) = Status::parse(&change["status"]) {
                        item.status = status;
                    }
                }
                None => list.items.push(item_of(change)),
            }
        }
        list
    }
}

fn replaced(values: &[Value]) -> TodoList {
    TodoList {
        items: values.iter().map(item_of).collect(),
    }
}

/// Of objects with the same id the last one, where it stands.
fn latest(values: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    let mut kept: Vec<Value> = values
        .into_iter()
        .rev()
        .filter(|value| !value.is_object() || seen.insert(id_of(value)))
        .collect();
    kept.reverse();
    kept
}

const INVALID: &str = "(invalid item)";

fn item_of(value: &Value) -> Item {
    if !value.is_object() {
        return Item {
            id: NO_ID.to_owned(),
            content: INVALID.to_owned(),
            status: Status::Pending,
        };
    }
    Item {
        id: id_of(value).unwrap_or_else(|| NO_ID.to_owned()),
        content: content_of(value).unwrap_or_else(|| "(no description)".to_owned()),
        status: Status::parse(&value["status"]).unwrap_or_default(),
    }
}

fn id_of(value: &Value) -> Option<String> {
    plain(value.get("id")?)
}

fn content_of(value: &Value) -> Option<String> {
    let content = plain(value.get("content")?)?;
    if content.chars().nth(MAX_CONTENT_CHARS).is_none() {
        return Some(content);
    }
    let kept = first_chars(&content, MAX_CONTENT_CHARS - CUT_MARK.chars().count());
    Some(format!("{kept}{CUT_MARK}"))
}

/// Trimmed text; models write numbers where text is asked for.
fn plain(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(todos: &Value) -> TodoList {
        TodoList::default()
            .after(json!({ "todos": todos }).as_object().unwrap())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn the_list_never_grows_past_its_bound() {
        let many: Vec<Value> = (0..300).map(|id| json!({ "id": id, "content": "x" })).collect();
        let full = list(&json!(many));
        assert_eq!(full.items().len(), MAX_ITEMS);
        let more = full
            .after(
                json!({ "todos": [{ "id": "new" }], "merge": true })
                    .as_object()
                    .unwrap(),
            )
            .unwrap();
        assert_eq!(more.unwrap(), full);
    }

    #[test]
    fn a_merge_ignores_what_it_cannot_place() {
        let before = list(&json!([{ "id": "1", "content": "A" }]));
        let changes = json!({ "todos": ["x", {}, { "id": "1", "content": " ", "status": "odd" }], "merge": true });
        assert_eq!(before.after(changes.as_object().unwrap()).unwrap().unwrap(), before);
    }

    #[test]
    fn of_items_with_the_same_id_the_last_counts_however_the_list_is_given() {
        let twice = json!([{ "id": "1", "content": "A" }, { "id": "2" }, { "id": "1", "status": "completed" }]);
        let before = list(&json!([{ "id": "1", "content": "first" }]));
        for todos in [json!(twice.to_string()), twice] {
            let merged = before.after(json!({ "todos": todos, "merge": true }).as_object().unwrap());
            let merged = merged.unwrap().unwrap();
            let contents: Vec<&str> = merged.items().iter().map(|item| item.content.as_str()).collect();
            assert_eq!(contents, ["first", "(no description)"]);
            let fresh = list(&todos);
            let ids: Vec<&str> = fresh.items().iter().map(|item| item.id.as_str()).collect();
            assert_eq!(ids, ["2", "1"]);
        }
        let text = json!({ "todos": "{\"id\":\"1\"}" });
        assert_eq!(before.after(text.as_object().unwrap()), Err(NotAList));
    }

    #[test]
    fn the_note_shows_open_items_on_one_line_each() {
        let list = list(&json!([
            { "id": "1", "content": "first\nline", "status": "in_progress" },
            { "id": "2", "content": "done", "status": "completed" },
            { "id": "3", "content": "next" },
        ]));
        let note = list.note().unwrap();
        assert!(note.ends_with("\n- [>] 1. first line\n- [ ] 3. next"), "{note}");
    }

    #[test]
    fn the_list_survives_storing() {
        let before = list(&json!([{ "id": "1", "content": "A", "status": "cancelled" }]));
        let text = serde_json::to_string(&before).unwrap();
        assert_eq!(text, r#"[{"id":"1","content":"A","status":"cancelled"}]"#);
        assert_eq!(serde_json::from_str::<TodoList>(&text).unwrap(), before);
    }
}
