//! Folding the beginning of a session's log. The log is cut in front of a turn,
//! never within one and never behind one that is not over, so that what is left
//! is whole. First the cut is committed, which hides the events at once; their
//! rows go after it, in small steps that a crash may end anywhere.

use super::scope::Rows;
use super::{Arg, StoreError};
use crate::base::Timestamp;
use crate::model::id::SessionId;

/// Rows that go in one transaction: on SQLite all other writers wait for it.
const STEP: i64 = 2000;

impl Rows<'_> {
    /// The first event that is kept, or the one that comes next. Absent and
    /// foreign sessions have none.
    pub async fn oldest_seq(&mut self, session: SessionId) -> Result<Option<i64>, StoreError> {
        const SQL: &str = "
            select oldest_seq from session
            where tenant_id = $1 and session_id = $2 and user_id = coalesce($3, user_id)";
        let args = [self.tenant.into(), session.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| row.int("oldest_seq")).transpose()
    }

    /// Hides events that are older than `before`; answers the first that is kept.
    /// Absent and deleted sessions are left to those who delete them.
    pub async fn cut_log(&mut self, session: SessionId, before: Timestamp) -> Result<Option<i64>, StoreError> {
        const FRESH: &str = "
            select min(seq) as seq from event
            where tenant_id = $1 and session_id = $2 and seq >= $3 and at >= $4";
        const CUT: &str = "update session set oldest_seq = $3 where tenant_id = $1 and session_id = $2";
        let Some(record) = self.lock_session(session).await? else {
            return Ok(None);
        };
        let oldest = self.oldest_seq(session).await?.unwrap_or(1);
        let args = [self.tenant.into(), session.into(), oldest.into(), before.into()];
        let row = self.conn.row(FRESH, &args).await?;
        let fresh = row.map(|row| row.opt_int("seq")).transpose()?.flatten();
        let cut = self.before_turns(session, fresh.unwrap_or(record.head_seq + 1)).await?;
        if cut <= oldest {
            return Ok(Some(oldest));
        }
        let args = [self.tenant.into(), session.into(), cut.into()];
        self.conn.execute(CUT, &args).await?;
        Ok(Some(cut))
    }

    /// The place at or before `cut` at which no turn is under way.
    async fn before_turns(&mut self, session: SessionId, cut: i64) -> Result<i64, StoreError> {
        const SQL: &str = "
            select min(first_seq) as seq from turn
            where tenant_id = $1 and session_id = $2 and first_seq < $3 and (last_seq is null or last_seq >= $3)";
        let mut cut = cut;
        loop {
            let args = [self.tenant.into(), session.into(), cut.into()];
            let row = self.conn.row(SQL, &args).await?;
            match row.map(|row| row.opt_int("seq")).transpose()?.flatten() {
                Some(first) => cut = first,
                None => return Ok(cut),
            }
        }
    }

    /// Removes some of the rows before the cut; `true` when none is left.
    pub async fn drop_hidden_events(&mut self, session: SessionId) -> Result<bool, StoreError> {
        const SQL: &str = "
            delete from event where tenant_id = $1 and session_id = $2
                and seq < (select oldest_seq from session where tenant_id = $1 and session_id = $2)
                and seq < $3 + (select min(seq) from event where tenant_id = $1 and session_id = $2)";
        let args = [self.tenant.into(), session.into(), STEP.into()];
        Ok(self.conn.execute(SQL, &args).await? == 0)
    }
}
