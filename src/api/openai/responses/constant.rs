//! What of a response does not change with what happens: its ids and what was
//! asked for.

use serde_json::{Value, json};

use crate::api::compat::ids::{self, ResponseId};
use crate::model::client_tool::ClientTool;
use crate::model::sampling::ToolChoice;
use crate::model::turn::Turn;

/// A tool of the client as these clients write it.
fn tool(tool: &ClientTool) -> Value {
    json!({"type": "function", "name": tool.name(), "description": tool.function.description,
        "parameters": tool.parameters(), "strict": tool.function.strict})
}

fn tool_choice(turn: &Turn) -> Value {
    match &turn.options.sampling.tool_choice {
        None => json!("auto"),
        Some(ToolChoice::Named(named)) => json!({"type": "function", "name": named.function.name}),
        Some(mode) => json!(mode),
    }
}

/// The fields of a response that do not change with what happens.
pub(super) fn constant(id: ResponseId, turn: &Turn, session: &str, asked: &Value, configured: &str) -> Value {
    let said = |name: &str| asked.get(name).cloned().unwrap_or(Value::Null);
    let model = asked.get("model").and_then(Value::as_str).unwrap_or(configured);
    let background = said("background") == true;
    json!({
        "id": id.to_string(),
        "object": "response",
        "created_at": turn.created_at.0 / 1000,
        "status": if background { "queued" } else { "in_progress" },
        "background": background,
        "completed_at": null,
        "error": null,
        "incomplete_details": null,
        "instructions": turn.options.instructions,
        "max_output_tokens": null,
        "metadata": asked.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "model": model,
        "output": [],
        "parallel_tool_calls": true,
        "previous_response_id": said("previous_response_id"),
        "conversation": asked.get("conversation").filter(|name| !name.is_null()).map(|name| json!({"id": name})),
        "reasoning": {"effort": null, "summary": null},
        "store": said("store") != false,
        "temperature": null,
        "text": {"format": {"type": "text"}},
        "tool_choice": tool_choice(turn),
        "tools": turn.options.tools.iter().map(tool).collect::<Vec<_>>(),
        "top_p": null,
        "truncation": "disabled",
        "usage": null,
        "user": null,
        "hermes": {"session_id": session, "turn_id": turn.id, "run_id": ids::run(turn.id)},
    })
}
