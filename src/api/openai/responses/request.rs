//! The body of a response to be made.

use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::api::compat::begin::{Ask, metadata};
use crate::api::compat::dialogue::{self, Dialogue};
use crate::api::compat::handed::Output;
use crate::api::compat::loose::Flag;
use crate::api::compat::{content, headers};
use crate::api::failure::Failure;
use crate::model::client_tool::ClientTool;
use crate::model::message::{Part, Role};
use crate::model::sampling::ToolChoice;
use crate::model::turn::OnDisconnect;

use super::functions;

/// What of a request its response repeats; kept in the turn's metadata.
pub(super) const ASKED: &str = "hermes.response";

/// A response to be made. What samples is taken and ignored: the server's own agent
/// answers.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ResponseRequest {
    /// A text or items: messages, or one `mcp_approval_response` for each approval
    /// that is answered, or one `function_call_output` behind everything else for
    /// each call that the client carried out.
    #[serde(default)]
    #[schema(value_type = Object)]
    input: Value,
    /// Said to the model in this response, and in those that go on from it and
    /// say nothing else.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    instructions: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub previous_response_id: Value,
    /// A name: its responses follow one another. Not with `previous_response_id`.
    #[serde(default)]
    #[schema(value_type = Object)]
    conversation: Value,
    /// What was said before, in place of a chain.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    conversation_history: Value,
    #[serde(default)]
    store: Flag,
    #[serde(default)]
    pub stream: Flag,
    /// Answered at once; read or streamed later by its id.
    #[serde(default)]
    pub background: Flag,
    /// Comes back in the response. One of `model_routes` is answered by its model,
    /// any other by the configured one.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    model: Value,
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Value,
    /// Functions that the client carries out; tools of other types are ignored.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    tools: Value,
    /// With `tools`: `auto`, `none`, `required` or the function to call.
    #[serde(default)]
    #[schema(value_type = Object)]
    tool_choice: Value,
}

/// An answer to an approval among the items.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    /// The approval's id, of ours or as the item showed it.
    pub id: String,
    /// The word for the choice.
    pub choice: String,
    pub reason: Option<String>,
}

/// A request, read.
#[derive(Debug)]
pub(super) struct Wanted {
    pub said: Dialogue,
    pub answers: Vec<Answer>,
    /// What came of calls that the client carried out.
    pub outputs: Vec<Output>,
    pub previous: Option<String>,
    pub conversation: Option<String>,
    /// A past of its own was sent.
    pub has_history: bool,
    pub key: Option<String>,
    pub stream: bool,
    pub background: bool,
    asked: Value,
    on_disconnect: OnDisconnect,
    /// Each with its place in the request.
    pub tools: Vec<(String, ClientTool)>,
    tool_choice: Option<ToolChoice>,
}

impl ResponseRequest {
    pub(super) fn read(self, headers: &HeaderMap) -> Result<Wanted, Failure> {
        let Items {
            mut said,
            answers,
            outputs,
        } = items(&self.input)?;
        let tools = functions::tools(&self.tools)?;
        let tool_choice = match tools.is_empty() {
            true => None,
            false => functions::choice(&self.tool_choice)?,
        };
        if let Some(text) = text(&self.instructions, "/instructions")? {
            said.system = Some(
                [Some(text), said.system.take()]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join("\n"),
            );
        }
        let told = dialogue::history(&self.conversation_history, "/conversation_history")?;
        let has_history = !told.is_empty();
        said.history.splice(..0, told);
        let previous = text(&self.previous_response_id, "/previous_response_id")?;
        let conversation = name(&self.conversation)?;
        if previous.is_some() && conversation.is_some() {
            let detail = "a response goes on from `previous_response_id` or in a `conversation`, not both";
            return Err(Failure::field("/conversation", detail));
        }
        let (stream, background) = (self.stream.is_set(), self.background.is_set());
        if background && self.store.0 == Some(false) {
            return Err(Failure::field("/background", "what is not stored cannot be read later"));
        }
        let usual = match stream && !background {
            true => OnDisconnect::Cancel,
            false => OnDisconnect::Continue,
        };
        let metadata = match self.metadata {
            Value::Object(metadata) => json!(metadata),
            _ => json!({}),
        };
        Ok(Wanted {
            asked: json!({"model": self.model.as_str(), "metadata": metadata, "previous_response_id": previous,
                "conversation": conversation, "store": self.store.0.unwrap_or(true), "background": background}),
            said,
            answers,
            outputs,
            tools,
            tool_choice,
            previous,
            conversation,
            has_history,
            key: headers::session_key(headers)?,
            stream,
            background,
            on_disconnect: headers::on_disconnect(headers)?.unwrap_or(usual),
        })
    }
}

