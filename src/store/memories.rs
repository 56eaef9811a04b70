//! What is remembered of a user from session to session: a row for each of the
//! two lists, read and replaced whole.

use super::scope::Rows;
use super::{Arg, Kind, StoreError};
use crate::base::Timestamp;
use crate::model::memory::{Memories, Target};

impl Rows<'_> {
    /// Both lists as they are now.
    pub async fn memories(&mut self, user: &str) -> Result<Memories, StoreError> {
        const SQL: &str = "select target, entries from memory where tenant_id = $1 and user_id = $2";
        self.read_memories(SQL, user).await
    }

    /// Both lists, which nobody else changes until this transaction ends. Taken
    /// after the session's lock and before anything of the tenant's.
    pub async fn lock_memories(&mut self, user: &str, at: Timestamp) -> Result<Memories, StoreError> {
        // On Postgres a row that is not there cannot be locked, so both are made.
        const MAKE: &str = "
            insert into memory (tenant_id, user_id, target, entries, updated_at)
            values ($1, $2, 'memory', '[]', $3), ($1, $2, 'user', '[]', $3)
            on conflict (tenant_id, user_id, target) do nothing";
        const LOCK: &str = "
            select target, entries from memory where tenant_id = $1 and user_id = $2 order by target for update";
        if self.conn.dialect() == Kind::Sqlite {
            return self.memories(user).await;
        }
        let args = [self.tenant.into(), Arg::from(user), at.into()];
        self.conn.execute(MAKE, &args).await?;
        self.read_memories(LOCK, user).await
    }

    /// Replaces one list.
    pub async fn write_memory(
        &mut self,
        user: &str,
        target: Target,
        entries: &[String],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into memory (tenant_id, user_id, target, entries, updated_at)
            values ($1, $2, $3, $4, $5)
            on conflict (tenant_id, user_id, target) do update
            set entries = excluded.entries, updated_at = excluded.updated_at";
        let args = [
            self.tenant.into(),
            Arg::from(user),
            Arg::from(target.name()),
            Arg::json(&entries)?,
            at.into(),
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    async fn read_memories(&mut self, sql: &'static str, user: &str) -> Result<Memories, StoreError> {
        let mut memories = Memories::default();
        for row in self.conn.rows(sql, &[self.tenant.into(), Arg::from(user)]).await? {
            let target = row.text("target")?;
            let target = Target::parse(&target).ok_or_else(|| StoreError::bug("a memory of no known kind"))?;
            memories.set(target, row.json("entries")?);
        }
        Ok(memories)
    }
}
