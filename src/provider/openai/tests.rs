//! The client against real servers on free ports of this machine, most of them with
//! one fault. No server here is reached from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::Request as Incoming;
use axum::response::{IntoResponse, Response as Outgoing};
use axum::routing::any;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::super::{ChatMessage, Finish, Partial};
use super::*;
use crate::base::Timestamp;

const WHOLE: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const BEGUN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";

/// A server that answers everything by `answer`; its address ends in `/v1`.
async fn serve<F>(answer: F) -> (Url, Arc<AtomicUsize>)
where
    F: Fn(Seen) -> Outgoing + Clone + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = Url::parse(&format!("http://{}/v1", listener.local_addr().unwrap())).unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = connections.clone();
    let listener = listener.tap_io(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let router = Router::new().fallback(any(move |request: Incoming| async move {
        answer(Seen::read(request).await)
    }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (base, connections)
}

/// A request as the server saw it.
#[derive(Clone, Debug)]
struct Seen {
    uri: String,
    authorization: Option<String>,
    body: Value,
}

impl Seen {
    async fn read(request: Incoming) -> Self {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        Self {
            uri: head.uri.to_string(),
            authorization: head
                .headers
                .get(AUTHORIZATION)
                .map(|value| value.to_str().unwrap().to_owned()),
            body: serde_json::from_slice(&body).unwrap(),
        }
    }
}

/// A server that answers one connection with raw bytes, then closes or waits.
async fn serve_raw(answer: String, then_wait: bool) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 64 << 10];
        let _n = socket.read(&mut request).await.unwrap();
        socket.write_all(answer.as_bytes()).await.unwrap();
        if then_wait {
            let _until_closed = socket.read(&mut request).await;
        }
    });
    base
}

fn chunked(body: &str) -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    format!("{head}{:x}\r\n{body}\r\n", body.len())
}

fn provider(base_url: Url, key: Option<&str>) -> OpenAi {
    let settings = Settings::new(base_url, key.map(Secret::new));
    OpenAi::new(client().unwrap(), settings, Clock::stepped(Timestamp(0))).unwrap()
}

/// One that waits only so long.
fn impatient(base_url: Url, idle_millis: u64) -> OpenAi {
    OpenAi {
        idle_timeout: Duration::from_millis(idle_millis),
        ..provider(base_url, None)
    }
}

async fn ask(provider: &OpenAi) -> Result<Answer, Failed> {
    let request = Request {
        model: "m1".to_owned(),
        messages: vec![ChatMessage::user("hi")],
        tools: None,
        sampling: Default::default(),
    };
    provider.attempt(&request, &mut |_| {}).await
}

async fn fail(provider: &OpenAi) -> Failed {
    ask(provider).await.unwrap_err()
}

#[tokio::test]
async fn a_request_goes_to_the_address_with_the_key_and_the_body() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let (base, _) = serve(move |request| {
        sender.send(request).unwrap();
        WHOLE.into_response()
    })
    .await;
    for (suffix, uri) in [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/chat/completions", "/v1/chat/completions"),
        ("?api-version=2", "/v1/chat/completions?api-version=2"),
    ] {
        let base = Url::parse(&format!("{base}{suffix}")).unwrap();
        let answer = ask(&provider(base, Some("sk-1\n"))).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("hi", Finish::Stop));
        let request = seen.recv().await.unwrap();
        assert_eq!(
            (request.uri.as_str(), request.authorization.as_deref()),
            (uri, Some("Bearer sk-1"))
        );
        assert_eq!(
            (&request.body["model"], &request.body["stream"]),
            (&json!("m1"), &json!(true))
        );
    }
}