impl Wanted {
    /// The fields that the response repeats.
    pub(super) fn asked(&self) -> &Value {
        &self.asked
    }

    /// `carried` are the instructions of the response that this one goes on from.
    pub(super) fn ask(&self, carried: Option<String>) -> Ask {
        let mut metadata = metadata("responses", self.key.as_deref());
        metadata.insert(ASKED.to_owned(), self.asked.clone());
        let input = match self.previous.is_some() || self.conversation.is_some() {
            // What a chain holds already is not sent again, so all of it is new.
            true => self.users_words(),
            false => self.said.input.clone(),
        };
        Ask {
            input,
            model: self.asked.get("model").and_then(Value::as_str).map(str::to_owned),
            instructions: self.said.system.clone().or(carried),
            metadata,
            on_disconnect: self.on_disconnect,
            tools: self.tools.iter().map(|(_, tool)| tool.clone()).collect(),
            tool_choice: self.tool_choice.clone(),
        }
    }

    fn users_words(&self) -> Vec<Part> {
        let before = self
            .said
            .history
            .iter()
            .filter(|said| said.role == Role::User && !self.has_history);
        before
            .flat_map(|said| said.parts.clone())
            .chain(self.said.input.clone())
            .collect()
    }

    /// The name under which the conversation's session is kept: the user's own.
    pub(super) fn session_name(&self, user: &str) -> Option<String> {
        let name = self.conversation.as_ref()?;
        let hash = Sha256::digest(json!([user, name]).to_string().as_bytes());
        let hex: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        Some(format!("{CONVERSATION}{hex}"))
    }
}

pub(super) const CONVERSATION: &str = "conv-";

fn text(value: &Value, pointer: &str) -> Result<Option<String>, Failure> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err(Failure::field(pointer, "expected a text")),
    }
}

/// A name, or an object with it as `id`.
fn name(value: &Value) -> Result<Option<String>, Failure> {
    match value {
        Value::Object(fields) => text(fields.get("id").unwrap_or(&Value::Null), "/conversation/id"),
        value => text(value, "/conversation"),
    }
}

/// The items of an input.
#[derive(Default)]
struct Items {
    said: Dialogue,
    answers: Vec<Answer>,
    outputs: Vec<Output>,
}

fn items(input: &Value) -> Result<Items, Failure> {
    let Value::Array(list) = input else {
        return match input {
            Value::Null => Err(Failure::field("/input", "send a text or a list of items")),
            input => Ok(Items {
                said: Dialogue {
                    input: content::parts(input, "/input")?,
                    ..Dialogue::default()
                },
                ..Items::default()
            }),
        };
    };
    // What stands before a message is history; the server has it.
    let last_said = list.iter().rposition(|item| as_message(item).is_some());
    let behind = list.iter().skip(last_said.map_or(0, |place| place + 1));
    let outputs: Vec<Output> = behind
        .filter(|item| item["type"] == "function_call_output")
        .map(functions::output)
        .collect::<Result<_, _>>()?;
    let answers: Vec<Answer> = list
        .iter()
        .filter(|item| item["type"] == "mcp_approval_response")
        .map(answer)
        .collect::<Result<_, _>>()?;
    let messages: Vec<Value> = list.iter().filter_map(as_message).collect();
    if !outputs.is_empty() && answers.is_empty() {
        return Ok(Items {
            outputs,
            ..Items::default()
        });
    }
    if !outputs.is_empty() {
        return Err(Failure::field(
            "/input",
            "answers to approvals and outputs of calls come apart",
        ));
    }
    if messages.is_empty() && !answers.is_empty() {
        return Ok(Items {
            answers,
            ..Items::default()
        });
    }
    if !answers.is_empty() {
        let detail = "answers to approvals come without messages: a message decides nothing";
        return Err(Failure::field("/input", detail));
    }
    Ok(Items {
        said: dialogue::of_messages(&Value::Array(messages), "/input")?,
        ..Items::default()
    })
}

/// An item that is a message. What the server's own tools did is the server's to
/// know, so their items are left out.
fn as_message(item: &Value) -> Option<Value> {
    match item {
        Value::String(text) => Some(json!({"role": "user", "content": text})),
        Value::Object(_) => match item["type"].as_str() {
            None | Some("message") => Some(item.clone()),
            Some("input_text" | "input_image" | "text" | "image_url") => {
                Some(json!({"role": "user", "content": [item]}))
            }
            Some(_) => None,
        },
        _ => None,
    }
}

