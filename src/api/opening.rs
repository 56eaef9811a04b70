//! The first bytes of a connection: they tell HTTP/1.1 from HTTP/2, and whoever
//! waits for them waits without a limit of its own. Here they have to come within
//! a time. Behind them each protocol bounds its own heads.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_io_timeout::TimeoutStream;

/// What HTTP/2 begins with (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) struct Opening {
    stream: Pin<Box<TimeoutStream<TcpStream>>>,
    /// Bytes of the preface that came.
    seen: usize,
    /// Until it is known which protocol it is.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Opening {
    pub(super) fn new(stream: TimeoutStream<TcpStream>, within: Duration) -> Self {
        Self {
            stream: Box::pin(stream),
            seen: 0,
            deadline: Some(Box::pin(tokio::time::sleep(within))),
        }
    }

    /// Looks at bytes that came while the protocol was not known.
    fn look(&mut self, new: &[u8]) {
        let expected = PREFACE.get(self.seen..).unwrap_or_default();
        self.seen += new.len();
        let goes_on = !new.is_empty() && new.len() < expected.len() && expected.starts_with(new);
        if !goes_on {
            self.deadline = None;
        }
    }
}

impl AsyncRead for Opening {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(deadline) = &mut self.deadline else {
            return self.stream.as_mut().poll_read(cx, buf);
        };
        if deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buf.filled().len();
        ready!(self.stream.as_mut().poll_read(cx, buf))?;
        self.look(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Opening {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(cx)
    }
}
