//! From the bytes of an answer to the answer: a stream of events, or one JSON
//! object from a server that does not stream. Tolerates what is harmless (no
//! `[DONE]`, a missing last line end, comments) and bounds what is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use sse_stream::{Sse, SseByteStream};
use tokio::time::timeout;

use super::assembly::{Assembly, FailedHere};
use super::refusal::Upstream;
use crate::provider::{Answer, Delta, Failed, FailureKind};

/// The most bytes between two events, which also bounds a line and a whole JSON
/// answer.
const MOST_PENDING_BYTES: usize = 16 << 20;
/// After the model's last word only counts can follow; a server that neither
/// ends nor closes the stream is not waited for any longer.
const AFTER_FINISH: Duration = Duration::from_secs(2);
/// After `[DONE]` the end of the body is normally already here; reading it lets
/// the connection serve the next call.
const AFTER_DONE: Duration = Duration::from_millis(20);

/// Why no further bytes come.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("nothing came for {} s", .0.as_secs_f32())]
    Idle(Duration),
    #[error("the connection broke")]
    Connection,
    #[error("more than 16 MiB came without an event")]
    TooLong,
}

pub(super) type ByteStream<'a> = BoxStream<'a, Result<Bytes, Broken>>;

/// Reads a whole answer.
pub(super) async fn read(
    mut bytes: ByteStream<'_>,
    upstream: &Upstream,
    on_delta: &mut (dyn FnMut(Delta) + Send),
) -> Result<Answer, Failed> {
    let mut assembly = Assembly::new(upstream, on_delta);
    let mut opening = Vec::new();
    let read = match first_byte(&mut bytes, &mut opening).await {
        Err(broken) => Err(failed(&broken)),
        Ok(Some(b'{' | b'[')) => whole(bytes, opening, &mut assembly).await,
        Ok(Some(b'<')) => Err(FailedHere::malformed("it is a web page; the address may be wrong")),
        Ok(_) => events(bytes, opening, &mut assembly).await,
    };
    match read {
        Ok(()) => Ok(assembly.answer()),
        Err(failed) => Err(assembly.fail(failed)),
    }
}

/// The first byte that is no white space, which tells JSON, HTML and events
/// apart whatever the content type claims. What was read is kept in `opening`.
async fn first_byte(bytes: &mut ByteStream<'_>, opening: &mut Vec<u8>) -> Result<Option<u8>, Broken> {
    while let Some(chunk) = bytes.next().await {
        opening.extend_from_slice(&chunk?);
        let content = opening.strip_prefix(b"\xef\xbb\xbf").unwrap_or(opening);
        // Part of a byte order mark is not content yet.
        if content.first() == Some(&0xef) && content.len() < 3 {
            continue;
        }
        if let Some(first) = content.trim_ascii_start().first() {
            return Ok(Some(*first));
        }
        if MOST_PENDING_BYTES < opening.len() {
            return Err(Broken::TooLong);
        }
    }
    Ok(None)
}

/// One JSON object.
async fn whole(mut bytes: ByteStream<'_>, mut body: Vec<u8>, assembly: &mut Assembly<'_>) -> Result<(), FailedHere> {
    while let Some(chunk) = bytes.next().await {
        body.extend_from_slice(&chunk.map_err(|broken| failed(&broken))?);
        if MOST_PENDING_BYTES < body.len() {
            return Err(failed(&Broken::TooLong));
        }
    }
    let text = String::from_utf8_lossy(&body);
    assembly.take(text.trim_start_matches('\u{feff}').trim(), false)?;
    if assembly.is_answered() {
        Ok(())
    } else {
        Err(FailedHere::malformed("it holds no choice"))
    }
}

/// A stream of events, to its end.
async fn events(bytes: ByteStream<'_>, opening: Vec<u8>, assembly: &mut Assembly<'_>) -> Result<(), FailedHere> {
    let pending = Arc::new(AtomicUsize::new(0));
    let counter = pending.clone();
    let counted = move |chunk: Result<Bytes, Broken>| {
        let chunk = chunk?;
        let sum = counter.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
        if MOST_PENDING_BYTES < sum {
            Err(Broken::TooLong)
        } else {
            Ok(chunk)
        }
    };
    let opening = futures::stream::iter([Ok(Bytes::from(opening))]);
    // Some servers forget the empty line after their last event.
    let ending = futures::stream::iter([Ok(Bytes::from_static(b"\n\n"))]);
    let mut events = SseByteStream::new(opening.chain(bytes).chain(ending).map(counted));
    loop {
        let event = if assembly.is_finished() {
            timeout(AFTER_FINISH, events.next()).await.ok().flatten()
        } else {
            events.next().await
        };
        pending.store(0, Ordering::Relaxed);
        match event {
            Some(Ok(event)) if is_end(&event) => {
                let _the_end = timeout(AFTER_DONE, events.next()).await;
                return Ok(());
            }
            Some(Ok(event)) => take(&event, assembly)?,
            None | Some(Err(_)) if assembly.is_finished() => return Ok(()),
            None => return Err(failed(&Broken::Connection)),
            Some(Err(error)) => return Err(sse_failed(&error)),
        }
    }
}

fn is_end(event: &Sse) -> bool {
    event.data.as_deref().is_some_and(|data| data.trim() == "[DONE]")
}

fn take(event: &Sse, assembly: &mut Assembly<'_>) -> Result<(), FailedHere> {
    match event.data.as_deref().map(str::trim) {
        None | Some("") => Ok(()),
        Some(data) => assembly.take(data, event.event.as_deref() == Some("error")),
    }
}

fn sse_failed(error: &sse_stream::Error) -> FailedHere {
    match error {
        sse_stream::Error::Body(cause) => match cause.downcast_ref::<Broken>() {
            Some(broken) => failed(broken),
            None => failed(&Broken::Connection),
        },
        _ => FailedHere::malformed("it is not UTF-8"),
    }
}

fn failed(broken: &Broken) -> FailedHere {
    let (kind, message) = match broken {
        Broken::Idle(_) => (FailureKind::Timeout, format!("the model server stalled: {broken}")),
        Broken::Connection => (
            FailureKind::Interrupted,
            "the model server closed the stream before the answer was whole".to_owned(),
        ),
        Broken::TooLong => return FailedHere::malformed(&broken.to_string()),
    };
    FailedHere(Failed::new(kind, message))
}

#[cfg(test)]
mod tests;
