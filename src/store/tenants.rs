//! Tenants: who owns everything else. One named `default` is always there. To
//! find one by its name is a question across tenants.

use crate::base::{Id, Timestamp};
use crate::model::id::TenantId;

use super::across_tenants::tenant_named;
use super::{Row, Store, StoreError, Wall};

/// The tenant of keys that name none.
pub const DEFAULT: &str = "default";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    pub tenant_id: TenantId,
    pub name: String,
    pub created_at: Timestamp,
}

/// The same on every server, so that rows can be moved between them.
pub fn default_id() -> TenantId {
    Id::from_bits(0)
}

/// Makes the default tenant at the first start.
pub async fn ensure_default(store: &Store) -> Result<TenantId, StoreError> {
    insert(store, default_id(), DEFAULT).await?;
    Ok(default_id())
}

/// A new tenant; [`StoreError::Unique`] when the name is taken.
pub async fn create(store: &Store, name: &str) -> Result<Tenant, StoreError> {
    match insert(store, TenantId::new(store.clock()), name).await? {
        Some(tenant) => Ok(tenant),
        None => Err(StoreError::Unique(name.to_owned())),
    }
}

/// The tenant of that name, made if there is none.
pub async fn ensure(store: &Store, name: &str) -> Result<Tenant, StoreError> {
    if let Some(tenant) = tenant_named(store, name).await? {
        return Ok(tenant);
    }
    match insert(store, TenantId::new(store.clock()), name).await? {
        Some(tenant) => Ok(tenant),
        // Someone else made it in between; tenants are never deleted.
        None => tenant_named(store, name).await?.ok_or(StoreError::Lost),
    }
}

pub(super) fn decoded(row: &Row) -> Result<Tenant, StoreError> {
    Ok(Tenant {
        tenant_id: row.id("tenant_id")?,
        name: row.text("name")?,
        created_at: row.timestamp("created_at")?,
    })
}

/// `None`: the name or the id is there already.
async fn insert(store: &Store, tenant_id: TenantId, name: &str) -> Result<Option<Tenant>, StoreError> {
    let tenant = Tenant {
        tenant_id,
        name: name.to_owned(),
        created_at: store.clock().now(),
    };
    store
        .write(Wall::Tenant(tenant_id), "tenant.created", move |conn| {
            Box::pin(async move {
                let sql = "insert into tenant (tenant_id, name, created_at) values ($1, $2, $3) on conflict do nothing";
                let args = [tenant_id.into(), (&tenant.name).into(), tenant.created_at.into()];
                let made = conn.execute(sql, &args).await? == 1;
                Ok(made.then_some(tenant))
            })
        })
        .await
}
