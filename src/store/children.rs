//! Sessions that do delegated work, as those above them need to see them.

use super::scope::Rows;
use super::{Arg, News, StoreError};
use crate::base::Timestamp;
use crate::model::id::{CallId, SessionId, TurnId};
use crate::model::record::SessionRecord;

/// A call of a child in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedCall {
    pub name: String,
    pub arguments_bytes: usize,
    pub result_bytes: usize,
    pub status: String,
}

impl Rows<'_> {
    /// The sessions that a call made, deleted ones too, oldest first.
    pub async fn children_of(&mut self, call: CallId) -> Result<Vec<SessionRecord>, StoreError> {
        const SQL: &str = "
            select * from session where tenant_id = $1 and delegated_by = $2 order by session_id";
        let rows = self.conn.rows(SQL, &[self.tenant.into(), call.into()]).await?;
        rows.iter().map(|row| self.record(row)).collect()
    }

    /// Files that a session left, or what works for it at whatever depth: the paths in
    /// the workspace that they share, those written last first.
    pub async fn paths_written(&mut self, session: SessionId, most: u32) -> Result<Vec<String>, StoreError> {
        const SQL: &str = "
            with recursive below (session_id) as (
                select session_id from session where tenant_id = $1 and session_id = $2
                union all
                select child.session_id
                from below
                join tool_call c on c.tenant_id = $1 and c.session_id = below.session_id and c.execution = 'children'
                join session child on child.tenant_id = $1 and child.delegated_by = c.call_id)
            select path from artifact
            where tenant_id = $1 and session_id in (select session_id from below) and path is not null
            group by path order by max(artifact_id) desc limit $3";
        let args = [self.tenant.into(), session.into(), most.into()];
        let rows = self.conn.rows(SQL, &args).await?;
        rows.iter().map(|row| row.text("path")).collect()
    }

    /// Hides every session that works for `root`, at whatever depth.
    pub async fn hide_descendants(&mut self, root: SessionId, at: Timestamp) -> Result<(), StoreError> {
        const SQL: &str = "
            update session set deleted_at = $3
            where tenant_id = $1 and root_session_id = $2 and deleted_at is null returning session_id";
        let args = [self.tenant.into(), root.into(), at.into()];
        for row in self.conn.rows(SQL, &args).await? {
            self.conn.ring(row.id("session_id")?, News::Other);
        }
        Ok(())
    }

    /// The calls of a turn, the first of them.
    pub async fn call_trace(&mut self, turn: TurnId) -> Result<Vec<TracedCall>, StoreError> {
        const LIMIT: i64 = 100;
        const SQL: &str = "
            select c.name, c.arguments_raw, c.status, m.content
            from tool_call c
            left join message m on m.tenant_id = c.tenant_id and m.session_id = c.session_id
                and m.position = c.position
            where c.tenant_id = $1 and c.turn_id = $2 order by c.position limit $3";
        let args = [self.tenant.into(), turn.into(), Arg::Int(LIMIT)];
        let rows = self.conn.rows(SQL, &args).await?;
        let traced = rows.iter().map(|row| {
            let parts: Option<Vec<crate::model::message::Part>> = row.opt_json("content")?;
            let result = parts.map(|parts| crate::model::message::text_of(&parts).len());
            Ok(TracedCall {
                name: row.text("name")?,
                arguments_bytes: row.text("arguments_raw")?.len(),
                result_bytes: result.unwrap_or(0),
                status: row.text("status")?,
            })
        });
        traced.collect()
    }
}
