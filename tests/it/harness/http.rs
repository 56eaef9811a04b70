//! A server with its HTTP side, on a port of its own, and a client for it.

use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use hermes_server::api::{listen, router, state::ApiState};
use hermes_server::base::Secret;
use hermes_server::store::Probe;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{PATIENCE, Place, Server};

/// The key of the environment: it may do everything.
pub const KEY: &str = "test-key-0123456789abcdef";

pub struct Web {
    pub server: Server,
    pub address: SocketAddr,
    client: Client,
    tasks: TaskTracker,
    pub closing: CancellationToken,
    serving: JoinHandle<()>,
}

impl Place {
    /// Starts a server and serves it.
    pub async fn serve(&mut self) -> Web {
        self.serve_probed(None).await
    }

    pub async fn serve_probed(&mut self, probe: Option<Probe>) -> Web {
        self.config.auth.api_key.get_or_insert(Secret::new(KEY));
        let server = self.start_probed(probe).await;
        let (tasks, closing) = (TaskTracker::new(), CancellationToken::new());
        let state = ApiState::new(&self.config, server.engine.clone(), tasks.clone(), closing.clone()).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(listen::serve(
            listener,
            router(state),
            closing.clone(),
            self.config.server.write_timeout,
        ));
        Web {
            server,
            address,
            client: Client::builder().timeout(PATIENCE).build().unwrap(),
            tasks,
            closing,
            serving,
        }
    }
}

impl Web {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request without a key.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(KEY)
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(&body).send().await.unwrap()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    /// The path of a new session.
    pub async fn session(&self) -> String {
        let made = self.post("/v1/sessions", json!({})).await;
        assert_eq!(made.status, 201, "{}", made.body);
        made.header("location")
    }

    /// A stream of events, open.
    pub async fn stream(&self, request: RequestBuilder) -> Events {
        let request = request.header("accept", "text/event-stream");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{:?}", response.text().await);
        Events::of(response)
    }

    /// Dies: what runs is not handed over. The probe decides what is still stored.
    pub async fn crash(self) {
        self.closing.cancel();
        self.serving.abort();
        self.server.crash().await;
    }

    /// Ends the HTTP side, then the server; nothing is left when this returns.
    pub async fn stop(self) {
        self.closing.cancel();
        tokio::time::timeout(PATIENCE, self.serving).await.unwrap().unwrap();
        self.tasks.close();
        tokio::time::timeout(PATIENCE, self.tasks.wait()).await.unwrap();
        self.server.stop().await;
    }
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    /// `null` where there is no JSON.
    pub body: Value,
}

impl Answer {
    pub async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self { status, headers, body }
    }

    pub fn header(&self, name: &str) -> String {
        let value = self.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        value.unwrap_or_default()
    }

    /// Checks that this is a problem of that status and code, as every error is.
    pub fn is_problem(&self, status: u16, code: &str) {
        assert_eq!(
            (self.status, &self.body["code"]),
            (status, &json!(code)),
            "{}",
            self.body
        );
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.body["status"], status);
        assert_eq!(self.body["request_id"], self.header("x-request-id"));
        assert_eq!(self.body["type"], format!("/problems/{code}"));
    }
}

/// A frame as it came over the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct WireFrame {
    pub event: String,
    pub id: Option<String>,
    pub retry: Option<String>,
    pub data: Value,
}

/// An open stream of events.
pub struct Events {
    pub response_headers: reqwest::header::HeaderMap,
    chunks: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    text: String,
    /// The beginning of a letter whose end is in the next chunk.
    cut: Vec<u8>,
}

impl Events {
    pub fn of(response: Response) -> Self {
        Self {
            response_headers: response.headers().clone(),
            chunks: Box::pin(response.bytes_stream()),
            text: String::new(),
            cut: Vec::new(),
        }
    }

    /// The next frame; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<WireFrame> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let frame = frame.contains("event: ").then(|| parsed(frame));
                self.text = rest.to_owned();
                // A hint without an event is nothing that a client is told.
                match frame {
                    Some(frame) => return Some(frame),
                    None => continue,
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.chunks.next())
                .await
                .expect("a frame in time")?;
            self.cut.extend_from_slice(&chunk.ok()?);
            let whole = match std::str::from_utf8(&self.cut) {
                Ok(text) => text.len(),
                Err(cut) if cut.error_len().is_none() => cut.valid_up_to(),
                Err(error) => panic!("{error}"),
            };
            let cut = self.cut.split_off(whole);
            self.text.push_str(std::str::from_utf8(&self.cut).unwrap());
            self.cut = cut;
        }
    }

    /// All frames to the end, without heartbeats.
    pub async fn rest(mut self) -> Vec<WireFrame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            if frame.event != "heartbeat" {
                frames.push(frame);
            }
        }
        frames
    }

    /// The first frame of that type.
    pub async fn until(&mut self, event: &str) -> WireFrame {
        loop {
            let frame = self.next().await.expect("the stream goes on");
            if frame.event == event {
                return frame;
            }
        }
    }
}

fn parsed(text: &str) -> WireFrame {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .map(str::to_owned)
    };
    WireFrame {
        event: field("event").unwrap(),
        id: field("id"),
        retry: field("retry"),
        data: serde_json::from_str(&field("data").unwrap()).unwrap(),
    }
}

/// Real seconds, for limits that a test sets small.
pub const SECOND: Duration = Duration::from_secs(1);
