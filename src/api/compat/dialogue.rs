//! A conversation as a client sends it whole: what the system says, what was said
//! before, and what is said now.

use serde_json::Value;

use super::content;
use crate::api::failure::Failure;
use crate::base::Timestamp;
use crate::model::message::{FinishReason, Part, Role};
use crate::model::transfer::{MessageLine, TurnLine};
use crate::model::turn::{StopReason, TurnOptions, TurnStatus, Usage};

/// Something that was said before.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::api) struct Said {
    pub role: Role,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::api) struct Dialogue {
    pub system: Option<String>,
    pub history: Vec<Said>,
    pub input: Vec<Part>,
}

/// Reads a list of messages. Only system, user and assistant ones count: what
/// tools said belongs to the server. The last of user and assistant is what is
/// said now, whoever said it.
pub(in crate::api) fn of_messages(messages: &Value, pointer: &str) -> Result<Dialogue, Failure> {
    let Some(list) = messages.as_array().filter(|list| !list.is_empty()) else {
        let detail = "send a list of messages with at least one of a user";
        return Err(Failure::field(pointer, detail).known_as("invalid_messages"));
    };
    let (mut system, mut history): (Vec<String>, Vec<Said>) = (Vec::new(), Vec::new());
    for (place, message) in list.iter().enumerate() {
        let pointer = format!("{pointer}/{place}");
        if !message.is_object() {
            let detail = "a message is an object with `role` and `content`";
            return Err(Failure::field(&pointer, detail).known_as("invalid_messages"));
        }
        let content = &message["content"];
        match message["role"].as_str().unwrap_or("user") {
            "system" | "developer" => system.push(content::text(content)),
            "user" => history.push(Said {
                role: Role::User,
                parts: content::parts(content, &format!("{pointer}/content"))?,
            }),
            "assistant" => {
                let parts = content::parts(content, &format!("{pointer}/content"))?;
                // Calls without words: the server has them, or nobody does.
                if !parts.is_empty() {
                    history.push(Said {
                        role: Role::Assistant,
                        parts,
                    });
                }
            }
            _ => {}
        }
    }
    let Some(now) = history.pop() else {
        return Err(Failure::field(pointer, "no message of a user is among them").known_as("invalid_messages"));
    };
    let system = system.join("\n");
    Ok(Dialogue {
        system: (!system.trim().is_empty()).then_some(system),
        history,
        input: now.parts,
    })
}

/// A list of things said before, without anything that is said now.
pub(in crate::api) fn history(list: &Value, pointer: &str) -> Result<Vec<Said>, Failure> {
    match list {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) if items.is_empty() => Ok(Vec::new()),
        Value::Array(_) => {
            let read = of_messages(list, pointer)?;
            let role = if last_is_assistant(list) {
                Role::Assistant
            } else {
                Role::User
            };
            let now = Said {
                role,
                parts: read.input,
            };
            Ok(read.history.into_iter().chain([now]).collect())
        }
        _ => Err(Failure::field(pointer, "expected a list of messages")),
    }
}

fn last_is_assistant(list: &Value) -> bool {
    let roles = list
        .as_array()
        .into_iter()
        .flatten()
        .rev()
        .filter_map(|item| item["role"].as_str());
    roles.into_iter().find(|role| ["user", "assistant"].contains(role)) == Some("assistant")
}

/// The same as turns that are over, for a session that begins with them.
pub(in crate::api) fn as_past(history: &[Said], now: Timestamp) -> Vec<(TurnLine, Vec<MessageLine>)> {
    let mut turns: Vec<(TurnLine, Vec<MessageLine>)> = Vec::new();
    for (place, said) in history.iter().enumerate() {
        if said.role == Role::User || turns.is_empty() {
            let input = match said.role {
                Role::User => said.parts.clone(),
                _ => Vec::new(),
            };
            turns.push((over(place, input, now), Vec::new()));
        }
        if let Some((_, messages)) = turns.last_mut() {
            messages.push(MessageLine {
                id: format!("{place}"),
                external_id: None,
                role: said.role,
                content: said.parts.clone(),
                reasoning: None,
                finish_reason: (said.role == Role::Assistant).then_some(FinishReason::Stop),
                tool_calls: Vec::new(),
                tool_call_id: None,
                steered: false,
                created_at: now,
            });
        }
    }
    turns
}

fn over(place: usize, input: Vec<Part>, now: Timestamp) -> TurnLine {
    TurnLine {
        id: format!("{place}"),
        status: TurnStatus::Completed,
        stop_reason: Some(StopReason::EndTurn),
        input,
        options: TurnOptions::default(),
        usage: Usage::default(),
        error: None,
        created_at: now,
        started_at: Some(now),
        finished_at: Some(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_word_is_the_input_and_the_rest_is_history() {
        let read = of_messages(
            &json!([
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": null, "tool_calls": [{}]},
                {"role": "tool", "content": "x", "tool_call_id": "c"},
                {"role": "assistant", "content": "hello"},
                {"role": "user", "content": [{"type": "text", "text": "go"}]},
            ]),
            "/messages",
        );
        let read = read.unwrap();
        assert_eq!(read.system.as_deref(), Some("be brief"));
        assert_eq!(read.history.len(), 2);
        assert_eq!(read.input, [Part::text("go")]);
        let past = as_past(&read.history, Timestamp(5));
        assert_eq!((past.len(), past[0].1.len()), (1, 2));
    }

    #[test]
    fn a_list_without_anybody_who_speaks_is_refused() {
        for messages in [
            json!([]),
            json!(null),
            json!("hi"),
            json!(["hi"]),
            json!([{"role": "system", "content": "x"}]),
        ] {
            let failure = of_messages(&messages, "/messages").unwrap_err();
            assert_eq!(failure.problem().status, 400, "{messages}");
        }
    }

    #[test]
    fn a_history_keeps_its_last_word() {
        let list = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]);
        let said = history(&list, "/conversation_history").unwrap();
        assert_eq!((said.len(), said[1].role), (2, Role::Assistant));
        assert_eq!(history(&json!(null), "").unwrap(), []);
    }
}
