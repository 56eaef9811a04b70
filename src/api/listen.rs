//! Serving connections: HTTP/1.1 and HTTP/2 without TLS on one port, with bounds
//! on what a slow or silent peer can hold. Every connection is a task that is
//! waited for.

use std::io;
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

use super::opening::Opening;

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
    let heads = HEADER_TIMEOUT;
    serve_within(listener, router, shutdown, Times { heads, unread }).await;
}

/// What a peer may hold a connection for.
#[derive(Clone, Copy)]
struct Times {
    /// Before a head is whole.
    heads: Duration,
    /// While it reads nothing.
    unread: Duration,
}

async fn serve_within(listener: TcpListener, router: Router, shutdown: CancellationToken, times: Times) {
    let server = server(times.heads);
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
        let connection = server.serve_connection(ready(stream, times), service).into_owned();
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

fn server(heads: Duration) -> Builder<TokioExecutor> {
    let mut server = Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(heads)
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

fn ready(stream: TcpStream, times: Times) -> TokioIo<Opening> {
    // Small frames leave at once; a socket that refuses the option still works.
    let _refused = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(times.unread));
    TokioIo::new(Opening::new(stream, times.heads))
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
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

    /// What a peer sees that sends `at_once`, and then one of `slowly` after the
    /// other for as long as it is kept. Heads have a tenth of a second.
    async fn closed(at_once: &[u8], slowly: &[u8]) -> bool {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(async || "hello"));
        let stop = CancellationToken::new();
        let times = Times {
            heads: Duration::from_millis(100),
            unread: LAST_ANSWERS,
        };
        let serving = tokio::spawn(serve_within(listener, router, stop.clone(), times));
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(at_once).await.unwrap();
        let (mut reading, mut writing) = peer.split();
        let sending = async {
            for byte in slowly {
                tokio::time::sleep(times.heads / 10).await;
                if writing.write_all(&[*byte]).await.is_err() {
                    break;
                }
            }
            std::future::pending::<()>().await;
        };
        let mut answer = Vec::new();
        let closed = tokio::select! {
            () = sending => false,
            _closed = reading.read_to_end(&mut answer) => true,
            () = tokio::time::sleep(LAST_ANSWERS) => false,
        };
        stop.cancel();
        serving.await.unwrap();
        closed
    }

    #[tokio::test]
    async fn a_head_that_comes_byte_by_byte_gets_the_time_of_any_other() {
        let whole = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        let (get, post) = (b"GET / HTTP/1.1\r\nhost: a\r\nx: ", b"POST / HTTP/1.1\r\n");
        let endless = [b'y'; 5000];
        for (at_once, slowly) in [
            (&b""[..], &b""[..]),
            (b"", &endless),
            (b"P", b""),
            (b"PRI * HTTP/2.0\r\n", b""),
            (b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            (get, &endless),
            (post, &endless),
            (whole, b""),
            (whole, &endless),
        ] {
            let shown = (at_once.escape_ascii(), slowly.first());
            assert!(
                closed(at_once, slowly).await,
                "{} and then {:?} is kept",
                shown.0,
                shown.1
            );
        }
    }
}
