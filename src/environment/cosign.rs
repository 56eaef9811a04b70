//! Whether a file was signed by the workflow that a project releases with:
//! `cosign` says so, run as a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// It asks the transparency log.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a signature has to say of who signed.
#[derive(Clone, Copy, Debug)]
pub struct Signer {
    /// A regular expression for the identity in the certificate.
    pub identity: &'static str,
    pub issuer: &'static str,
}

#[derive(Debug, thiserror::Error)]
pub enum CosignError {
    #[error("`cosign` is not installed")]
    Missing,
    #[error("`cosign` could not be run")]
    Run(#[source] std::io::Error),
    #[error("`cosign` took longer than {PATIENCE:?}")]
    Slow,
    #[error("`cosign` does not accept the signature")]
    Refused,
}

/// The program, where there is one.
pub fn program(paths: &str) -> Option<PathBuf> {
    super::scanner::on_path("cosign", paths)
}

/// Checks a file by the signature and the certificate beside it.
pub async fn verify(
    file: &Path,
    [signature, certificate]: [&Path; 2],
    signer: Signer,
    variables: &[(String, String)],
) -> Result<(), CosignError> {
    let variable = |wanted: &str| variables.iter().find(|(name, _)| name == wanted);
    let paths = variable("PATH").map_or("", |(_, paths)| paths);
    let program = program(paths).ok_or(CosignError::Missing)?;
    // Its keys and caches lie in the home directory.
    let given = ["PATH", "HOME", "SSL_CERT_FILE", "HTTPS_PROXY"]
        .into_iter()
        .filter_map(variable);
    let running = Command::new(program)
        .arg("verify-blob")
        .arg("--certificate")
        .arg(certificate)
        .arg("--signature")
        .arg(signature)
        .args(["--certificate-identity-regexp", signer.identity])
        .args(["--certificate-oidc-issuer", signer.issuer])
        .arg(file)
        .env_clear()
        .envs(given.map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status();
    match tokio::time::timeout(PATIENCE, running).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(_)) => Err(CosignError::Refused),
        Ok(Err(error)) => Err(CosignError::Run(error)),
        Err(_) => Err(CosignError::Slow),
    }
}
