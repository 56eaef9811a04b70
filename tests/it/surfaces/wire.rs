//! Streams of the drop-in surfaces: frames with and without a name, and comments.

use futures::StreamExt;
use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use crate::harness::PATIENCE;
use crate::harness::client::Client;

/// One frame as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    pub event: Option<String>,
    pub id: Option<String>,
    /// The text behind `data:`.
    pub data: String,
    /// A comment, if it is one.
    pub comment: Option<String>,
}

impl Frame {
    /// The data as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// What the data calls itself.
    pub fn named(&self) -> String {
        let data = self.json();
        let name = data["event"].as_str().or(data["type"].as_str()).unwrap_or_default();
        name.to_owned()
    }
}

pub struct Stream {
    pub headers: reqwest::header::HeaderMap,
    chunks: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    bytes: Vec<u8>,
}

impl Stream {
    pub async fn open(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{:?}", response.text().await);
        Self::of(response)
    }

    pub fn of(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            headers: response.headers().clone(),
            chunks: Box::pin(response.bytes_stream()),
            bytes: Vec::new(),
        }
    }

    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\n\n") {
                let frame: Vec<u8> = self.bytes.drain(..end + 2).collect();
                return Some(parsed(std::str::from_utf8(&frame).unwrap().trim_end_matches('\n')));
            }
            let next = tokio::time::timeout(PATIENCE, self.chunks.next()).await;
            let chunk = next.expect("a frame in time")?;
            self.bytes.extend_from_slice(&chunk.ok()?);
        }
    }

    /// All frames to the end but for signs of life.
    pub async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            if frame.comment.as_deref() != Some("keepalive") {
                frames.push(frame);
            }
        }
        frames
    }

    /// The first frame that `picks`, and what came before it.
    pub async fn until(&mut self, picks: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let Some(frame) = self.next().await else {
                panic!("the stream ended; so far: {frames:?}");
            };
            let is_last = picks(&frame);
            frames.push(frame);
            if is_last {
                return frames;
            }
        }
    }
}

fn parsed(text: &str) -> Frame {
    let mut frame = Frame::default();
    for line in text.lines() {
        match line.split_once(": ").unwrap_or((line, "")) {
            ("event", value) => frame.event = Some(value.to_owned()),
            ("id", value) => frame.id = Some(value.to_owned()),
            ("data", value) => frame.data = value.to_owned(),
            ("", value) => frame.comment = Some(value.to_owned()),
            _ => {}
        }
    }
    frame
}

impl Client {
    /// A stream that a POST begins.
    pub async fn post_stream(&self, path: &str, body: &Value) -> Stream {
        Stream::open(self.request(reqwest::Method::POST, path).json(body)).await
    }

    pub async fn get_stream(&self, path: &str) -> Stream {
        Stream::open(self.request(reqwest::Method::GET, path)).await
    }
}
