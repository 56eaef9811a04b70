//! Serving connections: HTTP/1.1 and HTTP/2 without TLS on one port, with bounds
//! on what a slow or silent peer can hold. Every connection is a task that is
//! waited for.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A head that takes longer is a peer that holds connections on purpose.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Browsers send about 20, proxies add a few.
const MAX_HEADERS: usize = 100;
/// Room for a request's head; the largest credential is 16 KiB.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Streams that one HTTP/2 connection may have open.
const MAX_STREAMS: u32 = 256;
/// After this many times without an answer to a ping an HTTP/2 peer is gone.
const PING: Duration = Duration::from_secs(20);
/// What answers are still under way at the end are given this long.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// A pause after a failed accept, which is about files or memory running out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown`, then takes no more connections, lets the open ones
/// finish what they answer, and returns when all are closed.
/// A connection whose peer reads nothing for `unread` is closed.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken, unread: Duration) {
    let server = server();
    let graceful = GracefulShutdown::new();
    let (tasks, cut) = (TaskTracker::new(), CancellationToken::new());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = server.serve_connection(ready(stream, unread), service).into_owned();
        let connection = graceful.watch(connection);
        let cut = cut.clone();
        tasks.spawn(async move {
            tokio::select! {
                done = connection => if let Err(error) = done {
                    tracing::debug!(%error, "a connection broke");
                },
                () = cut.cancelled() => {}
            }
        });
    }
    drop(listener);
    tasks.close();
    if tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections that would not end were cut");
    }
    cut.cancel();
    tasks.wait().await;
}

fn server() -> Builder<TokioExecutor> {
    let mut server = Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    server
}

fn ready(stream: TcpStream, unread: Duration) -> TokioIo<Pin<Box<TimeoutStream<TcpStream>>>> {
    // Small frames leave at once; a socket that refuses the option still works.
    let _refused = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(unread));
    TokioIo::new(Box::pin(stream))
}

/// A peer that left before it was accepted is nobody's fault; anything else is
/// this machine running out of something.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::routing::get;
    use std::convert::Infallible;
    use tokio::io::AsyncWriteExt;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn a_peer_that_reads_nothing_is_let_go() {
        let (alive, mut gone) = mpsc::channel::<()>(1);
        // An answer without an end, which holds the sender as long as it is wanted.
        let endless = move || {
            let alive = alive.clone();
            async move {
                let chunks = futures::stream::repeat_with(move || {
                    let _held = &alive;
                    Ok::<_, Infallible>(bytes::Bytes::from_static(&[b'.'; 64 << 10]))
                });
                Body::from_stream(chunks)
            }
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(endless));
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, router, stop.clone(), Duration::from_millis(100)));
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        // The stop takes the router, and with it the last sender that is not an
        // answer's; it lets open answers go on for longer than this test waits.
        stop.cancel();
        let ended = tokio::time::timeout(LAST_ANSWERS / 2, async {
            serving.await.unwrap();
            gone.recv().await
        });
        assert_eq!(ended.await, Ok(None), "nobody makes chunks any more");
        drop(peer);
    }
}
