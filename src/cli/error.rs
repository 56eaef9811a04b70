//! Why a command did not do what it was asked, as one sentence for a person,
//! and the exit status that says so to a script.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use super::chat::ChatError;
use crate::api::auth::jwks::JwksError;
use crate::api::auth::jwt::MintError;
use crate::app::StartError;
use crate::base::random::NoRandomness;
use crate::config::ConfigError;
use crate::model::id::KeyId;
use crate::store::StoreError;
use crate::tool::HostError;
use crate::tool::registry::UnknownToolset;

/// Wrong usage and a wrong configuration; clap ends with the same status.
const USAGE: u8 = 2;

#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot listen on `{address}`")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("`auth.jwt.jwks_file`: {0}")]
    KeySet(#[from] JwksError),
    #[error(transparent)]
    Chat(#[from] ChatError),
    #[error(transparent)]
    Random(#[from] NoRandomness),
    #[error(transparent)]
    Token(#[from] MintError),
    #[error("{0}; `hermes-server tools` without --preset shows the default")]
    Toolset(UnknownToolset),
    #[error("cannot use `{path}`")]
    File { path: PathBuf, source: io::Error },
    #[error("there is no tenant `{0}`")]
    NoTenant(String),
    #[error("there is no key `{0}`")]
    NoKey(KeyId),
    #[error("`--backend`: `{0}` is not allowed; allowed: {1}")]
    Backend(String, &'static str),
    #[error(
        "a second tenant is refused while commands run without isolation (`terminal.isolation: none`); choose `auto`"
    )]
    SecondTenant,
    #[error(
        "these documents are not what the code says: {0}; write them again with `hermes-server openapi --output {1}`"
    )]
    Drift(String, String),
    #[error("the document cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("stopped at once; unfinished turns go on at the next start")]
    StoppedAtOnce,
    #[error("the operating system refused a thread or a signal handler")]
    System(#[source] io::Error),
    /// The reader of the output is gone or its disk is full.
    #[error("cannot write the output")]
    Output(#[source] io::Error),
}

impl CliError {
    pub(super) fn file(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::File {
            path: path.into(),
            source,
        }
    }

    pub(super) fn status(&self) -> ExitCode {
        match self {
            // `hermes-server key list | head -n 1` is no failure.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::Config(_) | Self::Backend(..) | Self::Toolset(_) | Self::Chat(ChatError::Url(_)) => {
                ExitCode::from(USAGE)
            }
            _ => ExitCode::FAILURE,
        }
    }

    /// The error and what caused it, each once: some errors already end in the
    /// words of their cause.
    pub(super) fn sentence(&self) -> String {
        let mut sentence = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !sentence.contains(&text) {
                sentence.push_str(": ");
                sentence.push_str(&text);
            }
            cause = error.source();
        }
        sentence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_told_once() {
        let source = io::Error::other("the disk is gone");
        let error = CliError::file("/d/api-key", source);
        assert_eq!(error.sentence(), "cannot use `/d/api-key`: the disk is gone");
        let cause: std::sync::Arc<dyn Error + Send + Sync> = std::sync::Arc::new(io::Error::other("no route"));
        let error = CliError::from(StoreError::Unavailable(cause));
        assert_eq!(error.sentence(), "the store is not available: no route");
    }
}
