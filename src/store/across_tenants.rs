//! The questions that cannot name a tenant, because their answer is one:
//! whose is this key, which tenant has this name. Nothing here returns a
//! tenant's work.

use crate::base::Secret;
use crate::model::audit::Actor;
use crate::model::id::{KeyId, TenantId};

use super::keys::{self, KeyRecord};
use super::tenants::{self, Tenant};
use super::{Backend, Store, StoreError, Wall, audit, dialect};

/// The key with that hash, also when it is revoked or expired.
pub async fn key_with_hash(store: &Store, hash: &str) -> Result<Option<KeyRecord>, StoreError> {
    let hash = hash.to_owned();
    store
        .read(Wall::Across, move |conn| {
            Box::pin(async move {
                let sql = "select tenant_id, key_id, user_id, name, hash, scopes, tools, created_at, expires_at, revoked_at \
                           from api_key where hash = $1";
                conn.row(sql, &[(&hash).into()]).await?.map(|row| keys::decoded(&row)).transpose()
            })
        })
        .await
}

/// The tenant that a key belongs to.
pub async fn tenant_of_key(store: &Store, key: KeyId) -> Result<Option<TenantId>, StoreError> {
    store
        .read(Wall::Across, move |conn| {
            Box::pin(async move {
                let row = conn
                    .row("select tenant_id from api_key where key_id = $1", &[key.into()])
                    .await?;
                row.map(|row| row.id("tenant_id")).transpose()
            })
        })
        .await
}

/// Whether no key was ever stored.
pub async fn has_no_keys(store: &Store) -> Result<bool, StoreError> {
    store
        .read(Wall::Across, |conn| {
            Box::pin(async move { Ok(conn.row("select key_id from api_key limit 1", &[]).await?.is_none()) })
        })
        .await
}

/// Stores the key of the first start, unless there is any key already; of
/// several processes that start together one succeeds.
pub async fn add_first_key(store: &Store, key: KeyRecord) -> Result<bool, StoreError> {
    let clock = store.clock().clone();
    store
        .write(Wall::Across, "key.created", move |conn| {
            Box::pin(async move {
                dialect::one_at_a_time(conn, "first key").await?;
                let first = conn.row("select key_id from api_key limit 1", &[]).await?.is_none();
                if first {
                    keys::insert(conn, &key).await?;
                    let made = [keys::created(&key)];
                    audit::insert(conn, key.tenant_id, (&Actor::system(), &clock), &made, key.created_at).await?;
                }
                Ok(first)
            })
        })
        .await
}

pub async fn tenant_named(store: &Store, name: &str) -> Result<Option<Tenant>, StoreError> {
    let name = name.to_owned();
    store
        .read(Wall::Across, move |conn| {
            Box::pin(async move {
                let sql = "select tenant_id, name, created_at from tenant where name = $1";
                conn.row(sql, &[(&name).into()])
                    .await?
                    .map(|row| tenants::decoded(&row))
                    .transpose()
            })
        })
        .await
}

/// How many tenants there are; what is safe for one alone asks this.
pub async fn tenant_count(store: &Store) -> Result<i64, StoreError> {
    store
        .read(Wall::Across, |conn| {
            Box::pin(async move {
                let row = conn.row("select count(*) as tenants from tenant", &[]).await?;
                row.ok_or_else(|| StoreError::bug("no count"))?.int("tenants")
            })
        })
        .await
}

/// The key that a migration made.
pub(super) async fn cursor_key(backend: &Backend) -> Result<Secret, StoreError> {
    let mut conn = backend.reader(Wall::Across).await?;
    let row = conn.row("select value from server_secret where name = 'cursor'", &[]);
    let row = row
        .await?
        .ok_or_else(|| StoreError::corrupt("there is no key for cursors"))?;
    row.text("value").map(Secret::new)
}
