//! The external scanner, fetched where the configuration says so: the archive of
//! its release, whose hash stands in a list that a signature may vouch for. It is
//! tried at the start, and whenever a command found no scanner; after a failure
//! not again for a day. Nothing that could not be proved is ever kept.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::base::{Clock, Timestamp};
use crate::environment::cosign::{self, CosignError, Signer};
use crate::environment::unpack::{self, UnpackError};
use crate::environment::{PROGRAM_OF_SCANNER as PROGRAM, Scanner};
use crate::fetch::release::{Release, ReleaseError};

/// How long a failure is remembered (the original's span).
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
const MARK: &str = "tirith.failed";
const SUMS: &str = "checksums.txt";
/// Bytes of the list, its signature and its certificate.
const MOST_SUMS: usize = 1 << 20;
/// Bytes of the archive: those of today have five million.
const MOST_ARCHIVE: usize = 64 << 20;

/// Releases are signed by this workflow of the project, whose certificates GitHub vouches for.
const SIGNER: Signer = Signer {
    identity: r"^https://github\.com/sheeki03/tirith/\.github/workflows/release\.yml@refs/tags/v",
    issuer: "https://token.actions.githubusercontent.com",
};

/// How the scanner comes here.
#[derive(Debug)]
pub struct Installing {
    pub release: Release,
    /// Its list of hashes must be signed.
    pub cosign: bool,
    /// Where the program goes.
    pub directory: PathBuf,
    /// The server's own variables: where `cosign` is looked for.
    pub variables: Vec<(String, String)>,
    pub clock: Clock,
}

/// Why there is no scanner after all.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("there is no release for this machine")]
    Unsupported,
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error(transparent)]
    Cosign(#[from] CosignError),
    #[error("the list of hashes does not name `{0}`")]
    Unlisted(String),
    #[error("`{0}` is not what the list of hashes says")]
    Hash(String),
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    #[error("the data directory cannot be used")]
    Disk(#[from] io::Error),
    #[error("the archive could not be unpacked")]
    Broken,
}

impl InstallError {
    /// As the mark of the failure names it.
    fn reason(&self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported_platform",
            Self::Release(_) => "download_failed",
            Self::Cosign(CosignError::Missing) => COSIGN_MISSING,
            Self::Cosign(_) => "cosign_failed",
            Self::Unlisted(_) => "checksum_missing",
            Self::Hash(_) => "checksum_mismatch",
            Self::Unpack(_) | Self::Broken => "archive_refused",
            Self::Disk(_) => "disk",
        }
    }
}

/// The reason that goes away by itself.
const COSIGN_MISSING: &str = "cosign_missing";

/// A failure, as a file remembers it.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    at: Timestamp,
    reason: String,
}

/// Keeps a scanner here, until the server stops.
pub async fn keep(installing: Installing, scanner: std::sync::Arc<Scanner>, stop: CancellationToken) {
    loop {
        if scanner.is_missing() {
            tokio::select! {
                () = installing.ensure() => {}
                () = stop.cancelled() => return,
            }
        }
        tokio::select! {
            () = scanner.missed() => {}
            () = stop.cancelled() => return,
        }
    }
}

impl Installing {
    /// Installs it, unless that failed a short while ago.
    pub async fn ensure(&self) {
        if self.remembers_failure() {
            return;
        }
        match self.install().await {
            Ok(path) => {
                tracing::info!(path = %path.display(), "the scanner was installed");
                let _absent = std::fs::remove_file(self.mark());
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "the scanner could not be installed; it is tried again in a day");
                if let Err(error) = self.remember(error.reason()) {
                    tracing::warn!(%error, "the failure could not be noted");
                }
            }
        }
    }

    fn mark(&self) -> PathBuf {
        self.directory.join(MARK)
    }

    /// A mark that cannot be read counts for nothing.
    fn remembers_failure(&self) -> bool {
        let text = std::fs::read_to_string(self.mark()).unwrap_or_default();
        let Ok(mark) = serde_json::from_str::<Mark>(&text) else {
            return false;
        };
        let mended = mark.reason == COSIGN_MISSING && cosign::program(&self.paths()).is_some();
        self.clock.now().since(mark.at) < REMEMBERED && !mended
    }

    fn remember(&self, reason: &str) -> io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        let mark = Mark {
            at: self.clock.now(),
            reason: reason.to_owned(),
        };
        std::fs::write(self.mark(), serde_json::to_vec(&mark)?)
    }

    fn paths(&self) -> String {
        let paths = self.variables.iter().find(|(name, _)| name == "PATH");
        paths.map_or_else(String::new, |(_, paths)| paths.clone())
    }

    async fn install(&self) -> Result<PathBuf, InstallError> {
        if self.cosign && cosign::program(&self.paths()).is_none() {
            return Err(CosignError::Missing.into());
        }
        let archive = format!("tirith-{}.tar.gz", target().ok_or(InstallError::Unsupported)?);
        let sums = self.release.get(SUMS, MOST_SUMS).await?;
        if self.cosign {
            self.verify(&sums).await?;
        }
        let wanted = listed(&sums, &archive).ok_or_else(|| InstallError::Unlisted(archive.clone()))?;
        let bytes = self.release.get(&archive, MOST_ARCHIVE).await?;
        if hex(&Sha256::digest(&bytes)) != wanted {
            return Err(InstallError::Hash(archive));
        }
        let directory = self.directory.clone();
        let unpacked = tokio::task::spawn_blocking(move || unpack::program(&bytes, PROGRAM, &directory));
        Ok(unpacked.await.map_err(|_| InstallError::Broken)??)
    }

    /// The signature is the list's: what it names is vouched for by its hash.
    async fn verify(&self, sums: &[u8]) -> Result<(), InstallError> {
        let directory = tempfile::tempdir()?;
        let place = |name: &str| directory.path().join(name);
        let (list, signature, certificate) = (place("list"), place("list.sig"), place("list.pem"));
        tokio::fs::write(&list, sums).await?;
        for (path, ending) in [(&signature, "sig"), (&certificate, "pem")] {
            let part = self.release.get(&format!("{SUMS}.{ending}"), MOST_SUMS).await?;
            tokio::fs::write(path, part).await?;
        }
        let beside: [&Path; 2] = [&signature, &certificate];
        Ok(cosign::verify(&list, beside, SIGNER, &self.variables).await?)
    }
}

/// This machine, as releases name it.
fn target() -> Option<String> {
    let system = match std::env::consts::OS {
        "linux" => "unknown-linux-gnu",
        "macos" => "apple-darwin",
        _ => return None,
    };
    let processor = std::env::consts::ARCH;
    ["x86_64", "aarch64"]
        .contains(&processor)
        .then(|| format!("{processor}-{system}"))
}

/// The hash of a file in a list as `sha256sum` writes it.
fn listed(sums: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(sums).ok()?;
    text.lines().find_map(|line| {
        let (hash, file) = line.split_once(char::is_whitespace)?;
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_hash && file.trim_start().trim_start_matches('*') == name).then(|| hash.to_ascii_lowercase())
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests;
