//! `token`: a token for trying things out.

use clap::Args;

use crate::model::principal::Scope;

use super::StoreArgs;
use super::key::parse_scope;
use super::span::Span;

pub(super) const EXAMPLES: &str = "\
Examples:
  export HERMES__AUTH__JWT__HS256_SECRET=$(openssl rand -hex 32)
  hermes-server token --tenant acme --user ada
  hermes-server token --tenant acme --user root --scope admin --expires 5m

The tenant must exist, unless `auth.jwt.create_tenants` is true.";

#[derive(Args, Debug, PartialEq)]
pub struct TokenArgs {
    /// The tenant's name
    #[arg(long)]
    pub tenant: String,

    /// The user within the tenant
    #[arg(long)]
    pub user: String,

    /// What the bearer may do; may be repeated or joined with commas
    #[arg(
        long = "scope",
        value_name = "SCOPE",
        value_delimiter = ',',
        value_parser = parse_scope,
        default_value = "sessions:read,sessions:write,turns:write,approvals:decide,grants:write"
    )]
    pub scopes: Vec<Scope>,

    /// How long the token is valid, such as 15m or 12h
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    pub expires: Span,

    #[command(flatten)]
    pub store: StoreArgs,
}
