//! The only way to tenant rows: a scope names the tenant, and the user where
//! the principal sees only its own. Every query of tenant rows is a method of
//! [`Rows`], so one without a tenant does not compile.

use futures::future::BoxFuture;

use super::once::Once;
use super::{Conn, LongWork, Store, StoreError, Wall};
use crate::base::Clock;
use crate::model::audit::Actor;
use crate::model::id::{KeyId, SessionId, TenantId};
use crate::model::precondition::Precondition;

/// A tenant's part of the store; cheap to clone.
#[derive(Clone)]
pub struct Scope {
    store: Store,
    tenant: TenantId,
    /// Rows of other users do not exist for this scope. `None` sees all.
    user: Option<String>,
    /// The key of the request that is carried out, if it has one.
    pub(super) once: Option<Once>,
    /// Who acts; nothing where the server does by itself.
    pub(super) actor: Option<Actor>,
    /// What must hold for the change of the request.
    only_if: Precondition,
    /// The stored key that the caller showed, if it did.
    key: Option<KeyId>,
    long_work: LongWork,
}

/// A tenant's rows within one transaction.
pub struct Rows<'c> {
    pub(super) conn: &'c mut Conn,
    pub(super) tenant: TenantId,
    pub(super) user: Option<String>,
    pub(super) once: Option<Once>,
    pub(super) actor: Option<Actor>,
    only_if: Precondition,
    long_work: LongWork,
    pub(super) clock: Clock,
}

impl Rows<'_> {
    /// Whose rows these are.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Rows of every user of the tenant exist for this scope.
    pub fn sees_whole_tenant(&self) -> bool {
        self.user.is_none()
    }
}

impl Store {
    /// All rows of a tenant.
    pub fn scope(&self, tenant: TenantId) -> Scope {
        Scope {
            store: self.clone(),
            tenant,
            user: None,
            once: None,
            actor: None,
            only_if: Precondition::default(),
            key: None,
            long_work: LongWork::None,
        }
    }
}

impl Scope {
    /// The same tenant, only what `user` owns.
    pub fn of_user(mut self, user: String) -> Self {
        self.user = Some(user);
        self
    }

    /// The same rows, for a change that is made only if this holds.
    pub fn only_if(mut self, precondition: Precondition) -> Self {
        self.only_if = precondition;
        self
    }

    /// The same rows, for a caller who showed this key.
    pub fn by_key(mut self, key: Option<KeyId>) -> Self {
        self.key = key;
        self
    }

    /// The same rows, where transactions meet what takes long.
    pub fn long_work(mut self, long_work: LongWork) -> Self {
        self.long_work = long_work;
        self
    }

    pub fn key(&self) -> Option<KeyId> {
        self.key
    }

    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Whether rows of this user exist for the scope.
    pub fn sees(&self, user: &str) -> bool {
        self.user.as_ref().is_none_or(|own| own == user)
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
        let open = self.opened();
        self.store
            .read(Wall::Tenant(self.tenant), move |conn| work(open(conn)))
            .await
    }

    /// One transaction; see [`Store::write`].
    pub async fn write<T, F>(&self, label: &'static str, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(Rows<'c>) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        let open = self.opened();
        self.store
            .write(Wall::Tenant(self.tenant), label, move |conn| work(open(conn)))
            .await
    }

    /// As [`Scope::write`], for work of one session that reads first and then
    /// writes: on Postgres it may share its transaction with that of other sessions.
    /// Where it cannot, or one of the others spoils it, `make` makes it anew and it
    /// is done alone.
    pub async fn write_grouped<T, F>(
        &self,
        session: SessionId,
        label: &'static str,
        make: impl Fn() -> F,
    ) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(Rows<'c>) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        let (open, work) = (self.opened(), make());
        let whose = (self.tenant, session);
        let grouped = self.store.write_grouped(whose, label, move |conn| work(open(conn)));
        match grouped.await {
            Err(StoreError::Alone) => self.write(label, make()).await,
            done => done,
        }
    }

    /// Makes the rows of this scope out of a transaction.
    fn opened(&self) -> impl for<'c> FnOnce(&'c mut Conn) -> Rows<'c> + Send + 'static {
        let (tenant, user, once, actor) = (self.tenant, self.user.clone(), self.once.clone(), self.actor.clone());
        let (only_if, long_work) = (self.only_if.clone(), self.long_work);
        let clock = self.store.clock().clone();
        move |conn| Rows {
            conn,
            tenant,
            user,
            once,
            actor,
            only_if,
            long_work,
            clock,
        }
    }
}

impl Rows<'_> {
    /// What must hold for the change of the request that is carried out.
    pub fn precondition(&self) -> &Precondition {
        &self.only_if
    }

    /// What this transaction does about work that takes long.
    pub fn long_work(&self) -> LongWork {
        self.long_work
    }
}
