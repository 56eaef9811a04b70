//! Changes that wait for a person: added with the result of the call that wants
//! them, locked while one is decided. A change of a skill that was let in stays as
//! a row with its plan until it is on the disk; it waits no more, so nothing but
//! its end finds it.

use serde::Serialize;

use super::scope::Rows;
use super::{Arg, Row, StoreError};
use crate::model::id::PendingWriteId;
use crate::model::pending::{PendingKind, PendingWrite};

impl Rows<'_> {
    pub async fn add_pending_write(&mut self, pending: &PendingWrite) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into pending_write (tenant_id, pending_id, user_id, kind, data) values ($1, $2, $3, $4, $5)";
        let args = [
            self.tenant.into(),
            pending.id.into(),
            Arg::from(&pending.user_id),
            Arg::from(pending.kind.name()),
            Arg::json(pending)?,
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// How many wait for a user.
    pub async fn count_pending_writes_of(&mut self, user: &str) -> Result<i64, StoreError> {
        const SQL: &str = "
            select count(*) as waiting from pending_write where tenant_id = $1 and user_id = $2
                and approved is null";
        let row = self.conn.row(SQL, &[self.tenant.into(), Arg::from(user)]).await?;
        row.ok_or_else(|| StoreError::bug("no count"))?.int("waiting")
    }

    /// One of them; absent and foreign ones are `None`.
    pub async fn pending_write(&mut self, id: PendingWriteId) -> Result<Option<PendingWrite>, StoreError> {
        const SQL: &str = "
            select data from pending_write
            where tenant_id = $1 and pending_id = $2 and user_id = coalesce($3, user_id) and approved is null";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.as_ref().map(pending).transpose()
    }

    /// The same, locked for this transaction.
    pub async fn lock_pending_write(&mut self, id: PendingWriteId) -> Result<Option<PendingWrite>, StoreError> {
        const LOCK: &str = "
            update pending_write set kind = kind
            where tenant_id = $1 and pending_id = $2 and user_id = coalesce($3, user_id) and approved is null
            returning data";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let row = self.conn.row(LOCK, &args).await?;
        row.as_ref().map(pending).transpose()
    }

    /// Newest first, older than `before`.
    pub async fn pending_writes(
        &mut self,
        kind: Option<PendingKind>,
        before: Option<PendingWriteId>,
        limit: u32,
    ) -> Result<Vec<PendingWrite>, StoreError> {
        const SQL: &str = "
            select data from pending_write
            where tenant_id = $1 and user_id = coalesce($2, user_id) and kind = coalesce($3, kind)
                and pending_id < coalesce($4, 'pend_~') and approved is null
            order by pending_id desc limit $5";
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            Arg::OptText(kind.map(PendingKind::name)),
            before.into(),
            limit.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(pending).collect()
    }

    /// Lets one in that comes to `plan`.
    pub async fn approve_pending_write(&mut self, id: PendingWriteId, plan: &impl Serialize) -> Result<(), StoreError> {
        const SQL: &str = "update pending_write set approved = $3 where tenant_id = $1 and pending_id = $2";
        let args = [self.tenant.into(), id.into(), Arg::json(plan)?];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// Takes one away, waiting or let in; whether it was there.
    pub async fn remove_pending_write(&mut self, id: PendingWriteId) -> Result<bool, StoreError> {
        const SQL: &str = "
            delete from pending_write
            where tenant_id = $1 and pending_id = $2 and user_id = coalesce($3, user_id)";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        Ok(0 < self.conn.execute(SQL, &args).await?)
    }
}

fn pending(row: &Row) -> Result<PendingWrite, StoreError> {
    row.json("data")
}
