//! Files of a release at an address that the operator's configuration names:
//! over TLS alone, bounded in size and time, also where the address sends on to
//! another. What they are worth is found out by whoever asked.

use std::time::Duration;

use url::Url;

use super::guarded;
use super::pinned::{self, Fingerprint};

/// A release on a slow line.
const PATIENCE: Duration = Duration::from_secs(120);

/// Why a file of a release is not there.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    #[error("`{0}` is no address of a release")]
    Address(Url),
    #[error("no client can be made")]
    Client(#[source] reqwest::Error),
    #[error("the pinned certificate cannot be used")]
    Tls(#[from] rustls::Error),
    #[error("`{0}` cannot be reached")]
    Unreachable(Url, #[source] reqwest::Error),
    #[error("`{0}` answered with status {1}")]
    Status(Url, u16),
    #[error("`{0}` has more than {1} bytes")]
    TooLarge(Url, usize),
    #[error("`{0}` did not come whole within {1:?}")]
    Slow(Url, Duration),
}

/// A directory of files, by its address.
#[derive(Debug)]
pub struct Release {
    base: Url,
    client: reqwest::Client,
}

impl Release {
    /// `base` is the address in which the files lie. With `pin` its host is
    /// trusted by that certificate alone.
    pub fn at(mut base: Url, pin: Option<Fingerprint>) -> Result<Self, ReleaseError> {
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let Some(host) = base.host_str().filter(|_| base.scheme() == "https").map(str::to_owned) else {
            return Err(ReleaseError::Address(base));
        };
        // The operator named it, so it may lie inside; metadata services never are it.
        let mut builder = guarded::builder(true).https_only(true);
        if let Some(pin) = pin {
            builder = builder.tls_backend_preconfigured(pinned::config(&host, pin)?);
        }
        let client = builder.build().map_err(ReleaseError::Client)?;
        Ok(Self { base, client })
    }

    /// One file, of at most so many bytes.
    pub async fn get(&self, name: &str, most: usize) -> Result<Vec<u8>, ReleaseError> {
        let url = self
            .base
            .join(name)
            .map_err(|_| ReleaseError::Address(self.base.clone()))?;
        tokio::time::timeout(PATIENCE, self.read(&url, most))
            .await
            .unwrap_or_else(|_| Err(ReleaseError::Slow(url, PATIENCE)))
    }

    async fn read(&self, url: &Url, most: usize) -> Result<Vec<u8>, ReleaseError> {
        let unreachable = |error: reqwest::Error| ReleaseError::Unreachable(url.clone(), error.without_url());
        let mut answer = self.client.get(url.clone()).send().await.map_err(unreachable)?;
        if !answer.status().is_success() {
            return Err(ReleaseError::Status(url.clone(), answer.status().as_u16()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&chunk);
            if most < bytes.len() {
                return Err(ReleaseError::TooLarge(url.clone(), most));
            }
        }
        Ok(bytes)
    }
}
