//! The body of a chat completion. What samples or offers tools is taken and
//! ignored, as by the original: the server's own agent answers.

use http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::compat::begin::{Ask, metadata};
use crate::api::compat::dialogue::{self, Dialogue};
use crate::api::compat::headers;
use crate::api::compat::loose::Flag;
use crate::api::failure::Failure;
use crate::model::turn::OnDisconnect;

/// A chat completion to be made.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ChatRequest {
    /// Everything that was said; the last one is answered. With the header
    /// `X-Hermes-Session-Id` the session remembers, and only the last one counts.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    messages: Value,
    #[serde(default)]
    pub stream: Flag,
    /// Comes back in the answer. One of `model_routes` is answered by its model, any
    /// other by the configured one.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    model: Value,
    /// What only this server knows.
    #[serde(default)]
    pub hermes: HermesOptions,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
pub(super) struct HermesOptions {
    /// Approvals come as events named `hermes.approval.request` in the stream.
    #[serde(default)]
    pub approval_events: Flag,
}

/// A request, read.
#[derive(Debug)]
pub(super) struct Chat {
    pub dialogue: Dialogue,
    pub model: Option<String>,
    pub session: Option<String>,
    pub key: Option<String>,
    pub on_disconnect: OnDisconnect,
    pub approval_events: bool,
    pub stream: bool,
}

impl ChatRequest {
    pub(super) fn read(self, headers: &HeaderMap) -> Result<Chat, Failure> {
        let stream = self.stream.is_set();
        // A chat has no other way to stop than to leave its stream.
        let usual = if stream {
            OnDisconnect::Cancel
        } else {
            OnDisconnect::Continue
        };
        Ok(Chat {
            dialogue: dialogue::of_messages(&self.messages, "/messages")?,
            model: self.model.as_str().map(str::to_owned),
            key: headers::session_key(headers)?,
            session: headers::session_id(headers)?,
            on_disconnect: headers::on_disconnect(headers)?.unwrap_or(usual),
            approval_events: self.hermes.approval_events.is_set() || headers::wants_approval_events(headers),
            stream,
        })
    }
}

impl Chat {
    pub(super) fn ask(&self) -> Ask {
        Ask {
            input: self.dialogue.input.clone(),
            model: self.model.clone(),
            instructions: self.dialogue.system.clone(),
            metadata: metadata("chat", self.key.as_deref()),
            on_disconnect: self.on_disconnect,
            ..Ask::default()
        }
    }
}
