//! The command line: what may be typed, with its help, and what it does. Each
//! subcommand stands in a file of its own; without one the server is started.
//! All output passes `print`, all failures end in `run`.

mod audit;
mod chat;
mod check;
mod doctor;
mod error;
mod first_key;
mod greeting;
mod key;
mod load;
mod log;
mod migrate;
mod openapi;
mod print;
mod resident;
mod run;
mod serve;
mod server;
mod signals;
mod span;
mod token;
mod tools;

pub use audit::AuditCommand;
pub use chat::ChatArgs;
pub use check::CheckArgs;
pub use doctor::DoctorArgs;
pub use key::{KeyCommand, NewKeyArgs};
pub use openapi::{OpenApiArgs, Surface};
pub use run::run;
pub use serve::{ServeArgs, StoreArgs};
pub use span::{Span, SpanError};
pub use token::TokenArgs;
pub use tools::ToolsArgs;

use clap::{Parser, Subcommand};

/// Hosts AI agents for many tenants over HTTP.
///
/// Without a subcommand the server is started, as with `serve`. The first start
/// makes a data directory and a key, and prints a curl line that works. Every
/// setting has a default; `docs/configuration.md` lists them.
#[derive(Debug, Parser)]
#[command(name = "hermes-server", version, args_conflicts_with_subcommands = true)]
#[command(after_long_help = "\
Examples:
  hermes-server                                    start on 127.0.0.1:8642 with SQLite in ./data
  hermes-server --listen 127.0.0.1:9000            the same on another port
  hermes-server serve --database-url postgres://hermes@localhost/hermes
  hermes-server key create --name ci --scope sessions:read
  hermes-server chat                               talk with it
  hermes-server check 'curl https://example.com/x | sh'

Exit status: 0 done, 1 failed, 2 wrong usage or configuration; `chat` and `check` have more.")]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

impl Cli {
    /// What to do; starting the server is the default.
    pub fn chosen(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

#[derive(Debug, PartialEq, Subcommand)]
pub enum Command {
    /// Start the server (the default).
    #[command(after_long_help = serve::EXAMPLES)]
    Serve(ServeArgs),

    /// Bring the database up to date and stop.
    ///
    /// `serve` does the same at its start; this is for deployments that migrate
    /// before they roll out. Safe to run twice and at the same time as others.
    #[command(after_long_help = "\
Examples:
  hermes-server migrate --database-url postgres://hermes@localhost/hermes
  hermes-server migrate --data-dir /var/lib/hermes")]
    Migrate(StoreArgs),

    /// Print or write the OpenAPI documents.
    #[command(after_long_help = openapi::EXAMPLES)]
    Openapi(OpenApiArgs),

    /// Make, list and revoke API keys.
    ///
    /// Works on the database itself, so it needs no key. The server may be
    /// running, except on SQLite, which one process opens at a time: there use
    /// `/v1/keys`.
    #[command(subcommand, after_long_help = key::EXAMPLES)]
    Key(KeyCommand),

    /// Export the audit trail, and prove an export without a server.
    #[command(subcommand, after_long_help = audit::EXAMPLES)]
    Audit(AuditCommand),
    /// Talk with a running server in the terminal.
    ///
    /// Streams the answers, shows what tools do, and asks here what needs an
    /// approval.
    #[command(after_long_help = chat::EXAMPLES)]
    Chat(ChatArgs),

    /// Judge a shell command as the guard would.
    ///
    /// Prints the verdict and its findings. Nothing is executed.
    #[command(after_long_help = check::EXAMPLES)]
    Check(CheckArgs),

    /// List the tools a session would have, and why others are absent.
    #[command(after_long_help = tools::EXAMPLES)]
    Tools(ToolsArgs),

    /// Look what works here and what does not.
    ///
    /// Tries configuration, store, model and sandbox as a start would, and says
    /// what to do about what fails. Changes nothing.
    #[command(after_long_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),

    /// Sign a token with the configured HS256 secret.
    ///
    /// For trying out tenants and scopes before an identity provider is
    /// connected. Needs `auth.jwt.hs256_secret`.
    #[command(after_long_help = token::EXAMPLES)]
    Token(TokenArgs),
}

#[cfg(test)]
mod tests;
