//! Any server that speaks OpenAI chat completions. One attempt is one `POST`,
//! streamed; the connection pool and the TLS state are shared by every provider
//! made from the same client.
//!
//! Redirects are not followed: the key goes to the configured host only.

mod assembly;
mod body;
mod calls;
mod channels;
mod chunk;
mod read;
mod refusal;

use std::error::Error;
use std::time::Duration;

use base64::Engine;
use futures::StreamExt;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response};
use tokio::time::timeout;
use url::Url;

use self::body::Manner;
use self::read::{Broken, ByteStream};
use self::refusal::Upstream;
use super::{Answer, Delta, Failed, FailureKind, Request};
use crate::base::{Clock, Secret};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Enough for an error object; a page is not worth more.
const MOST_REFUSAL_BYTES: usize = 64 << 10;
/// A refusal's text is only decoration: it is not waited for.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);
/// For the list of models, which somebody waits for at a terminal.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the server is and how to be let in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address before `/chat/completions`, as in `OPENAI_BASE_URL`.
    pub base_url: Url,
    pub key: Option<Secret>,
    /// The longest silence, before the first byte and between two.
    pub idle_timeout: Duration,
}

impl Settings {
    /// Two minutes of silence are allowed: reasoning models think that long
    /// before they say anything.
    pub fn new(base_url: Url, key: Option<Secret>) -> Self {
        Self {
            base_url,
            key,
            idle_timeout: Duration::from_secs(120),
        }
    }
}

/// The settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("the model server's address must begin with `http://` or `https://` and name a host")]
    Address,
    #[error("the model server's key holds characters that cannot be sent")]
    Key,
}

/// The HTTP client that all providers share.
pub fn client() -> reqwest::Result<Client> {
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("hermes-server/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// A server that speaks chat completions.
#[derive(Clone, Debug)]
pub struct OpenAi {
    client: Client,
    endpoint: Url,
    authorization: Option<HeaderValue>,
    upstream: Upstream,
    idle_timeout: Duration,
    clock: Clock,
}

impl OpenAi {
    pub fn new(client: Client, settings: Settings, clock: Clock) -> Result<Self, SettingsError> {
        let Settings {
            mut base_url,
            key,
            idle_timeout,
        } = settings;
        let credentials = take_credentials(&mut base_url);
        let endpoint = endpoint(base_url).ok_or(SettingsError::Address)?;
        // Keys read from files end with a line end.
        let key = key
            .map(|key| key.expose().trim().to_owned())
            .filter(|key| !key.is_empty());
        let authorization = match (&key, &credentials) {
            (Some(key), _) => Some(format!("Bearer {key}")),
            (None, Some((user, password))) => {
                let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
                Some(format!("Basic {pair}"))
            }
            (None, None) => None,
        };
        let authorization = authorization.map(|text| sensitive(&text)).transpose()?;
        let secrets = key
            .into_iter()
            .chain(credentials.map(|(_, password)| password))
            .map(Secret::new)
            .collect();
        let upstream = Upstream {
            origin: endpoint.origin().ascii_serialization(),
            secrets,
        };
        Ok(Self {
            client,
            endpoint,
            authorization,
            upstream,
            idle_timeout,
            clock,
        })
    }

    /// Asks once.
    pub(super) async fn attempt(
        &self,
        request: &Request,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Failed> {
        let mut manner = Manner {
            counts: true,
            completion_tokens: self.is_openai(),
        };
        let response = loop {
            match self.post(request, manner).await {
                // An older server that refuses to be asked for counts is asked without.
                Err(failed) if manner.counts && refuses(&failed, "stream_options") => manner.counts = false,
                // Its message names the parameter that it wants.
                Err(failed) if !manner.completion_tokens && wants_other_limit(request, &failed) => {
                    manner.completion_tokens = true;
                }
                response => break response?,
            }
        };
        read::read(self.bytes(response), &self.upstream, on_delta).await
    }

    /// The server whose models all take `max_completion_tokens`.
    fn is_openai(&self) -> bool {
        self.endpoint.host_str() == Some("api.openai.com")
    }

    /// Sends the request; the body's bytes are gone when this returns.
    async fn post(&self, request: &Request, manner: Manner) -> Result<Response, Failed> {
        let body = body::encode(request, manner).map_err(|error| {
            Failed::new(
                FailureKind::InvalidRequest,
                format!("the request cannot be written as JSON: {error}"),
            )
        })?;
        let mut post = self
            .client
            .post(self.endpoint.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(ACCEPT, HeaderValue::from_static("text/event-stream"))
            .body(body);
        if let Some(authorization) = &self.authorization {
            post = post.header(AUTHORIZATION, authorization);
        }
        let response = match timeout(self.idle_timeout, post.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unreached(&error)),
            Err(_) => {
                let silence = Broken::Idle(self.idle_timeout);
                return Err(Failed::new(
                    FailureKind::Timeout,
                    format!("the model server does not answer: {silence}"),
                ));
            }
        };
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self.refused(response, &request.model).await)
        }
    }

    /// The names that the server lists; `None` where it has no list, which the
    /// protocol leaves open. Costs nothing, so it serves to try address and key.
    pub async fn models(&self) -> Result<Option<Vec<String>>, Failed> {
        let list = self.endpoint.join("../models").map_err(|_| {
            Failed::new(
                FailureKind::InvalidRequest,
                "the model server's address has no path for a list",
            )
        })?;
        let mut get = self
            .client
            .get(list)
            .header(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(authorization) = &self.authorization {
            get = get.header(AUTHORIZATION, authorization);
        }
        let response = match timeout(LIST_TIMEOUT, get.send()).await {
            Ok(answered) => answered.map_err(|error| self.unreached(&error))?,
            Err(_) => return Err(Failed::new(FailureKind::Timeout, "the model server does not answer")),
        };
        match response.status().as_u16() {
            404 | 405 => Ok(None),
            200..300 => Ok(listed(response).await),
            _ => Err(self.refused(response, "").await),
        }
    }

    /// The body's bytes, ended by a silence that is too long.
    fn bytes(&self, response: Response) -> ByteStream<'static> {
        let idle = self.idle_timeout;
        futures::stream::unfold(Some(response.bytes_stream()), move |stream| async move {
            let mut stream = stream?;
            match timeout(idle, stream.next()).await {
                Ok(Some(Ok(chunk))) => Some((Ok(chunk), Some(stream))),
                Ok(Some(Err(_))) => Some((Err(Broken::Connection), None)),
                Ok(None) => None,
                Err(_) => Some((Err(Broken::Idle(idle)), None)),
            }
        })
        .boxed()
    }

    async fn refused(&self, response: Response, model: &str) -> Failed {
        let status = response.status().as_u16();
        let retry_after = refusal::retry_after(response.headers(), self.clock.now());
        let mut body = Vec::new();
        let _cut = timeout(REFUSAL_TIMEOUT, async {
            let mut stream = response.bytes_stream();
            while let Some(Ok(chunk)) = stream.next().await {
                body.extend_from_slice(&chunk);
                if MOST_REFUSAL_BYTES < body.len() {
                    break;
                }
            }
        })
        .await;
        let failed = refusal::of_status(status, &String::from_utf8_lossy(&body), model, &self.upstream);
        Failed { retry_after, ..failed }
    }

    /// The request got no answer at all.
    fn unreached(&self, error: &reqwest::Error) -> Failed {
        let causes: Vec<String> = std::iter::successors(error.source(), |cause| (*cause).source())
            .map(ToString::to_string)
            .collect();
        let origin = &self.upstream.origin;
        if is_distrust(&causes) {
            let message = format!("the certificate of the model server at `{origin}` is not trusted");
            return Failed::new(FailureKind::Untrusted, message);
        }
        if error.is_connect() || error.is_timeout() {
            let cause = causes.last().map_or("no answer", String::as_str);
            let message = format!("cannot connect to the model server at `{origin}`: {cause}");
            return Failed::new(FailureKind::Unreachable, message);
        }
        Failed::new(
            FailureKind::Interrupted,
            "the model server closed the connection before it answered",
        )
    }
}

/// The ids of `{"data": [{"id": …}]}`; another shape is no list.
async fn listed(response: Response) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct List {
        data: Vec<Entry>,
    }
    #[derive(serde::Deserialize)]
    struct Entry {
        id: String,
    }
    let body = timeout(LIST_TIMEOUT, response.bytes()).await.ok()?.ok()?;
    let list: List = serde_json::from_slice(&body).ok()?;
    Some(list.data.into_iter().map(|entry| entry.id).collect())
}

