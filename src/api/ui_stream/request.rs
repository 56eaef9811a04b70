//! What the chat transport of the AI SDK sends: the whole of the chat as UI
//! messages. The session remembers, so only the last message counts: a user's is
//! said, an assistant's carries answers to approvals.

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::api::compat::handed::Output;
use crate::api::compat::{content, headers, question};
use crate::api::failure::Failure;
use crate::model::approval::Choice;
use crate::model::client_tool::ClientTool;
use crate::model::message::Part;

/// A chat to go on with.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct UiChat {
    /// The chat's name: the session's, which is made where there is none.
    #[serde(default)]
    id: String,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    messages: Value,
    /// Said to the model in this turn only.
    #[serde(default)]
    pub instructions: Option<String>,
    /// By the id of an approval that the last message answers: one of the
    /// approval's `choices`, where more is meant than yes or no for this once.
    #[serde(default)]
    #[schema(value_type = Object)]
    choices: Value,
    /// Functions that the page carries out, as in chat completions.
    #[serde(default)]
    pub tools: Vec<ClientTool>,
}

/// An answer to an approval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub approval: String,
    pub choice: Choice,
    pub reason: Option<String>,
}

/// What the last message asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    Say(Vec<Part>),
    Decide {
        message_id: Option<String>,
        answers: Vec<Answer>,
        /// What came of calls that the page carried out, and of earlier ones.
        outputs: Vec<Output>,
    },
}

impl UiChat {
    pub(super) fn read(&self) -> Result<(String, Asked), Failure> {
        let name = self.id.trim();
        headers::check_name("/id", name)?;
        let last = self.messages.as_array().and_then(|list| list.last());
        let Some(last) = last else {
            return Err(Failure::field("/messages", "send the messages of the chat"));
        };
        let parts = last["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        let asked = match last["role"].as_str() {
            Some("user") => Asked::Say(said(last, parts)?),
            Some("assistant") => Asked::Decide {
                message_id: last["id"].as_str().map(str::to_owned),
                answers: parts
                    .iter()
                    .filter_map(|part| answer(part, &self.choices).transpose())
                    .collect::<Result<_, _>>()?,
                outputs: parts.iter().filter_map(output).collect(),
            },
            _ => {
                return Err(Failure::field(
                    "/messages",
                    "the last message is a user's or an assistant's",
                ));
            }
        };
        match &asked {
            Asked::Decide { answers, outputs, .. } if answers.is_empty() && outputs.is_empty() => Err(Failure::field(
                "/messages",
                "the last message is an assistant's; it answers no approval and has no output of a tool",
            )),
            _ => Ok((name.to_owned(), asked)),
        }
    }
}

fn said(message: &Value, parts: &[Value]) -> Result<Vec<Part>, Failure> {
    if parts.is_empty() {
        return content::parts(&message["content"], "/messages/content");
    }
    let known: Vec<Value> = parts.iter().filter_map(as_content).collect();
    content::parts(&Value::Array(known), "/messages/parts")
}

/// A part of a UI message as content; what only the client shows is left out.
fn as_content(part: &Value) -> Option<Value> {
    match part["type"].as_str()? {
        "text" => Some(part.clone()),
        "file"
            if part["mediaType"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("image/")) =>
        {
            Some(json!({"type": "image_url", "image_url": part["url"]}))
        }
        "file" => Some(json!({"type": "file"})),
        _ => None,
    }
}

/// Parts of tools whose approval was answered and whose result is not known yet.
/// The SDK knows yes and no; the choice among more comes beside the messages.
fn answer(part: &Value, choices: &Value) -> Result<Option<Answer>, Failure> {
    if part["state"] != "approval-responded" {
        return Ok(None);
    }
    let approval = &part["approval"];
    let (Some(id), Some(approved)) = (approval["id"].as_str(), approval["approved"].as_bool()) else {
        return Ok(None);
    };
    let choice = match &choices[id] {
        Value::Null if approved => Choice::Once,
        Value::Null => Choice::Deny,
        word => {
            let choice = word.as_str().and_then(question::choice);
            let fits = choice.filter(|choice| choice.allows() == approved);
            fits.ok_or_else(|| {
                let detail = "expected one of the approval's `choices` that says the same as `approved`";
                Failure::field(&format!("/choices/{id}"), detail).known_as("invalid_approval_choice")
            })?
        }
    };
    Ok(Some(Answer {
        approval: id.to_owned(),
        choice,
        reason: approval["reason"].as_str().map(str::to_owned),
    }))
}

