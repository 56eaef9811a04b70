//! The requests that a conversation makes. Every refusal of the server becomes
//! its own sentence; the key is in no message.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::json;
use sse_stream::{Sse, SseStream};
use url::Url;

use crate::base::Secret;
use crate::model::approval::{Approval, Choice};
use crate::model::event::Event;
use crate::model::id::{SessionId, TurnId};
use crate::model::problem::Problem;
use crate::model::question::Question;
use crate::model::session::Session;

/// How long to try to reach the server.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest silence: twice the longest span between two heartbeats (30 s).
const SILENCE: Duration = Duration::from_secs(60);
/// Attempts to go on with a stream that broke, a second apart.
const ATTEMPTS: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ChatError {
    #[error("`--url`: `{0}` is not allowed; expected an address such as http://127.0.0.1:8642")]
    Url(String),
    #[error("there is no key: set HERMES_API_KEY, or name the server's data directory with --data-dir (`{path}`)")]
    NoKey { path: PathBuf, source: io::Error },
    #[error("cannot reach the server at {base}; is it running?")]
    Unreachable { base: Url, source: reqwest::Error },
    #[error("{}", said(.0))]
    Refused(Box<Problem>),
    #[error("the server answered with status {0} and without an explanation; is it a hermes-server?")]
    Strange(StatusCode),
    #[error("cannot read the input")]
    Input(#[source] io::Error),
    #[error("cannot write the output")]
    Output(#[source] io::Error),
}

/// The problem as a sentence, with the fields it names.
fn said(problem: &Problem) -> String {
    let fields = problem
        .errors
        .iter()
        .map(|error| format!("; {}: {}", error.pointer, error.detail));
    format!("{}{}", problem.detail, fields.collect::<String>())
}

pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    key: Secret,
}

impl Client {
    pub(super) fn new(base: &str, key: Secret) -> Result<Self, ChatError> {
        let wrong = || ChatError::Url(base.to_owned());
        let url = Url::parse(base).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(wrong());
        }
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        Ok(Self {
            http: http.map_err(|source| ChatError::Unreachable {
                base: url.clone(),
                source,
            })?,
            base: url,
            key,
        })
    }

    pub(super) async fn new_session(&self, model: Option<&str>, preset: Option<&str>) -> Result<SessionId, ChatError> {
        let mut body = json!({"metadata": {"client": "hermes-server chat"}});
        for (field, value) in [("model", model), ("preset", preset)] {
            if let (Some(value), Some(fields)) = (value, body.as_object_mut()) {
                fields.insert(field.to_owned(), json!(value));
            }
        }
        let made: Session = self
            .read(self.request(Method::POST, "/v1/sessions").json(&body))
            .await?;
        Ok(made.id)
    }

    /// Makes sure that the session is there.
    pub(super) async fn session(&self, id: SessionId) -> Result<SessionId, ChatError> {
        let found: Session = self
            .read(self.request(Method::GET, &format!("/v1/sessions/{id}")))
            .await?;
        Ok(found.id)
    }

    /// Begins a turn, or puts it behind the one that runs.
    pub(super) async fn turn(&self, session: SessionId, text: &str) -> Result<Frames, ChatError> {
        let body = json!({"input": text, "on_busy": "enqueue"});
        let request = self.request(Method::POST, &format!("/v1/sessions/{session}/turns"));
        let response = self
            .send(request.header("accept", "text/event-stream").json(&body))
            .await?;
        let place = response
            .headers()
            .get("content-location")
            .and_then(|place| place.to_str().ok());
        let turn = place.and_then(|place| place.rsplit('/').next()?.parse().ok());
        let turn = turn.ok_or(ChatError::Strange(response.status()))?;
        Ok(Frames::new(response, turn, String::new()))
    }

    /// The frames after `cursor`, tried for half a minute.
    pub(super) async fn resume(&self, session: SessionId, turn: TurnId, cursor: &str) -> Result<Frames, ChatError> {
        let path = format!("/v1/sessions/{session}/turns/{turn}/stream");
        let mut attempt = 0;
        loop {
            let mut request = self.request(Method::GET, &path).header("accept", "text/event-stream");
            if !cursor.is_empty() {
                request = request.header("last-event-id", cursor);
            }
            attempt += 1;
            match self.send(request).await {
                Err(ChatError::Unreachable { .. }) if attempt < ATTEMPTS => tokio::time::sleep(PAUSE).await,
                answered => return Ok(Frames::new(answered?, turn, cursor.to_owned())),
            }
        }
    }

    /// Decides exactly what was shown. Where another was first, that stands, and
    /// the stream tells it.
    pub(super) async fn decide(&self, approval: &Approval, choice: Choice) -> Result<(), ChatError> {
        let path = format!("/v1/approvals/{}/decision", approval.id);
        let body = json!({"choice": choice, "digest": approval.digest});
        match self.send(self.request(Method::POST, &path).json(&body)).await {
            Ok(_) => Ok(()),
            Err(ChatError::Refused(problem)) if problem.status == StatusCode::CONFLICT.as_u16() => {
                crate::cli::print::aside(&problem.detail);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn answer(&self, question: &Question, text: &str) -> Result<(), ChatError> {
        let path = format!("/v1/questions/{}/answer", question.id);
        let body = json!({"answer": text});
        match self.send(self.request(Method::POST, &path).json(&body)).await {
            Ok(_) => Ok(()),
            Err(ChatError::Refused(problem)) if problem.status == StatusCode::CONFLICT.as_u16() => {
                crate::cli::print::aside(&problem.detail);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn cancel(&self, session: SessionId, turn: TurnId) -> Result<(), ChatError> {
        let path = format!("/v1/sessions/{session}/turns/{turn}/cancel");
        self.send(self.request(Method::POST, &path)).await.map(drop)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let base = self.base.as_str().trim_end_matches('/');
        self.http
            .request(method, format!("{base}{path}"))
            .bearer_auth(self.key.expose())
    }

    async fn read<T: serde::de::DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ChatError> {
        let response = self.send(request).await?;
        let status = response.status();
        response.json().await.map_err(|_| ChatError::Strange(status))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ChatError> {
        let response = request.send().await.map_err(|source| ChatError::Unreachable {
            base: self.base.clone(),
            source: source.without_url(),
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        match response.json().await {
            Ok(problem) => Err(ChatError::Refused(Box::new(problem))),
            Err(_) => Err(ChatError::Strange(status)),
        }
    }
}

type Raw = Pin<Box<dyn Stream<Item = Result<Sse, sse_stream::Error>> + Send>>;

/// The events of one turn as they come.
pub(super) struct Frames {
    raw: Raw,
    pub(super) turn: TurnId,
    /// Of the last frame that had one: where a new stream goes on.
    pub(super) cursor: String,
}

impl Frames {
    fn new(response: Response, turn: TurnId, cursor: String) -> Self {
        let raw = SseStream::from_bytes_stream(response.bytes_stream());
        Self {
            raw: Box::pin(raw),
            turn,
            cursor,
        }
    }

    /// The next event; `None` at the end of the connection. Frames of types that
    /// this client does not know are passed over. Dropping the future loses
    /// nothing.
    pub(super) async fn next(&mut self) -> Option<Result<Event, sse_stream::Error>> {
        loop {
            let frame = match self.raw.next().await? {
                Ok(frame) => frame,
                Err(error) => return Some(Err(error)),
            };
            if let Some(id) = frame.id {
                self.cursor = id;
            }
            let event = frame.data.and_then(|data| serde_json::from_str(&data).ok());
            if let Some(event) = event {
                return Some(Ok(event));
            }
        }
    }
}
