//! What a language model is asked: the conversation as the model shall see it,
//! and the tools it may call. Protocol-neutral; each client renders it for its
//! own wire. `repair` makes a conversation valid before it is sent.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::model::sampling::Sampling;

/// One question to a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model's name as the upstream server knows it.
    pub model: String,
    pub messages: Vec<ChatMessage>,
    /// The array of OpenAI function tools, serialised once and shared by every
    /// turn with the same tools. `None` forbids calls.
    pub tools: Option<Arc<RawValue>>,
    pub sampling: Sampling,
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatMessage {
    System {
        text: String,
    },
    User {
        parts: Vec<Part>,
    },
    Assistant {
        text: Option<String>,
        reasoning: Option<String>,
        calls: Vec<Call>,
    },
    Tool {
        call_id: String,
        name: String,
        content: String,
    },
}

impl ChatMessage {
    /// A user's message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            parts: vec![Part::Text(text.into())],
        }
    }
}

/// One piece of a user's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// An `https:` or `data:` address of an image.
    ImageUrl(String),
}

/// A tool call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Unique within its answer; pairs the call with its result.
    pub id: String,
    pub name: String,
    /// Raw text, not necessarily JSON.
    pub arguments: String,
}
