//! A client as users write one: sessions made, turns posted and read as
//! Server-Sent Events, with the instants that matter noted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};

use crate::server::KEY;

/// No turn of any scene takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
}

/// One turn as its client saw it, from the POST on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub first_event: Duration,
    pub first_delta: Duration,
    pub whole: Duration,
}

/// Many turns and how long all of them took.
pub(crate) struct Load {
    pub turns: Vec<Timed>,
    pub took: Duration,
}

impl Client {
    pub(crate) fn new(address: &str) -> Result<Self> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, format!("Bearer {KEY}").parse()?);
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .no_proxy()
            .tcp_nodelay(true)
            .build()?;
        Ok(Self {
            http,
            base: format!("http://{address}"),
        })
    }

    pub(crate) async fn is_healthy(&self) -> bool {
        let asked = self.http.get(format!("{}/health/ready", self.base)).send().await;
        asked.is_ok_and(|answer| answer.status().is_success())
    }

    pub(crate) async fn session(&self) -> Result<String> {
        let url = format!("{}/v1/sessions", self.base);
        let made = self.http.post(url).json(&json!({})).send().await?.error_for_status()?;
        let made: Value = made.json().await?;
        Ok(made
            .get("id")
            .and_then(Value::as_str)
            .context("a session without an id")?
            .to_owned())
    }

    /// Posts a turn and reads its stream to the end.
    pub(crate) async fn turn(&self, session: &str, input: &str) -> Result<Timed> {
        tokio::time::timeout(PATIENCE, self.read_turn(session, input)).await?
    }

    async fn read_turn(&self, session: &str, input: &str) -> Result<Timed> {
        let began = Instant::now();
        let mut answer = self.held_turn(session, input).await?;
        let (mut first_event, mut first_delta, mut whole) = (None, None, None);
        let mut lines = Lines::default();
        while let Some(chunk) = answer.chunk().await? {
            let now = began.elapsed();
            lines.take(&chunk, |event| match event {
                "stream.hello" => {}
                "message.delta" => {
                    first_event.get_or_insert(now);
                    first_delta.get_or_insert(now);
                }
                "turn.completed" => whole = Some(now),
                _ => {
                    first_event.get_or_insert(now);
                }
            });
        }
        Ok(Timed {
            first_event: first_event.context("a stream without events")?,
            first_delta: first_delta.or(whole).context("a stream without deltas")?,
            whole: whole.context("the turn did not complete")?,
        })
    }

    /// Posts a turn and answers the times between its deltas.
    pub(crate) async fn gaps(&self, session: &str, input: &str) -> Result<Vec<Duration>> {
        let mut answer = self.held_turn(session, input).await?;
        let (mut gaps, mut last, mut lines) = (Vec::new(), None, Lines::default());
        while let Some(chunk) = answer.chunk().await? {
            let now = Instant::now();
            lines.take(&chunk, |event| {
                if event == "message.delta" {
                    gaps.extend(last.replace(now).map(|last| now.duration_since(last)));
                }
            });
        }
        Ok(gaps)
    }

    /// Posts a turn that asks, allows it once, and answers the time from the
    /// decision to the next event of the turn's stream.
    pub(crate) async fn allowed(&self, session: &str, input: &str) -> Result<Duration> {
        let mut answer = self.held_turn(session, input).await?;
        let mut lines = Lines::default();
        let mut waits = false;
        while !waits {
            let chunk = answer.chunk().await?.context("a turn that does not ask")?;
            lines.take(&chunk, |event| waits |= event == "turn.waiting");
        }
        let url = format!("{}/v1/approvals?session_id={session}&status=pending", self.base);
        let pending: Value = self.http.get(url).send().await?.error_for_status()?.json().await?;
        let id = pending.pointer("/data/0/id").and_then(Value::as_str);
        let url = format!(
            "{}/v1/approvals/{}/decision",
            self.base,
            id.context("nothing is asked")?
        );
        let decided = self.http.post(url).json(&json!({"choice": "once"}));
        let began = Instant::now();
        let decided = tokio::spawn(decided.send());
        answer.chunk().await?.context("a stream that ends")?;
        let told = began.elapsed();
        decided.await??.error_for_status()?;
        while answer.chunk().await?.is_some() {}
        Ok(told)
    }

    /// Posts a turn and leaves its stream to the caller.
    pub(crate) async fn held_turn(&self, session: &str, input: &str) -> Result<reqwest::Response> {
        let url = format!("{}/v1/sessions/{session}/turns", self.base);
        let post = self.http.post(url).header(ACCEPT, "text/event-stream");
        Ok(post.json(&json!({"input": input})).send().await?.error_for_status()?)
    }

    /// Posts a turn and waits until it is at rest; answers its status.
    pub(crate) async fn rest(&self, session: &str, input: &str) -> Result<String> {
        let url = format!("{}/v1/sessions/{session}/turns?wait=60", self.base);
        let post = self.http.post(url).json(&json!({"input": input}));
        let outcome: Value = post.send().await?.error_for_status()?.json().await?;
        let status = outcome.pointer("/turn/status").or_else(|| outcome.get("status"));
        Ok(status.and_then(Value::as_str).unwrap_or("unknown").to_owned())
    }

    /// Opens the stream of a session at rest.
    pub(crate) async fn idle_stream(&self, session: &str) -> Result<reqwest::Response> {
        let url = format!("{}/v1/sessions/{session}/stream", self.base);
        let mut stream = self.http.get(url).send().await?.error_for_status()?;
        stream.chunk().await?.context("a stream without a greeting")?;
        Ok(stream)
    }

    /// A turn in each of these sessions, `at_once` of them at a time.
    pub(crate) async fn load(&self, input: &'static str, at_once: usize, sessions: Vec<String>) -> Result<Load> {
        let count = sessions.len();
        let sessions = Arc::new(sessions);
        let next = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let workers = (0..at_once).map(|_| {
            let (client, sessions, next) = (self.clone(), Arc::clone(&sessions), Arc::clone(&next));
            tokio::spawn(async move {
                let mut turns = Vec::new();
                while let Some(session) = sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    turns.push(client.turn(session, input).await?);
                }
                Ok::<_, anyhow::Error>(turns)
            })
        });
        let workers: Vec<_> = workers.collect();
        let mut turns = Vec::with_capacity(count);
        for worker in workers {
            turns.extend(worker.await??);
        }
        if turns.len() != count {
            bail!("{} of {count} turns were carried out", turns.len());
        }
        Ok(Load {
            turns,
            took: began.elapsed(),
        })
    }

    pub(crate) async fn sessions(&self, count: usize) -> Result<Vec<String>> {
        let mut made = Vec::with_capacity(count);
        while made.len() < count {
            let some = (0..16.min(count - made.len())).map(|_| self.session());
            made.extend(futures::future::try_join_all(some).await?);
        }
        Ok(made)
    }
}

/// Finds the names of events in pieces of a stream.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn take(&mut self, chunk: &[u8], mut on_event: impl FnMut(&str)) {
        self.0.extend_from_slice(chunk);
        let whole = self.0.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in self.0.drain(..whole).as_slice().split(|byte| *byte == b'\n') {
            if let Some(name) = line.strip_prefix(b"event: ") {
                on_event(std::str::from_utf8(name).unwrap_or_default());
            }
        }
    }
}
