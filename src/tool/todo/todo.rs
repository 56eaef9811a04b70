//! `todo`: reads and changes the session's task list.
//!
//! The list is the pure value of `todo_list`; it comes with the call and goes
//! back beside the result, to be stored in one commit with it.

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::registry::Registered;
use crate::tool::todo_list::TodoList;
use crate::tool::{Call, Done, Place, Spec, Tool, ToolWrites, error_text};

inventory::submit!(Registered(&Todo));

struct Todo;

impl Tool for Todo {
    fn spec(&self) -> Spec {
        Spec {
            name: "todo",
            toolset: "todo",
            emoji: "📋",
            description: "Keeps the task list of this session. Use it for work of three steps or more, or when the \
                user asks for several things. Without arguments it returns the list. With `todos` it replaces the \
                list, or with `merge` changes and adds items by id. The order of the list is the order of work; at \
                most one item is `in_progress` at a time, and an item is `completed` as soon as it is done. Every \
                call returns the whole list.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "description": "Items to write; leave it out to read the list.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string", "description": "Short name of the item, unique in the list."},
                            "content": {"type": "string", "description": "What is to be done."},
                            "status": {
                                "type": "string",
                                "enum": ["pending", "in_progress", "completed", "cancelled"],
                            },
                        },
                        "required": ["id", "content", "status"],
                    },
                },
                "merge": {
                    "type": "boolean",
                    "description": "true: change items by id and add new ones. false: replace the list.",
                    "default": false,
                },
            },
        })
    }

    fn example(&self) -> Value {
        json!({"todos": [{"id": "1", "content": "Read the notes", "status": "in_progress"}]})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Internal
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    fn subject(&self, _arguments: &Value) -> String {
        "the task list".to_owned()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(std::future::ready(change(&call)))
    }
}

fn change(call: &Call) -> Done {
    // A list that cannot be read was not written by us; the model writes a new one.
    let list: TodoList = serde_json::from_str(&call.todo).unwrap_or_default();
    let empty = Map::new();
    let arguments = call.arguments.as_object().unwrap_or(&empty);
    match list.after(arguments) {
        Err(error) => Done::failure(error_text::envelope(&error.to_string())),
        Ok(changed) => Done {
            result: changed.as_ref().unwrap_or(&list).result().to_string(),
            writes: ToolWrites {
                // Text and enums always serialise.
                todo: changed.and_then(|list| serde_json::to_string(&list).ok()),
                ..ToolWrites::default()
            },
            ..Done::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::testing::Bench;

    fn read(done: &Done) -> Value {
        serde_json::from_str(&done.result).unwrap()
    }

    #[tokio::test]
    async fn reading_returns_the_list_and_writes_nothing() {
        let bench = Bench::new().await;
        let mut call = bench.call(json!({}));
        call.todo = r#"[{"id":"1","content":"A","status":"pending"}]"#.to_owned();
        let done = Todo.run(call).await;
        assert_eq!(read(&done)["summary"]["pending"], 1);
        assert_eq!(done.writes, ToolWrites::default());
    }

    #[tokio::test]
    async fn a_change_travels_back_with_the_result() {
        let bench = Bench::new().await;
        let mut call = bench.call(json!({"todos": [{"id": "1", "status": "completed"}], "merge": true}));
        call.todo = r#"[{"id":"1","content":"A","status":"pending"}]"#.to_owned();
        let done = Todo.run(call).await;
        assert_eq!(
            done.writes.todo.as_deref(),
            Some(r#"[{"id":"1","content":"A","status":"completed"}]"#)
        );
        assert_eq!(read(&done)["todos"][0]["content"], "A");
    }

    #[tokio::test]
    async fn what_is_no_list_is_refused() {
        let bench = Bench::new().await;
        let done = bench.run(&Todo, json!({"todos": 7})).await;
        assert!(done.failed && read(&done)["error"].is_string());
        assert_eq!(done.writes, ToolWrites::default());
    }
}
