//! `tools`: what a session would be given.

use clap::Args;

use super::StoreArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server tools
  hermes-server tools --preset hermes-cli
  hermes-server tools --all --json";

#[derive(Args, Debug, PartialEq)]
pub struct ToolsArgs {
    /// The preset or toolset to resolve [default: what `platform_toolsets.api_server` says]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,

    /// List absent tools too, each with the reason
    #[arg(long)]
    pub all: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub store: StoreArgs,
}
