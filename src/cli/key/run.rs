//! What `key` does to the database. The text of a key is printed once and only
//! its hash is kept.

use serde_json::json;

use crate::api::auth::api_key;
use crate::app;
use crate::base::Secret;
use crate::cli::StoreArgs;
use crate::cli::error::CliError;
use crate::cli::load::{Loaded, load};
use crate::cli::print;
use crate::config::Isolation;
use crate::model::id::{KeyId, TenantId};
use crate::store::keys::{self, KeyRecord};
use crate::store::{Store, StoreError, across_tenants, tenants};

use super::{KeyCommand, NewKeyArgs};

pub(in crate::cli) async fn run(command: KeyCommand) -> Result<(), CliError> {
    match command {
        KeyCommand::Create(args) => create(args).await,
        KeyCommand::List { tenant, json, store } => list(&tenant, json, store).await,
        KeyCommand::Revoke { id, store } => revoke(id, store).await,
    }
}

/// The key alone is the output, so that a script can keep it; what it is goes
/// beside.
async fn create(args: NewKeyArgs) -> Result<(), CliError> {
    let loaded = load(args.store.clone())?;
    let store = open(&loaded).await?;
    let tenant = args.tenant.clone();
    let unconfined = loaded.config.terminal.isolation == Isolation::None;
    let added = add(&store, args, unconfined).await;
    store.close().await;
    let (key, record) = added?;
    let until = record
        .expires_at
        .map_or_else(|| "until it is revoked".to_owned(), |at| format!("until {at}"));
    print::aside(&format!(
        "{} of `{}` in `{tenant}`: {}; valid {until}; shown only now:",
        record.key_id,
        record.user_id,
        record.scopes.join(" ")
    ));
    print::out(&format!("{}\n", key.expose())).map_err(CliError::Output)
}

async fn add(store: &Store, args: NewKeyArgs, unconfined: bool) -> Result<(Secret, KeyRecord), CliError> {
    let known = across_tenants::tenant_named(store, &args.tenant).await?;
    if unconfined && known.is_none() {
        return Err(CliError::SecondTenant);
    }
    let tenant = tenants::ensure(store, &args.tenant).await?;
    let key = api_key::generate()?;
    let now = store.clock().now();
    let record = KeyRecord {
        tenant_id: tenant.tenant_id,
        key_id: KeyId::new(store.clock()),
        user_id: args.user,
        name: args.name,
        hash: api_key::hash(key.expose()),
        scopes: args.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        tools: Some(args.tools).filter(|tools| !tools.is_empty()),
        created_at: now,
        expires_at: args.expires.map(|span| now.after(span.0)),
        revoked_at: None,
    };
    keys::add(store, record.clone()).await?;
    Ok((key, record))
}

async fn list(tenant: &str, as_json: bool, store: StoreArgs) -> Result<(), CliError> {
    let store = open(&load(store)?).await?;
    let found = match across_tenants::tenant_named(&store, tenant).await {
        Ok(Some(found)) => all(&store, found.tenant_id).await.map_err(CliError::from),
        Ok(None) => Err(CliError::NoTenant(tenant.to_owned())),
        Err(error) => Err(error.into()),
    };
    store.close().await;
    let found = found?;
    let text = if as_json {
        let list: Vec<_> = found.iter().map(shown).collect();
        serde_json::to_string_pretty(&list)? + "\n"
    } else {
        found.iter().map(line).collect()
    };
    print::out(&text).map_err(CliError::Output)
}

async fn all(store: &Store, tenant: TenantId) -> Result<Vec<KeyRecord>, StoreError> {
    const PAGE: u32 = 200;
    let mut found = Vec::new();
    loop {
        let after = found.last().map(|key: &KeyRecord| key.key_id);
        let page = keys::list(store, tenant, after, PAGE).await?;
        if page.is_empty() {
            return Ok(found);
        }
        found.extend(page);
    }
}

async fn revoke(id: KeyId, store: StoreArgs) -> Result<(), CliError> {
    let store = open(&load(store)?).await?;
    let revoked = match across_tenants::tenant_of_key(&store, id).await {
        Ok(Some(tenant)) => keys::revoke(&store, tenant, id).await,
        Ok(None) => Ok(false),
        Err(error) => Err(error),
    };
    store.close().await;
    if !revoked? {
        return Err(CliError::NoKey(id));
    }
    print::out(&format!("{id} is revoked\n")).map_err(CliError::Output)
}

async fn open(loaded: &Loaded) -> Result<Store, CliError> {
    let store = app::open_store(&loaded.config, &loaded.around).await?;
    match tenants::ensure_default(&store).await {
        Ok(_) => Ok(store),
        Err(error) => {
            store.close().await;
            Err(error.into())
        }
    }
}

/// As `GET /v1/keys` shows it.
fn shown(key: &KeyRecord) -> serde_json::Value {
    json!({
        "id": key.key_id, "name": key.name, "user_id": key.user_id, "scopes": key.scopes, "tools": key.tools,
        "created_at": key.created_at, "expires_at": key.expires_at, "revoked_at": key.revoked_at,
    })
}

fn line(key: &KeyRecord) -> String {
    let state = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) => format!("until {at}"),
        (None, None) => "valid".to_owned(),
    };
    let tools = key.tools.as_ref().map(|tools| format!("  tools: {}", tools.join(",")));
    format!(
        "{}  {}  {}  {}  {state}{}\n",
        key.key_id,
        key.name,
        key.user_id,
        key.scopes.join(","),
        tools.unwrap_or_default()
    )
}
