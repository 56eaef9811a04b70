//! The request body of `POST /chat/completions`, written in one pass from a
//! borrowed conversation: the history is copied once, into the bytes to send.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::sampling::{ReasoningEffort, ResponseFormat, ToolChoice};
use crate::provider::{Call, ChatMessage, Part, Request};

/// What servers of this protocol disagree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// Whether to ask for token counts; a few servers refuse the question.
    pub(super) counts: bool,
    /// The limit on an answer is `max_completion_tokens`, which newer models
    /// insist on, and not `max_tokens`, which every other server knows.
    pub(super) completion_tokens: bool,
}

pub(super) fn encode(request: &Request, manner: Manner) -> serde_json::Result<Vec<u8>> {
    // An empty array of tools is an error to most servers.
    let tools = request.tools.as_deref().filter(|tools| tools.get().trim() != "[]");
    let sampling = &request.sampling;
    let limit = |completion| {
        sampling
            .max_output_tokens
            .filter(|_| manner.completion_tokens == completion)
    };
    serde_json::to_vec(&Body {
        model: &request.model,
        messages: request.messages.iter().map(Message::from).collect(),
        tools,
        // So is a choice among none.
        tool_choice: sampling.tool_choice.as_ref().filter(|_| tools.is_some()),
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        max_tokens: limit(false),
        max_completion_tokens: limit(true),
        reasoning_effort: sampling.reasoning_effort,
        response_format: sampling.response_format.as_ref(),
        stream: true,
        stream_options: manner.counts.then_some(StreamOptions { include_usage: true }),
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'a ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<&'a ResponseFormat>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

impl<'a> From<&'a ChatMessage> for Message<'a> {
    fn from(message: &'a ChatMessage) -> Self {
        match message {
            ChatMessage::System { text } => Self::System { content: text },
            ChatMessage::User { parts } => Self::User {
                content: content(parts),
            },
            // Reasoning stays here: servers that do not know the field refuse it.
            ChatMessage::Assistant {
                text,
                reasoning: _,
                calls,
            } => Self::Assistant {
                content: text.as_deref(),
                tool_calls: calls.iter().map(ToolCall::from).collect(),
            },
            ChatMessage::Tool {
                call_id,
                name: _,
                content,
            } => Self::Tool {
                tool_call_id: call_id,
                content,
            },
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

/// Plain text unless there is an image: many servers take only a string.
fn content(parts: &[Part]) -> Content<'_> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::ImageUrl(_) => None,
        })
        .collect();
    match texts.as_deref() {
        Some([text]) => Content::Text(Cow::Borrowed(text)),
        Some(texts) => Content::Text(Cow::Owned(texts.join("\n\n"))),
        None => Content::Parts(parts.iter().map(ContentPart::from).collect()),
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: &'a str,
}

impl<'a> From<&'a Part> for ContentPart<'a> {
    fn from(part: &'a Part) -> Self {
        match part {
            Part::Text(text) => Self::Text { text },
            Part::ImageUrl(url) => Self::ImageUrl {
                image_url: ImageUrl { url },
            },
        }
    }
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> From<&'a Call> for ToolCall<'a> {
    fn from(call: &'a Call) -> Self {
        let function = Function {
            name: &call.name,
            arguments: &call.arguments,
        };
        Self {
            id: &call.id,
            kind: "function",
            function,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    const USUAL: Manner = Manner {
        counts: true,
        completion_tokens: false,
    };

    fn request(messages: Vec<ChatMessage>, tools: Option<&str>) -> Request {
        let tools = tools.map(|tools| Arc::from(RawValue::from_string(tools.to_owned()).unwrap()));
        Request {
            model: "m".to_owned(),
            messages,
            tools,
            sampling: Default::default(),
        }
    }

    fn sent(request: &Request, manner: Manner) -> Value {
        serde_json::from_slice(&encode(request, manner).unwrap()).unwrap()
    }

    #[test]
    fn sampling_goes_out_under_the_names_of_the_protocol() {
        let schema = json!({"type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": true}});
        let said = json!({"temperature": 0.5, "top_p": 0.25, "max_output_tokens": 7, "reasoning_effort": "low",
            "tool_choice": "required", "response_format": schema});
        let mut request = request(vec![ChatMessage::user("hi")], Some(r#"[{"type":"function"}]"#));
        request.sampling = serde_json::from_value(said.clone()).unwrap();
        let body = sent(&request, USUAL);
        for name in [
            "temperature",
            "top_p",
            "reasoning_effort",
            "tool_choice",
            "response_format",
        ] {
            assert_eq!(body[name], said[name], "{name}");
        }
        assert_eq!(
            (&body["max_tokens"], &body["max_completion_tokens"]),
            (&json!(7), &Value::Null)
        );
        request.tools = None;
        let completion_tokens = true;
        let body = sent(
            &request,
            Manner {
                completion_tokens,
                ..USUAL
            },
        );
        assert_eq!(
            (&body["max_tokens"], &body["max_completion_tokens"]),
            (&Value::Null, &json!(7))
        );
        assert_eq!(body["tool_choice"], Value::Null);
    }

    #[test]
    fn every_message_has_its_wire_form() {
        let call = Call {
            id: "c1".to_owned(),
            name: "todo".to_owned(),
            arguments: "{\"a\": 1}".to_owned(),
        };
        let messages = vec![
            ChatMessage::System {
                text: "be kind".to_owned(),
            },
            ChatMessage::User {
                parts: vec![Part::Text("a".to_owned()), Part::Text("b".to_owned())],
            },
            ChatMessage::Assistant {
                text: None,
                reasoning: Some("hm".to_owned()),
                calls: vec![call],
            },
            ChatMessage::Tool {
                call_id: "c1".to_owned(),
                name: "todo".to_owned(),
                content: "{}".to_owned(),
            },
            ChatMessage::Assistant {
                text: Some("done".to_owned()),
                reasoning: None,
                calls: Vec::new(),
            },
            ChatMessage::User {
                parts: vec![
                    Part::Text("see".to_owned()),
                    Part::ImageUrl("data:image/png;base64,AA==".to_owned()),
                ],
            },
        ];
        let body = sent(&request(messages, Some(r#"[{"type":"function"}]"#)), USUAL);
        assert_eq!(
            body,
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "be kind"},
                    {"role": "user", "content": "a\n\nb"},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "todo", "arguments": "{\"a\": 1}"}}
                    ]},
                    {"role": "tool", "tool_call_id": "c1", "content": "{}"},
                    {"role": "assistant", "content": "done"},
                    {"role": "user", "content": [
                        {"type": "text", "text": "see"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
                    ]},
                ],
                "tools": [{"type": "function"}],
                "stream": true,
                "stream_options": {"include_usage": true},
            })
        );
    }

    #[test]
    fn what_is_not_wanted_is_not_sent() {
        for tools in [None, Some("[]"), Some(" [] ")] {
            let manner = Manner { counts: false, ..USUAL };
            let body = sent(&request(vec![ChatMessage::user("hi")], tools), manner);
            assert_eq!(
                body,
                json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": true})
            );
        }
    }
}
