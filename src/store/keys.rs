//! API keys as rows. Only the hash of a key is ever here; to find the owner of
//! a hash is a question across tenants. Whether a key is expired or may do
//! something is decided by whoever reads it.

use crate::base::Timestamp;
use crate::model::audit::{AuditAction, Audited};
use crate::model::id::{KeyId, TenantId};

use super::scope::Rows;
use super::{Arg, Conn, Row, Store, StoreError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    pub tenant_id: TenantId,
    pub key_id: KeyId,
    pub user_id: String,
    pub name: String,
    pub hash: String,
    pub scopes: Vec<String>,
    /// The only tools the key may use; `None` is no ceiling.
    pub tools: Option<Vec<String>>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

pub async fn add(store: &Store, key: KeyRecord) -> Result<(), StoreError> {
    store
        .scope(key.tenant_id)
        .write("key.created", move |mut rows| {
            Box::pin(async move { rows.add_key(&key).await })
        })
        .await
}

/// All keys of a tenant, newest first, at most `limit`, those made before `after`.
pub async fn list(
    store: &Store,
    tenant: TenantId,
    after: Option<KeyId>,
    limit: u32,
) -> Result<Vec<KeyRecord>, StoreError> {
    store
        .scope(tenant)
        .read(move |mut rows| Box::pin(async move { rows.keys(after, limit).await }))
        .await
}

/// Whether there is such a key. It keeps the instant of its first revocation.
pub async fn revoke(store: &Store, tenant: TenantId, key: KeyId) -> Result<bool, StoreError> {
    let now = store.clock().now();
    store
        .scope(tenant)
        .write("key.revoked", move |mut rows| {
            Box::pin(async move { rows.revoke_key(key, now).await })
        })
        .await
}

impl Rows<'_> {
    pub async fn add_key(&mut self, key: &KeyRecord) -> Result<(), StoreError> {
        insert(self.conn, key).await?;
        self.audit(&[created(key)], key.created_at).await
    }

    /// Keys, newest first, older than `before`; revoked and expired ones too.
    pub async fn keys(&mut self, before: Option<KeyId>, limit: u32) -> Result<Vec<KeyRecord>, StoreError> {
        const SQL: &str = "
            select tenant_id, key_id, user_id, name, hash, scopes, tools, created_at, expires_at, revoked_at
            from api_key
            where tenant_id = $1 and user_id = coalesce($2, user_id) and key_id < coalesce($3, 'key_~')
            order by key_id desc limit $4";
        let args = [self.tenant.into(), Arg::from(&self.user), before.into(), limit.into()];
        self.conn.rows(SQL, &args).await?.iter().map(decoded).collect()
    }

    /// Whether the key is there and was not revoked; its expiry is the reader's
    /// to judge.
    pub async fn key_is_valid(&mut self, id: KeyId) -> Result<bool, StoreError> {
        const SQL: &str = "
            select key_id from api_key where tenant_id = $1 and key_id = $2 and revoked_at is null";
        let row = self.conn.row(SQL, &[self.tenant.into(), id.into()]).await?;
        Ok(row.is_some())
    }

    /// Ends a key. `false` when there is none that this scope sees.
    pub async fn revoke_key(&mut self, id: KeyId, at: Timestamp) -> Result<bool, StoreError> {
        const FIND: &str = "
            select key_id, user_id from api_key
            where tenant_id = $1 and key_id = $2 and user_id = coalesce($3, user_id)";
        const END: &str = "
            update api_key set revoked_at = $3 where tenant_id = $1 and key_id = $2 and revoked_at is null";
        let revoked = |row: &Row| {
            Ok(Audited {
                target_key_id: row.opt_id("key_id")?,
                ..Audited::new(AuditAction::KeyRevoked, row.text("user_id")?)
            })
        };
        self.revoke([FIND, END], id, at, revoked).await
    }
}

/// What the audit trail says of a new key: what it may do, not what it is.
pub(super) fn created(key: &KeyRecord) -> Audited {
    let tools = key.tools.iter().flatten().map(|tool| format!("tool:{tool}"));
    Audited {
        target_key_id: Some(key.key_id),
        fields: key.scopes.iter().cloned().chain(tools).collect(),
        ..Audited::new(AuditAction::KeyCreated, &key.user_id)
    }
}

pub(super) async fn insert(conn: &mut Conn, key: &KeyRecord) -> Result<(), StoreError> {
    let sql = "insert into api_key \
               (tenant_id, key_id, user_id, name, hash, scopes, tools, created_at, expires_at, revoked_at) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let args = [
        key.tenant_id.into(),
        key.key_id.into(),
        (&key.user_id).into(),
        (&key.name).into(),
        (&key.hash).into(),
        Arg::json(&key.scopes)?,
        Arg::opt_json(key.tools.as_ref())?,
        key.created_at.into(),
        key.expires_at.into(),
        key.revoked_at.into(),
    ];
    conn.execute(sql, &args).await.map(|_| ())
}

pub(super) fn decoded(row: &Row) -> Result<KeyRecord, StoreError> {
    Ok(KeyRecord {
        tenant_id: row.id("tenant_id")?,
        key_id: row.id("key_id")?,
        user_id: row.text("user_id")?,
        name: row.text("name")?,
        hash: row.text("hash")?,
        scopes: row.json("scopes")?,
        tools: row.opt_json("tools")?,
        created_at: row.timestamp("created_at")?,
        expires_at: row.opt_timestamp("expires_at")?,
        revoked_at: row.opt_timestamp("revoked_at")?,
    })
}
