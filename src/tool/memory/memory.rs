//! `memory`: changes what is remembered of the user.
//!
//! The call only reads what is asked; the entries are changed, and the result is
//! written, in the transaction that stores it, under the lock of the lists.

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::guard::{Finding, Severity, Span};
use crate::model::call::{Effect, Footprint};
use crate::tool::budget::ResultLimit;
use crate::tool::memory_entries::{self, Change};
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Host, Judged, Place, Spec, Tool, ToolWrites};

inventory::submit!(Registered(&Memory));

struct Memory;

impl Tool for Memory {
    fn spec(&self) -> Spec {
        Spec {
            name: "memory",
            toolset: "memory",
            emoji: "🧠",
            description: "Keeps short notes that later sessions begin with. `user` holds who the user is: name, \
                preferences, corrections. `memory` holds what you learned about the work: the environment, \
                conventions, lessons. Save what will still be of use next week, as soon as you learn it; no task \
                progress and nothing that is easy to look up. `replace` and `remove` find the entry by a part of \
                its text. `operations` makes several changes at once: all of them or none. The lists are short; \
                when one is full, merge or remove entries.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        let action = json!({"type": "string", "enum": ["add", "replace", "remove"]});
        let content = json!({"type": "string", "description": "The entry; for `add` and `replace`."});
        let old_text = json!({
            "type": "string",
            "description": "A part of the entry that is meant, found in no other one; for `replace` and `remove`.",
        });
        json!({
            "type": "object",
            "properties": {
                "target": {"type": "string", "enum": ["memory", "user"], "description": "Which list."},
                "action": action,
                "content": content,
                "old_text": old_text,
                "operations": {
                    "type": "array",
                    "description": "Several changes of the list that hold together, in place of `action`.",
                    "items": {
                        "type": "object",
                        "properties": {"action": action, "content": content, "old_text": old_text},
                        "required": ["action"],
                    },
                },
            },
            "required": ["target"],
        })
    }

    fn example(&self) -> Value {
        json!({"target": "user", "action": "add", "content": "Likes short answers"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Internal
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    fn judge(&self, arguments: &Value, _place: &Place<'_>, host: &Host) -> Judged {
        // What will be refused needs nobody's consent.
        if !host.memory_approval || Change::read(arguments).is_err() {
            return Judged::Allow;
        }
        let finding = Finding {
            rule: memory_entries::WRITE_RULE.to_owned(),
            key: "memory_write".to_owned(),
            description: "what is remembered of the user would change for all later sessions".to_owned(),
            severity: Severity::Medium,
            span: Span::default(),
            argv: Vec::new(),
        };
        Judged::Ask {
            findings: vec![finding],
        }
    }

    fn subject(&self, _arguments: &Value) -> String {
        "what is remembered".to_owned()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(std::future::ready(asked(&call.arguments)))
    }
}

fn asked(arguments: &Value) -> Done {
    match Change::read(arguments) {
        Err(refusal) => Done::failure(memory_entries::refused(&refusal, &[], 0, 0).to_string()),
        Ok(change) => Done {
            writes: ToolWrites {
                memory: Some(change),
                ..ToolWrites::default()
            },
            ..Done::default()
        },
    }
}
