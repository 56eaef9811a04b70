//! Documents that the operator names by address, in the configuration or in a
//! plugin, and answers to JSON sent there: read whole and bounded in size and
//! time; of a release also in what it may send on to. Addresses that a tenant, a
//! model or a tool chose are asked through [`guarded`] alone.

pub mod guarded;
pub mod pinned;
pub mod release;

use std::time::Duration;

use reqwest::{Client, redirect};
use url::Url;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The document could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("`{0}` cannot be reached")]
    Unreachable(Url, #[source] reqwest::Error),
    #[error("`{0}` did not answer whole within {1:?}")]
    Slow(Url, Duration),
    #[error("`{0}` answered with status {1}")]
    Status(Url, u16),
    #[error("`{0}` answered with more than {1} bytes")]
    TooLarge(Url, usize),
    #[error("`{0}` answered with what is no text")]
    NotText(Url),
}

/// A cheap handle; clones share their connections.
#[derive(Clone, Debug)]
pub struct Documents(Client);

impl Documents {
    pub fn new() -> reqwest::Result<Self> {
        let client = Client::builder()
            // What is trusted is this address, not where it sends on to.
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("hermes-server/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self(client))
    }

    /// The text at `url`: at most `most` bytes, within `patience`.
    pub async fn get(&self, url: &Url, most: usize, patience: Duration) -> Result<String, FetchError> {
        tokio::time::timeout(patience, self.read(url, most))
            .await
            .unwrap_or_else(|_| Err(FetchError::Slow(url.clone(), patience)))
    }

    /// What is answered to JSON sent to `url`: at most `most` bytes, within
    /// `patience`.
    pub async fn post(&self, url: &Url, json: Vec<u8>, most: usize, patience: Duration) -> Result<String, FetchError> {
        let request = self
            .0
            .post(url.clone())
            .header("content-type", "application/json")
            .body(json);
        tokio::time::timeout(patience, self.answer(url, request, most))
            .await
            .unwrap_or_else(|_| Err(FetchError::Slow(url.clone(), patience)))
    }

    async fn read(&self, url: &Url, most: usize) -> Result<String, FetchError> {
        self.answer(url, self.0.get(url.clone()), most).await
    }

    async fn answer(&self, url: &Url, request: reqwest::RequestBuilder, most: usize) -> Result<String, FetchError> {
        let unreachable = |error: reqwest::Error| FetchError::Unreachable(url.clone(), error.without_url());
        let mut answer = request.send().await.map_err(unreachable)?;
        if !answer.status().is_success() {
            return Err(FetchError::Status(url.clone(), answer.status().as_u16()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&chunk);
            if most < bytes.len() {
                return Err(FetchError::TooLarge(url.clone(), most));
            }
        }
        String::from_utf8(bytes).map_err(|_| FetchError::NotText(url.clone()))
    }
}
