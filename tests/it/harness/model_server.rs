//! A model server that speaks chat completions by a script: one reply a
//! request, in order. What it was asked is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::Response;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What the server answers to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pieces: Vec<String>,
    /// The connection breaks behind the last piece, when the test says so.
    breaks: bool,
}

impl Reply {
    /// A stream of deltas that ends with a reason.
    pub fn stream(deltas: &[Value], finish: &str) -> Self {
        let mut reply = Self::unfinished(deltas);
        let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
        reply.pieces.push(format!("data: {last}\n\n"));
        reply.pieces.push("data: [DONE]\n\n".to_owned());
        reply
    }

    pub fn say(text: &str) -> Self {
        Self::stream(&[json!({"content": text})], "stop")
    }

    /// A stream whose connection breaks behind the deltas at [`ModelServer::break_off`].
    pub fn broken(deltas: &[Value]) -> Self {
        Self {
            breaks: true,
            ..Self::unfinished(deltas)
        }
    }

    /// An error answer as such servers write it.
    pub fn refusal(status: u16, message: &str) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            pieces: vec![json!({"error": {"message": message}}).to_string()],
            breaks: false,
        }
    }

    /// The answer says how many tokens it took.
    pub fn taking(mut self, input: u64, output: u64) -> Self {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}});
        let end = self.pieces.len() - 1;
        self.pieces.insert(end, format!("data: {usage}\n\n"));
        self
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn unfinished(deltas: &[Value]) -> Self {
        let chunk = |delta| json!({"choices": [{"index": 0, "delta": delta}]});
        Self {
            status: 200,
            headers: vec![("content-type", "text/event-stream".to_owned())],
            pieces: deltas
                .iter()
                .map(|delta| format!("data: {}\n\n", chunk(delta)))
                .collect(),
            breaks: false,
        }
    }

    fn respond(self, break_off: Arc<Notify>) -> Response<Body> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let pieces = stream::iter(self.pieces.into_iter().map(|piece| Ok(Bytes::from(piece))));
        if !self.breaks {
            return response.body(Body::from_stream(pieces)).unwrap();
        }
        let end = stream::once(async move {
            break_off.notified().await;
            Err(std::io::Error::other("broken by the script"))
        });
        response.body(Body::from_stream(pieces.chain(end))).unwrap()
    }
}

#[derive(Clone)]
struct Script {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    asked: Arc<Mutex<Vec<Value>>>,
    break_off: Arc<Notify>,
}

/// A running model server; it ends with this value.
pub struct ModelServer {
    /// As it is configured.
    pub base_url: String,
    script: Script,
    serving: JoinHandle<()>,
}

impl ModelServer {
    pub async fn start(replies: impl Into<VecDeque<Reply>>) -> Self {
        let script = Script {
            replies: Arc::new(Mutex::new(replies.into())),
            asked: Arc::default(),
            break_off: Arc::default(),
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback(answer).with_state(script.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            base_url,
            script,
            serving,
        }
    }

    /// Breaks the connection of a reply that waits for it.
    pub fn break_off(&self) {
        self.script.break_off.notify_one();
    }

    /// The bodies of all requests so far.
    pub fn asked(&self) -> Vec<Value> {
        self.script.asked.lock().unwrap().clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(script): State<Script>, body: Bytes) -> Response<Body> {
    script
        .asked
        .lock()
        .unwrap()
        .push(serde_json::from_slice(&body).unwrap_or_default());
    let reply = script.replies.lock().unwrap().pop_front();
    // Such a refusal is not asked for again, so that a test sees it at once.
    reply
        .unwrap_or_else(|| Reply::refusal(400, "the script is over"))
        .respond(script.break_off)
}
