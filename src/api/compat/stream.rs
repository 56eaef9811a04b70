//! A turn's frames as a drop-in surface writes them. The frames are those of the
//! native stream; an encoder turns each into text. A viewer that leaves changes
//! nothing but for a leash, which holds while the turn runs and not while it waits
//! for a person.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};

use crate::api::leash::Leash;
use crate::api::lifetime::Lifetime;
use crate::api::state::ApiState;
use crate::live::follow::{Follower, Frame};
use crate::model::event::EventBody;

/// Text is gathered up to this size: a few network segments.
const CHUNK_BYTES: usize = 16 * 1024;

/// How a surface writes a turn.
pub(in crate::api) trait Encode: Send + 'static {
    /// What comes before anything happened.
    fn begin(&mut self, out: &mut String);

    /// What a frame is on this surface; `true` when it was the last.
    fn frame(&mut self, frame: &Frame, out: &mut String) -> bool;

    /// Says that the stream lives while nothing happens.
    fn beat(&mut self, out: &mut String) {
        out.push_str(": keepalive\n\n");
    }

    /// The server ends the stream early; the turn goes on without it.
    fn broken_off(&mut self, out: &mut String);
}

pub(in crate::api) struct Watched<E> {
    pub state: ApiState,
    pub follower: Follower,
    pub leash: Leash,
    pub lifetime: Lifetime,
    pub encoder: E,
}

struct Source<E> {
    watched: Watched<E>,
    begun: bool,
    over: bool,
}

pub(in crate::api) fn response<E: Encode>(watched: Watched<E>) -> Response {
    let source = Source {
        watched,
        begun: false,
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

impl<E: Encode> Source<E> {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let mut text = String::new();
        if !self.begun {
            self.begun = true;
            self.watched.encoder.begin(&mut text);
            if !text.is_empty() {
                return Some(Bytes::from(text));
            }
        }
        while text.is_empty() && !self.over {
            self.more(&mut text).await;
        }
        (!text.is_empty()).then(|| Bytes::from(text))
    }

    async fn more(&mut self, text: &mut String) {
        let watched = &mut self.watched;
        if watched.lifetime.is_due() && !watched.lifetime.holds().await {
            return self.break_off(text);
        }
        let closing = watched.state.closing.clone();
        let next = tokio::select! {
            next = watched.follower.next() => next,
            () = watched.lifetime.due() => return,
            () = closing.cancelled() => None,
        };
        match next {
            Some(Ok(frame)) => self.take(&frame, text),
            Some(Err(error)) => {
                tracing::warn!(%error, "a stream ended early; its reader can come back");
                return self.break_off(text);
            }
            None => return self.break_off(text),
        }
        while !self.over
            && text.len() < CHUNK_BYTES
            && let Some(frame) = self.watched.follower.ready()
        {
            self.take(&frame, text);
        }
    }

    fn take(&mut self, frame: &Frame, text: &mut String) {
        let watched = &mut self.watched;
        match &frame.event.body {
            EventBody::Heartbeat(_) => return watched.encoder.beat(text),
            EventBody::TurnWaiting(_) | EventBody::ApprovalRequested(_) => watched.leash.loosen(true),
            EventBody::TurnResumed(_) => watched.leash.loosen(false),
            _ => {}
        }
        if watched.encoder.frame(frame, text) {
            self.over = true;
            watched.leash.let_go();
        }
    }

    /// The end is not the client's doing.
    fn break_off(&mut self, text: &mut String) {
        self.over = true;
        self.watched.leash.let_go();
        self.watched.encoder.broken_off(text);
    }
}
