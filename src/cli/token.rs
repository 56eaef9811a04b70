//! `token`: a token for trying things out.

use clap::Args;

use crate::api::auth::jwt::{Claims, mint};
use crate::model::principal::Scope;

use super::StoreArgs;
use super::error::CliError;
use super::key::parse_scope;
use super::load::load;
use super::print;
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

pub(super) fn run(args: TokenArgs) -> Result<(), CliError> {
    let loaded = load(args.store)?;
    let now = loaded.around.clock.now();
    let claims = Claims {
        tenant: args.tenant,
        user: args.user,
        scopes: args.scopes.into_iter().collect(),
        expires_at: now.after(args.expires.0),
    };
    let token = mint(&loaded.config.auth.jwt, &claims, now)?;
    print::out(&format!("{}\n", token.expose())).map_err(CliError::Output)
}
