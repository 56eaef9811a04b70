//! `openapi`: the documents that describe the HTTP surfaces.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server openapi > native.json
  hermes-server openapi --surface openai
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
    Openai,
    Hermes,
}