fn answer(item: &Value) -> Result<Answer, Failure> {
    let id = item["approval_request_id"].as_str();
    let Some(id) = id else {
        return Err(Failure::field(
            "/input",
            "an `mcp_approval_response` has an `approval_request_id`",
        ));
    };
    let word = item
        .pointer("/hermes/choice")
        .or(item.get("choice"))
        .and_then(Value::as_str);
    let choice = match (word, item["approve"].as_bool()) {
        (Some(word), _) => word,
        (None, Some(true)) => "once",
        (None, Some(false)) => "deny",
        (None, None) => return Err(Failure::field("/input", "an `mcp_approval_response` has `approve`")),
    };
    Ok(Answer {
        id: id.replacen("mcpr_", "apr_", 1),
        choice: choice.to_owned(),
        reason: item["reason"].as_str().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::compat::dialogue::Said;

    fn read(body: Value) -> Result<Wanted, Failure> {
        let request: ResponseRequest = serde_json::from_value(body).unwrap();
        request.read(&HeaderMap::new())
    }

    #[test]
    fn an_input_is_a_text_or_items_of_which_messages_count() {
        for input in [
            json!("hi"),
            json!(["hi"]),
            json!([{"role": "user", "content": "hi"}]),
            json!([{"type": "function_call", "name": "x"}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]),
        ] {
            let wanted = read(json!({"input": input})).unwrap();
            assert_eq!(wanted.said.input, [Part::text("hi")], "{input}");
        }
        for input in [
            json!(null),
            json!(5),
            json!([]),
            json!([{"type": "function_call"}]),
            json!([{"type": "function_call_output", "output": "x"}]),
        ] {
            assert!(read(json!({"input": input})).is_err(), "{input}");
        }
    }

    #[test]
    fn approvals_are_answered_by_items() {
        let wanted = read(json!({"previous_response_id": "resp_1", "input": [
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true},
            {"type": "mcp_approval_response", "approval_request_id": "apr_2", "approve": false, "reason": "no"},
            {"type": "mcp_approval_response", "approval_request_id": "apr_3", "approve": true, "hermes": {"choice": "session"}}]}));
        let choices: Vec<(String, String)> = wanted
            .unwrap()
            .answers
            .into_iter()
            .map(|one| (one.id, one.choice))
            .collect();
        let expected = [("apr_1", "once"), ("apr_2", "deny"), ("apr_3", "session")];
        assert_eq!(choices, expected.map(|(id, choice)| (id.to_owned(), choice.to_owned())));
    }

    #[test]
    fn outputs_behind_everything_are_given_and_those_before_a_message_are_history() {
        let output = json!({"type": "function_call_output", "call_id": "call_1", "output": "42"});
        let given = read(json!({"input": ["hi", {"type": "function_call", "name": "x", "call_id": "call_1"}, output]}));
        let given = given.unwrap();
        assert_eq!((given.outputs.len(), given.outputs[0].text.as_str()), (1, "42"));
        let said = read(json!({"input": ["hi", output, "go on"]})).unwrap();
        assert_eq!((said.outputs.len(), said.said.input), (0, vec![Part::text("go on")]));
    }

    #[test]
    fn what_excludes_itself_is_refused() {
        for body in [
            json!({"input": "x", "previous_response_id": "resp_1", "conversation": "c"}),
            json!({"input": "x", "background": true, "store": false}),
            json!({"input": [{"type": "mcp_approval_response", "approval_request_id": "a", "approve": true}, "x"]}),
            json!({"input": "x", "instructions": 5}),
        ] {
            assert!(read(body.clone()).is_err(), "{body}");
        }
    }

    #[test]
    fn a_conversation_is_its_users_own() {
        let wanted = read(json!({"input": "x", "conversation": {"id": "c"}})).unwrap();
        assert_eq!(wanted.conversation.as_deref(), Some("c"));
        assert_ne!(wanted.session_name("ada"), wanted.session_name("bob"));
    }

    #[test]
    fn a_chain_takes_all_new_words_of_the_user() {
        let wanted = read(json!({"input": ["a", "b"], "previous_response_id": "resp_1"})).unwrap();
        assert_eq!(wanted.ask(None).input, [Part::text("a"), Part::text("b")]);
        assert_eq!(
            wanted.said.history,
            [Said {
                role: Role::User,
                parts: vec![Part::text("a")]
            }]
        );
    }
}
