//! Streams beside the spine's: of a tenant's lists, as plain text, filtered,
//! opened with a token in the URL, closed with the credential, and of logs whose
//! beginning is folded.

mod credentials;
mod filters;
mod inbox;
mod lists;
mod retention;
mod text;
mod tokens;

use serde_json::Value;

use crate::harness::http::{Events, WireFrame};

/// Frames to the first of that type, which comes along; without heartbeats.
async fn through(events: &mut Events, last: &str) -> Vec<WireFrame> {
    let mut frames = Vec::new();
    loop {
        let frame = events.next().await.expect("the stream goes on");
        let is_last = frame.event == last;
        if is_last || frame.event != "heartbeat" {
            frames.push(frame);
        }
        if is_last {
            return frames;
        }
    }
}

fn types(frames: &[WireFrame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

fn approval(frame: &WireFrame) -> &Value {
    &frame.data["data"]["approval"]
}