/// The TLS library's error type is not public through the client; its words are
/// `invalid peer certificate: …`.
fn is_distrust(causes: &[String]) -> bool {
    causes.iter().any(|cause| cause.contains("peer certificate"))
}

/// `<base>/chat/completions`, with or without a slash at the base's end; a query
/// stays, and an address that is already complete is taken as it is.
fn endpoint(mut base: Url) -> Option<Url> {
    if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
        return None;
    }
    base.set_fragment(None);
    if !base.path().trim_end_matches('/').ends_with("/chat/completions") {
        base.path_segments_mut()
            .ok()?
            .pop_if_empty()
            .extend(["chat", "completions"]);
    }
    Some(base)
}

/// Moves `user:password@` out of an address, so that no message can show it.
fn take_credentials(url: &mut Url) -> Option<(String, String)> {
    let decode = |text: &str| {
        let pair = format!("x={}", text.replace('+', "%2B"));
        url::form_urlencoded::parse(pair.as_bytes())
            .next()
            .map(|(_, value)| value.into_owned())
    };
    let credentials = (decode(url.username())?, decode(url.password().unwrap_or_default())?);
    // Fails only for addresses without a host, which are refused anyway.
    let _no_host = (url.set_username(""), url.set_password(None));
    (credentials != Default::default()).then_some(credentials)
}

fn sensitive(text: &str) -> Result<HeaderValue, SettingsError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| SettingsError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

fn refuses(failed: &Failed, parameter: &str) -> bool {
    failed.kind == FailureKind::InvalidRequest && failed.message.contains(parameter)
}

/// "'max_tokens' is not supported with this model", which may pass for a word on
/// the model.
fn wants_other_limit(request: &Request, failed: &Failed) -> bool {
    let refused = matches!(failed.kind, FailureKind::InvalidRequest | FailureKind::UnknownModel);
    refused && request.sampling.max_output_tokens.is_some() && failed.message.contains("max_completion_tokens")
}

#[cfg(test)]
mod tests;
