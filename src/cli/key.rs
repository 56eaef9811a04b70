//! `key`: API keys by hand, before there is a key to ask the server with.

use clap::{Args, Subcommand};

use crate::model::id::KeyId;
use crate::model::principal::Scope;

use super::StoreArgs;
use super::span::Span;

mod run;

pub(super) use run::run;

pub(super) const EXAMPLES: &str = "\
Examples:
  hermes-server key create --name laptop
  hermes-server key create --name ci --scope sessions:read,turns:write --expires 30d
  hermes-server key create --name reader --tenant acme --user ada --tool read_file
  hermes-server key list --tenant acme
  hermes-server key revoke key_01jz8m4s7ye2tv6m0c9w3kq5rd";

#[derive(Debug, PartialEq, Subcommand)]
pub enum KeyCommand {
    /// Make a key and print it, once.
    Create(NewKeyArgs),

    /// List the keys of a tenant, without their secrets.
    List {
        /// The tenant's name
        #[arg(long, default_value = "default")]
        tenant: String,

        /// Print JSON
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        store: StoreArgs,
    },

    /// Revoke a key at once.
    Revoke {
        /// The key's id, as `key list` shows it
        #[arg(value_name = "KEY_ID")]
        id: KeyId,

        #[command(flatten)]
        store: StoreArgs,
    },
}

#[derive(Args, Debug, PartialEq)]
pub struct NewKeyArgs {
    /// What the key is for
    #[arg(long)]
    pub name: String,

    /// The tenant's name; it is made when there is none of that name
    #[arg(long, default_value = "default")]
    pub tenant: String,

    /// Whose sessions the key sees
    #[arg(long, default_value = "default")]
    pub user: String,

    /// What the key may do; may be repeated or joined with commas
    #[arg(
        long = "scope",
        value_name = "SCOPE",
        value_delimiter = ',',
        value_parser = parse_scope,
        default_value = "sessions:read,sessions:write,turns:write,approvals:decide,grants:write"
    )]
    pub scopes: Vec<Scope>,

    /// A tool the key may use at most; may be repeated [default: no ceiling]
    #[arg(long = "tool", value_name = "NAME", value_delimiter = ',')]
    pub tools: Vec<String>,

    /// How long the key is valid, such as 12h or 30d [default: until revoked]
    #[arg(long, value_name = "SPAN")]
    pub expires: Option<Span>,

    #[command(flatten)]
    pub store: StoreArgs,
}

pub(super) fn parse_scope(text: &str) -> Result<Scope, String> {
    Scope::named(text).ok_or_else(|| {
        let names: Vec<&str> = Scope::ALL.into_iter().map(Scope::name).collect();
        format!("allowed: {}", names.join(", "))
    })
}
