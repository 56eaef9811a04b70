//! `serve` and the flags that say which configuration and which store, which
//! other subcommands share.

use std::path::PathBuf;

use clap::Args;

use crate::config::Flags;

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server serve
  hermes-server serve --config /etc/hermes/hermes.yaml
  HERMES_API_KEY=$(openssl rand -hex 24) hermes-server serve --listen 0.0.0.0:8642
  OPENAI_BASE_URL=http://localhost:11434/v1 HERMES_MODEL=qwen3 hermes-server serve

Flags win over environment variables, those over the file, that over defaults.
SIGTERM and Ctrl-C end the server after its turns have been handed over.";

#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct ServeArgs {
    /// Where to serve HTTP [default: 127.0.0.1:8642]
    ///
    /// An address beyond this machine needs HERMES_API_KEY or `auth.jwt`.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,

    #[command(flatten)]
    pub store: StoreArgs,
}

#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct StoreArgs {
    /// The directory of the embedded database, workspaces and the first key [default: ./data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,

    /// The database: postgres://… or sqlite:PATH [default: SQLite in the data directory]
    #[arg(long, value_name = "URL")]
    pub database_url: Option<String>,

    /// The configuration file [default: $HERMES_CONFIG, else ./hermes.yaml if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl From<ServeArgs> for Flags {
    fn from(args: ServeArgs) -> Self {
        Self {
            listen: args.listen,
            ..args.store.into()
        }
    }
}

impl From<StoreArgs> for Flags {
    fn from(args: StoreArgs) -> Self {
        Self {
            config: args.config,
            data_dir: args.data_dir,
            database_url: args.database_url,
            listen: None,
        }
    }
}
