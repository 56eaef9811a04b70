//! Makes a conversation valid before it is sent: every call has exactly one
//! result, right behind it and in call order; no result stands alone; users'
//! messages do not follow one another; nothing is empty. Pure.
//!
//! Servers refuse a conversation that breaks these rules, for the rest of the
//! session's life, so this is the last word on what is sent.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::de::IgnoredAny;

use super::{Call, ChatMessage, Part};

/// What stands for a result that was never recorded.
pub const NO_RESULT: &str = "[no result was recorded for this call]";
/// What stands for the name of a call that has none.
pub const NO_NAME: &str = "invalid_tool_call";

/// The repaired conversation; a valid one comes back unchanged.
pub fn repair(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut kept: Vec<Kept> = Vec::with_capacity(messages.len());
    // Which call waits for a result under which id.
    let mut open: HashMap<String, VecDeque<(usize, usize)>> = HashMap::new();
    for message in messages {
        match message {
            ChatMessage::Tool { call_id, content, .. } => {
                let place = open.get_mut(&call_id).and_then(VecDeque::pop_front);
                let results = place.and_then(|(at, number)| kept.get_mut(at)?.results.get_mut(number));
                if let Some(result) = results {
                    *result = Some(content);
                }
            }
            ChatMessage::Assistant { text, reasoning, calls } => {
                let text = text.filter(|text| !text.trim().is_empty());
                if text.is_none() && calls.is_empty() {
                    continue;
                }
                // A later call of the same id takes over: results come after their call.
                for call in &calls {
                    open.remove(&call.id);
                }
                for (number, call) in calls.iter().enumerate() {
                    open.entry(call.id.clone()).or_default().push_back((kept.len(), number));
                }
                let results = vec![None; calls.len()];
                let message = ChatMessage::Assistant {
                    text,
                    reasoning,
                    calls: with_sound_calls(calls),
                };
                kept.push(Kept { message, results });
            }
            ChatMessage::System { text } if text.trim().is_empty() => {}
            ChatMessage::User { parts } => keep_user(&mut kept, parts),
            message @ ChatMessage::System { .. } => kept.push(Kept {
                message,
                results: Vec::new(),
            }),
        }
    }
    kept.into_iter().flat_map(Kept::into_messages).collect()
}

/// A message that stays, with the results of its calls.
struct Kept {
    message: ChatMessage,
    results: Vec<Option<String>>,
}

impl Kept {
    fn into_messages(self) -> Vec<ChatMessage> {
        let mut messages = Vec::with_capacity(1 + self.results.len());
        if let ChatMessage::Assistant { calls, .. } = &self.message {
            messages.extend(calls.iter().zip(self.results).map(|(call, result)| ChatMessage::Tool {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: result.unwrap_or_else(|| NO_RESULT.to_owned()),
            }));
        }
        messages.insert(0, self.message);
        messages
    }
}

/// Keeps a user's parts, joined to a user's message right before.
fn keep_user(kept: &mut Vec<Kept>, mut parts: Vec<Part>) {
    parts.retain(|part| match part {
        Part::Text(text) | Part::ImageUrl(text) => !text.trim().is_empty(),
    });
    if parts.is_empty() {
        return;
    }
    if let Some(Kept {
        message: ChatMessage::User { parts: before },
        ..
    }) = kept.last_mut()
    {
        before.append(&mut parts);
    } else {
        kept.push(Kept {
            message: ChatMessage::User { parts },
            results: Vec::new(),
        });
    }
}

/// Calls with a name, an id of their own, and arguments that are a JSON object:
/// servers parse them when they render the prompt.
fn with_sound_calls(mut calls: Vec<Call>) -> Vec<Call> {
    let given: HashSet<String> = calls.iter().map(|call| call.id.clone()).collect();
    let mut fresh = (1..)
        .map(|number: u32| format!("call_{number}"))
        .filter(|id| !given.contains(id));
    let mut used = HashSet::new();
    for call in &mut calls {
        if call.id.is_empty() || !used.insert(call.id.clone()) {
            call.id = fresh.next().unwrap_or_default();
        }
        if call.name.trim().is_empty() {
            call.name = NO_NAME.to_owned();
        }
        if !is_object(&call.arguments) {
            call.arguments = "{}".to_owned();
        }
    }
    calls
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests;
