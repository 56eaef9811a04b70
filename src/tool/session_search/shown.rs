//! Sessions and messages as the model is shown them: short enough that a result
//! with several of them fits.

#![allow(
    clippy::indexing_slicing,
    reason = "keys of JSON objects: a read of a missing one is null, and what is written is an object made here"
)]

use serde_json::{Value, json};

use crate::base::text::first_chars;
use crate::model::job::JOB_ID;
use crate::model::session::Session;
use crate::store::recall::Said;

/// Of one message.
const TEXT_CHARS: usize = 2_000;
/// Of a session's first words.
const PREVIEW_CHARS: usize = 120;

pub(super) fn message(said: &Said) -> Value {
    let text = first_chars(&said.text, TEXT_CHARS);
    let mut shown = json!({
        "id": said.message_id,
        "role": said.role,
        "content": text,
        "timestamp": said.at,
    });
    if text.len() < said.text.len() {
        shown["truncated"] = json!(true);
    }
    shown
}

pub(super) fn messages(said: &[Said]) -> Vec<Value> {
    said.iter().map(message).collect()
}

pub(super) fn meta(session: &Session) -> Value {
    json!({
        "when": session.created_at,
        "source": source(session),
        "model": session.model,
        "title": session.title,
    })
}

/// Where the session came from.
pub(super) fn source(session: &Session) -> &'static str {
    match (session.metadata.contains_key(JOB_ID), session.parent.is_some()) {
        (true, _) => "cron",
        (false, true) => "fork",
        (false, false) => "api",
    }
}

pub(super) fn preview(said: Option<&Said>) -> String {
    first_chars(said.map_or("", |said| said.text.trim()), PREVIEW_CHARS).to_owned()
}
