//! `openapi`: the documents that describe the HTTP surfaces.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::error::CliError;
use super::print;
use crate::api;

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server openapi > native.json
  hermes-server openapi --surface native
  hermes-server openapi --output openapi           write all of them into a directory
  hermes-server openapi --output openapi --check   fail when a file there differs";

#[derive(Args, Debug, PartialEq)]
pub struct OpenApiArgs {
    /// The document to print
    #[arg(long, value_enum, default_value_t = Surface::Native, conflicts_with = "output")]
    pub surface: Surface,

    /// Write every document into this directory instead of printing one
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Write nothing; fail when a document in the directory differs
    #[arg(long, requires = "output")]
    pub check: bool,
}

/// Which of the HTTP surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Surface {
    Native,
    /// For clients of the Hermes API server
    Hermes,
    /// For clients of OpenAI
    Openai,
}

impl Surface {
    const ALL: [Self; 3] = [Self::Native, Self::Hermes, Self::Openai];

    fn file(self) -> &'static str {
        match self {
            Self::Native => "native.json",
            Self::Hermes => "hermes.json",
            Self::Openai => "openai.json",
        }
    }

    /// The same bytes every time and on every machine.
    fn text(self) -> Result<String, CliError> {
        let document = match self {
            Self::Native => api::document(),
            Self::Hermes => api::hermes_document(),
            Self::Openai => api::openai_document(),
        };
        Ok(document.to_pretty_json()? + "\n")
    }
}

pub(super) fn run(args: &OpenApiArgs) -> Result<(), CliError> {
    match &args.output {
        None => print::out(&args.surface.text()?).map_err(CliError::Output),
        Some(directory) if args.check => compare(directory),
        Some(directory) => write(directory),
    }
}

fn write(directory: &Path) -> Result<(), CliError> {
    std::fs::create_dir_all(directory).map_err(|source| CliError::file(directory, source))?;
    for surface in Surface::ALL {
        let path = directory.join(surface.file());
        std::fs::write(&path, surface.text()?).map_err(|source| CliError::file(&path, source))?;
    }
    Ok(())
}

fn compare(directory: &Path) -> Result<(), CliError> {
    let mut differing = Vec::new();
    for surface in Surface::ALL {
        let path = directory.join(surface.file());
        let written = std::fs::read(&path).map_err(|source| CliError::file(&path, source))?;
        if written != surface.text()?.into_bytes() {
            differing.push(format!("`{}`", path.display()));
        }
    }
    if differing.is_empty() {
        return Ok(());
    }
    Err(CliError::Drift(differing.join(", "), directory.display().to_string()))
}
