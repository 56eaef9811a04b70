//! The only way to tenant rows: a scope names the tenant, and the user where
//! the principal sees only its own. Every query of tenant rows is a method of
//! [`Rows`], so one without a tenant does not compile.

use futures::future::BoxFuture;

use super::{Conn, Store, StoreError, Wall};
use crate::model::id::TenantId;

/// A tenant's part of the store; cheap to clone.
#[derive(Clone)]
pub struct Scope {
    store: Store,
    tenant: TenantId,
    /// Rows of other users do not exist for this scope. `None` sees all.
    user: Option<String>,
}

/// A tenant's rows within one transaction.
pub struct Rows<'c> {
    pub(super) conn: &'c mut Conn,
    pub(super) tenant: TenantId,
    pub(super) user: Option<String>,
}

impl Store {
    /// All rows of a tenant.
    pub fn scope(&self, tenant: TenantId) -> Scope {
        Scope {
            store: self.clone(),
            tenant,
            user: None,
        }
    }
}

impl Scope {
    /// The same tenant, only what `user` owns.
    pub fn of_user(mut self, user: String) -> Self {
        self.user = Some(user);
        self
    }

    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// One read: all its statements see the same snapshot.
    pub async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(Rows<'c>) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        let (tenant, user) = (self.tenant, self.user.clone());
        self.store
            .read(Wall::Tenant(tenant), move |conn| work(Rows { conn, tenant, user }))
            .await
    }

    /// One transaction; see [`Store::write`].
    pub async fn write<T, F>(&self, label: &'static str, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(Rows<'c>) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        let (tenant, user) = (self.tenant, self.user.clone());
        self.store
            .write(Wall::Tenant(tenant), label, move |conn| {
                work(Rows { conn, tenant, user })
            })
            .await
    }
}
