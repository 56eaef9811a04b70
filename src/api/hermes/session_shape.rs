//! Sessions and messages in the original's form.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::api::compat::question::seconds;
use crate::base::text::first_chars;
use crate::model::id::CallId;
use crate::model::message::{Message, Part, Role, text_of};
use crate::model::session::Session;
use crate::store::Overview;

/// Entries of the metadata that say that a client ended the session.
pub(super) const END_REASON: &str = "hermes.end_reason";
pub(super) const ENDED_AT: &str = "hermes.ended_at";
/// As much as a list shows of how a session began.
const PREVIEW_CHARS: usize = 60;

/// The name by which clients of this surface call a session.
pub(super) fn name(session: &Session) -> String {
    session.external_id.clone().unwrap_or_else(|| session.id.to_string())
}

pub(super) fn session(overview: &Overview, configured: &str) -> Value {
    let Overview {
        session,
        messages,
        calls,
        first_said,
    } = overview;
    let usage = &session.usage;
    #[allow(clippy::cast_precision_loss, reason = "a cost is shown, not counted with")]
    let cost = usage.cost_nanos as f64 / 1e9;
    let preview = text_of(first_said).split_whitespace().collect::<Vec<_>>().join(" ");
    json!({
        "id": name(session),
        "source": "api_server",
        "user_id": session.user_id,
        "model": session.model.as_deref().unwrap_or(configured),
        "title": session.title,
        "started_at": seconds(session.created_at),
        "ended_at": session.metadata.get(ENDED_AT),
        "end_reason": session.metadata.get(END_REASON),
        "message_count": messages,
        "tool_call_count": calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cached_input_tokens,
        "cache_write_tokens": 0,
        "reasoning_tokens": usage.reasoning_tokens,
        "estimated_cost_usd": cost,
        "actual_cost_usd": null,
        "api_call_count": usage.steps,
        "parent_session_id": session.parent.map(|parent| parent.session_id),
        "has_system_prompt": session.instructions.is_some(),
        "has_model_config": session.model.is_some(),
        "archived": session.archived_at.is_some(),
        "last_active": seconds(session.updated_at),
        "preview": first_chars(&preview, PREVIEW_CHARS),
        "status": session.status,
        "session_id": session.id,
    })
}

/// Messages in their order; a result tells the name of its tool.
pub(super) fn messages(session: &str, messages: &[Message]) -> Vec<Value> {
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    let tools: HashMap<CallId, &str> = calls.map(|call| (call.id, call.name.as_str())).collect();
    messages.iter().map(|one| message(session, one, &tools)).collect()
}

fn message(session: &str, message: &Message, tools: &HashMap<CallId, &str>) -> Value {
    let calls: Vec<Value> = message
        .tool_calls
        .iter()
        .map(|call| {
            json!({"id": call.id, "call_id": call.id, "response_item_id": format!("fc_{}", call.id),
                "type": "function", "function": {"name": call.name, "arguments": call.arguments.to_string()}})
        })
        .collect();
    json!({
        "id": message.id,
        "session_id": session,
        "role": message.role,
        "content": content(message),
        "tool_call_id": message.tool_call_id,
        "tool_calls": (!calls.is_empty()).then_some(calls),
        "tool_name": message.tool_call_id.and_then(|id| tools.get(&id)),
        "timestamp": seconds(message.created_at),
        "token_count": null,
        "finish_reason": message.finish_reason,
        "reasoning": message.reasoning,
        "reasoning_content": message.reasoning,
    })
}

/// A text where it is one, else the parts.
fn content(message: &Message) -> Value {
    let only_texts = message.content.iter().all(|part| matches!(part, Part::Text { .. }));
    match only_texts || message.role == Role::Tool {
        true => json!(text_of(&message.content)),
        false => json!(message.content),
    }
}