#[tokio::test]
async fn credentials_of_the_address_are_sent_and_never_shown() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let (mut base, _) = serve(move |request| {
        sender.send(request).unwrap();
        (StatusCode::BAD_REQUEST, "{\"error\": \"no p+ss@word here\"}").into_response()
    })
    .await;
    base.set_username("user").unwrap();
    base.set_password(Some("p+ss@word")).unwrap();
    let provider = provider(base, None);
    let failed = fail(&provider).await;
    // `user:p+ss@word`
    assert_eq!(
        seen.recv().await.unwrap().authorization.as_deref(),
        Some("Basic dXNlcjpwK3NzQHdvcmQ=")
    );
    for shown in [failed.message, format!("{provider:?}")] {
        assert!(
            !shown.contains("ss@word") && !shown.contains("\"user\"") && !shown.contains("dXNlcj"),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn calls_in_a_row_share_one_connection() {
    let (base, connections) =
        serve(|_| Body::from_stream(stream::iter([Ok::<_, Broken>(WHOLE)])).into_response()).await;
    let provider = provider(base, None);
    for _ in 0..5 {
        ask(&provider).await.unwrap();
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let failed = fail(&provider(
        Url::parse(&format!("http://{address}/v1")).unwrap(),
        Some("sk-1"),
    ))
    .await;
    assert_eq!(
        (failed.kind, failed.status, failed.partial),
        (FailureKind::Unreachable, None, None)
    );
    assert!(
        failed.message.contains(&address.to_string()) && failed.message.contains("refused"),
        "{}",
        failed.message
    );
}

#[tokio::test]
async fn a_server_without_tls_is_unreachable_by_https() {
    let (base, _) = serve(|_| WHOLE.into_response()).await;
    let mut base = base;
    base.set_scheme("https").unwrap();
    assert_eq!(fail(&provider(base, None)).await.kind, FailureKind::Unreachable);
}

/// FC-017 among others: a refusal is a failure of its kind, never an answer.
#[tokio::test]
async fn refusals_have_their_kind() {
    for (status, kind) in [
        (401, FailureKind::Unauthenticated),
        (402, FailureKind::Billing),
        (404, FailureKind::UnknownModel),
        (429, FailureKind::RateLimited),
        (500, FailureKind::ServerError),
        (503, FailureKind::Overloaded),
    ] {
        let (base, _) = serve(move |_| {
            let status = StatusCode::from_u16(status).unwrap();
            (
                status,
                [("retry-after", "3")],
                Json(json!({"error": {"message": "no for sk-1"}})),
            )
                .into_response()
        })
        .await;
        let failed = fail(&provider(base, Some("sk-1"))).await;
        assert_eq!(
            (failed.kind, failed.status, &failed.partial),
            (kind, Some(status), &None)
        );
        assert_eq!(failed.retry_after, Some(Duration::from_secs(3)));
        assert!(!failed.message.contains("sk-1"), "{}", failed.message);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let (base, _) = serve(move |request| {
        sender.send(request).unwrap();
        (StatusCode::TEMPORARY_REDIRECT, [("location", "/elsewhere")]).into_response()
    })
    .await;
    let failed = fail(&provider(base, Some("sk-1"))).await;
    assert_eq!((failed.kind, failed.status), (FailureKind::InvalidRequest, Some(307)));
    assert!(seen.recv().await.is_some() && seen.try_recv().is_err());
}

#[tokio::test]
async fn a_server_that_refuses_to_count_is_asked_without() {
    let (base, _) = serve(|request| match request.body.get("stream_options") {
        Some(_) => (StatusCode::BAD_REQUEST, "{\"detail\": \"extra field stream_options\"}").into_response(),
        None => WHOLE.into_response(),
    })
    .await;
    assert_eq!(ask(&provider(base, None)).await.unwrap().text, "hi");
}

#[tokio::test]
async fn silence_before_the_answer_is_a_timeout() {
    let failed = fail(&impatient(serve_raw(String::new(), true).await, 200)).await;
    assert_eq!((failed.kind, failed.partial), (FailureKind::Timeout, None));
}

#[tokio::test]
async fn silence_within_the_answer_is_a_timeout_that_keeps_the_text() {
    let failed = fail(&impatient(serve_raw(chunked(BEGUN), true).await, 500)).await;
    let kept = Partial {
        text: "half".to_owned(),
        reasoning: String::new(),
    };
    assert_eq!(
        (failed.kind, failed.partial),
        (FailureKind::Timeout, Some(Box::new(kept)))
    );
}

#[tokio::test]
async fn a_connection_that_breaks_is_an_interruption_that_keeps_the_text() {
    let failed = fail(&provider(serve_raw(chunked(BEGUN), false).await, None)).await;
    assert_eq!(
        (failed.kind, failed.partial.unwrap().text.as_str()),
        (FailureKind::Interrupted, "half")
    );
    let failed = fail(&provider(serve_raw(String::new(), false).await, None)).await;
    assert_eq!((failed.kind, failed.partial), (FailureKind::Interrupted, None));
}

#[tokio::test]
async fn bytes_that_keep_coming_are_no_silence() {
    let (base, _) = serve(|_| {
        let slow = stream::unfold(0, |sent| async move {
            tokio::time::sleep(Duration::from_millis(250)).await;
            let next = if sent < 4 { ": thinking\n\n" } else { WHOLE };
            (sent <= 4).then_some((Ok::<_, Broken>(next), sent + 1))
        });
        Body::from_stream(slow).into_response()
    })
    .await;
    assert_eq!(ask(&impatient(base, 1000)).await.unwrap().text, "hi");
}

/// Says so when it is dropped.
struct Leaving(mpsc::UnboundedSender<()>);

impl Drop for Leaving {
    fn drop(&mut self) {
        let _no_listener = self.0.send(());
    }
}

#[tokio::test]
async fn leaving_aborts_the_request_at_the_server() {
    let (sender, mut left) = mpsc::unbounded_channel();
    let (base, _) = serve(move |_| {
        let leaving = Leaving(sender.clone());
        let begun = stream::iter([Ok::<_, Broken>(Bytes::from_static(BEGUN.as_bytes()))]);
        let endless = begun.chain(stream::pending()).inspect(move |_| {
            let _lives_as_long_as_the_body = &leaving;
        });
        Body::from_stream(endless).into_response()
    })
    .await;
    let provider = OpenAi::new(client().unwrap(), Settings::new(base, None), Clock::system()).unwrap();
    let request = Request {
        model: "m".to_owned(),
        messages: vec![ChatMessage::user("hi")],
        tools: None,
        sampling: Default::default(),
    };
    let (begun, mut first_delta) = mpsc::unbounded_channel();
    let mut on_delta = |delta| begun.send(delta).unwrap();
    tokio::select! {
        _ = provider.attempt(&request, &mut on_delta) => panic!("the answer does not end"),
        delta = first_delta.recv() => assert_eq!(delta, Some(Delta::Text("half".to_owned()))),
    }
    assert_eq!(timeout(Duration::from_secs(5), left.recv()).await, Ok(Some(())));
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let new = |base: &str, key: Option<&str>| {
        let settings = Settings::new(Url::parse(base).unwrap(), key.map(Secret::new));
        OpenAi::new(client().unwrap(), settings, Clock::system()).map(drop)
    };
    assert_eq!(new("ftp://host/v1", None), Err(SettingsError::Address));
    assert_eq!(new("data:x", None), Err(SettingsError::Address));
    assert_eq!(new("http://host", Some("ключ\u{7f}")), Err(SettingsError::Key));
    assert_eq!(new("http://host", Some(" \n")), Ok(()));
}

#[test]
fn a_certificate_that_does_not_hold_is_told_from_a_closed_port() {
    let distrusts = |cause: &str| is_distrust(&["client error (Connect)".to_owned(), cause.to_owned()]);
    assert!(distrusts("invalid peer certificate: UnknownIssuer"));
    assert!(!distrusts("Connection refused (os error 111)"));
}