/// Parts of tools that the page carried out and has the output of.
fn output(part: &Value) -> Option<Output> {
    if part["providerExecuted"] == true {
        return None;
    }
    let (given, is_error) = match part["state"].as_str()? {
        "output-available" => (&part["output"], false),
        "output-error" => (&part["errorText"], true),
        _ => return None,
    };
    Some(Output {
        call: part["toolCallId"].as_str()?.to_owned(),
        text: given.as_str().map_or_else(|| given.to_string(), str::to_owned),
        is_error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(messages: &Value) -> Result<Asked, Failure> {
        let chat: UiChat = serde_json::from_value(json!({"id": "chat", "messages": messages})).unwrap();
        chat.read().map(|(_, asked)| asked)
    }

    #[test]
    fn more_than_yes_or_no_comes_beside_the_messages() {
        let chosen = |approved: bool, word: Value| {
            let part = json!({"state": "approval-responded", "approval": {"id": "apr_1", "approved": approved}});
            answer(&part, &json!({"apr_1": word, "apr_2": "always"})).map(|answer| answer.unwrap().choice)
        };
        assert_eq!(chosen(true, json!("session")).unwrap(), Choice::Session);
        assert_eq!(chosen(true, json!(null)).unwrap(), Choice::Once);
        assert_eq!(chosen(false, json!("deny")).unwrap(), Choice::Deny);
        for (approved, word) in [
            (false, json!("session")),
            (true, json!("deny")),
            (true, json!("perhaps")),
            (true, json!(5)),
        ] {
            let failure = chosen(approved, word).unwrap_err();
            assert_eq!(failure.problem().errors[0].pointer, "/choices/apr_1");
        }
    }

    #[test]
    fn the_last_message_says_what_is_asked() {
        let said = read(&json!([{"role": "user", "parts": [{"type": "text", "text": "hi"}, {"type": "step-start"}]}]));
        assert_eq!(said.unwrap(), Asked::Say(vec![Part::text("hi")]));
        let tool = json!({"type": "dynamic-tool", "state": "approval-responded", "approval": {"id": "apr_1", "approved": false, "reason": "no"}});
        let decided = read(&json!([{"role": "assistant", "id": "m1", "parts": [{"type": "text", "text": "x"}, tool]}]));
        let answer = Answer {
            approval: "apr_1".to_owned(),
            choice: Choice::Deny,
            reason: Some("no".to_owned()),
        };
        let expected = Asked::Decide {
            message_id: Some("m1".to_owned()),
            answers: vec![answer],
            outputs: Vec::new(),
        };
        assert_eq!(decided.unwrap(), expected);
        let part = |more: Value| {
            let mut part = json!({"type": "dynamic-tool", "toolCallId": "call_1", "state": "output-available"});
            part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!([{"role": "assistant", "parts": [part]}])
        };
        let Asked::Decide { outputs, .. } = read(&part(json!({"output": {"a": 1}}))).unwrap() else {
            panic!("an output of a tool is given");
        };
        assert_eq!((outputs[0].text.as_str(), outputs[0].is_error), ("{\"a\":1}", false));
        assert!(read(&part(json!({"output": "x", "providerExecuted": true}))).is_err());
        for wrong in [
            json!([]),
            json!([{"role": "system"}]),
            json!([{"role": "assistant", "parts": []}]),
        ] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
        let file =
            json!([{"role": "user", "parts": [{"type": "file", "mediaType": "application/pdf", "url": "data:x"}]}]);
        assert!(read(&file).is_err());
    }
}
