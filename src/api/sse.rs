//! Frames of what is followed as Server-Sent Events: `event` is the type, `id`
//! the cursor, `data` the envelope in one line. Frames that wait together leave
//! together; a reader that does not read holds one page of events and no more.
//! A stream ends with the credential that opened it.

use std::convert::Infallible;
use std::fmt::Write;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};

use crate::live::follow::{Follower, Frame};
use crate::live::lists::ListFollower;
use crate::model::event::EventBody;
use crate::model::tenant_event::{TenantEvent, TenantEventBody};
use crate::store::StoreError;

use super::leash::Leash;
use super::lifetime::Lifetime;
use super::state::ApiState;

/// How long a client waits before it comes back after a break.
const RETRY_MS: u32 = 1000;
/// Frames are gathered up to this size: a few network segments.
const CHUNK_BYTES: usize = 16 * 1024;

/// What is followed.
pub(super) enum Watched {
    Session(Box<Follower>),
    Lists(Box<ListFollower>),
}

enum Shown {
    Session(Frame),
    Lists(TenantEvent),
}

struct Source {
    state: ApiState,
    watched: Watched,
    leash: Leash,
    lifetime: Lifetime,
    over: bool,
}

/// The stream as a response. It ends with what is followed, with the server, or
/// with the store; a client that comes back with its cursor misses nothing.
pub(super) fn response(state: ApiState, watched: Watched, leash: Leash, lifetime: Lifetime) -> Response {
    let source = Source {
        state,
        watched,
        leash,
        lifetime,
        over: false,
    };
    let body = Body::from_stream(stream::unfold(source, |mut source| async move {
        let chunk = source.next().await?;
        Some((Ok::<_, Infallible>(chunk), source))
    }));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        // Asks proxies not to gather what is sent.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, body).into_response()
}

impl Watched {
    async fn next(&mut self) -> Option<Result<Shown, StoreError>> {
        match self {
            Self::Session(follower) => Some(follower.next().await?.map(Shown::Session)),
            Self::Lists(follower) => Some(follower.next().await?.map(Shown::Lists)),
        }
    }

    fn ready(&mut self) -> Option<Shown> {
        match self {
            Self::Session(follower) => follower.ready().map(Shown::Session),
            Self::Lists(follower) => follower.ready().map(Shown::Lists),
        }
    }
}

impl Source {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let closing = self.state.closing.clone();
        let next = loop {
            // Also when there is always something to send.
            if self.lifetime.is_due() && !self.lifetime.holds().await {
                return self.end();
            }
            tokio::select! {
                next = self.watched.next() => break next,
                () = self.lifetime.due() => {}
                () = closing.cancelled() => {
                    self.end();
                    return Some(Bytes::from(format!("retry: {RETRY_MS}\n: the server stops; come back with the last id\n\n")));
                }
            }
        };
        let frame = match next {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                tracing::warn!(%error, "a stream ended early; its reader can come back");
                return self.end();
            }
            None => return self.end(),
        };
        let mut text = String::new();
        write(&mut text, &frame);
        while text.len() < CHUNK_BYTES
            && let Some(frame) = self.watched.ready()
        {
            write(&mut text, &frame);
        }
        Some(Bytes::from(text))
    }

    /// The end is not the client's doing.
    fn end(&mut self) -> Option<Bytes> {
        self.over = true;
        self.leash.let_go();
        None
    }
}

fn write(text: &mut String, shown: &Shown) {
    // Events are made of texts, numbers and JSON values and always serialise;
    // JSON has no line breaks outside of its escapes. Writing to a String
    // cannot fail.
    let (data, name, greets) = match shown {
        Shown::Session(Frame { event, .. }) => (
            serde_json::to_string(event),
            event.body.name(),
            matches!(event.body, EventBody::StreamHello(_)),
        ),
        Shown::Lists(event) => (
            serde_json::to_string(event),
            event.body.name(),
            matches!(event.body, TenantEventBody::StreamHello(_)),
        ),
    };
    let data = data.unwrap_or_default();
    if greets {
        let _written = writeln!(text, "retry: {RETRY_MS}");
    }
    let _written = writeln!(text, "event: {name}");
    if let Shown::Session(Frame {
        cursor: Some(cursor), ..
    }) = shown
    {
        let _written = writeln!(text, "id: {cursor}");
    }
    let _written = write!(text, "data: {data}\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Timestamp;
    use crate::live::cursor::Cursor;
    use crate::model::event::{Event, HeartbeatData, HelloData, TextData};
    use crate::model::id::{MessageId, SessionId};

    fn written(body: EventBody, cursor: Option<Cursor>) -> Vec<String> {
        let event = Event {
            id: "3.1".to_owned(),
            seq: 3,
            body,
            session_id: SessionId::from_bits(1),
            turn_id: None,
            at: Timestamp(0),
        };
        let mut text = String::new();
        write(&mut text, &Shown::Session(Frame { cursor, event }));
        assert!(text.ends_with("\n\n"));
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_frame_has_type_cursor_and_one_line_of_data() {
        let body = EventBody::MessageDelta(TextData {
            message_id: MessageId::from_bits(2),
            text: "a\nb\r\u{2028}".to_owned(),
        });
        let lines = written(body, Some(Cursor { seq: 3, d: 1 }));
        assert_eq!(&lines[..2], ["event: message.delta", "id: 3.1"]);
        assert_eq!((lines.len(), lines[3].as_str()), (4, ""));
        let data = lines[2].strip_prefix("data: ").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(
            (&data["type"], &data["data"]["text"]),
            (&"message.delta".into(), &"a\nb\r\u{2028}".into())
        );
    }

    #[test]
    fn a_greeting_says_when_to_come_back_and_a_heartbeat_moves_nothing() {
        let hello = written(
            EventBody::StreamHello(HelloData { head_seq: 9 }),
            Some(Cursor::default()),
        );
        assert_eq!(&hello[..3], ["retry: 1000", "event: stream.hello", "id: 0.0"]);
        let beat = written(EventBody::Heartbeat(HeartbeatData { at: Timestamp(0) }), None);
        assert_eq!(beat[0], "event: heartbeat");
        assert!(beat[1].starts_with("data: ") && beat.len() == 3);
    }
}
