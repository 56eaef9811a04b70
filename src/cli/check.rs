//! `check`: the guard's judgement of one command.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server check 'rm -rf build'
  hermes-server check --json 'git push --force origin main'
  hermes-server check --backend docker 'rm -rf /'
  hermes-server check - < script.sh

Exit status: 0 allow, 10 ask, 11 deny, 2 wrong usage.";

#[derive(Args, Debug, PartialEq)]
pub struct CheckArgs {
    /// The command as one argument (quote it), or - to read it from the input
    #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: String,

    /// Where it would run
    #[arg(long, default_value = "local")]
    pub backend: String,

    /// Print JSON, as `POST /v1/guard/check` answers
    #[arg(long)]
    pub json: bool,

    /// The configuration file, whose lists and modes count
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
