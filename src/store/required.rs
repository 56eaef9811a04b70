//! What waits for a person or for a client, of all kinds: shown with a session,
//! in lists and in its events.

use super::scope::Rows;
use super::{Arg, Row, StoreError};
use crate::model::id::SessionId;
use crate::model::session::RequiredAction;

impl Rows<'_> {
    /// What waits in the sessions of this scope from one to another: one question
    /// for a whole page.
    pub async fn required_actions(
        &mut self,
        oldest: SessionId,
        newest: SessionId,
    ) -> Result<Vec<(SessionId, RequiredAction)>, StoreError> {
        const SQL: &str = "
            select session_id, 'approval' as kind, approval_id as id, turn_id, title, expires_at
            from approval
            where tenant_id = $1 and status = 'pending' and session_id >= $2 and session_id <= $3
                and user_id = coalesce($4, user_id)
            union all
            select origin_session_id as session_id, 'approval' as kind, approval_id as id, origin_turn_id as turn_id,
                title, expires_at
            from approval
            where tenant_id = $1 and status = 'pending' and origin_session_id >= $2 and origin_session_id <= $3
                and user_id = coalesce($4, user_id)
            union all
            select session_id, 'question' as kind, question_id as id, turn_id, question as title, expires_at
            from question
            where tenant_id = $1 and status = 'pending' and session_id >= $2 and session_id <= $3
                and user_id = coalesce($4, user_id)
            union all
            select session_id, 'client_tool' as kind, call_id as id, turn_id, name as title,
                cast(null as bigint) as expires_at
            from tool_call
            where tenant_id = $1 and execution = 'client' and status = 'waiting' and started_at is not null
                and session_id >= $2 and session_id <= $3 and user_id = coalesce($4, user_id)
            order by id";
        let args = [self.tenant.into(), oldest.into(), newest.into(), Arg::from(&self.user)];
        let rows = self.conn.rows(SQL, &args).await?;
        rows.iter().map(action).collect()
    }
}

fn action(row: &Row) -> Result<(SessionId, RequiredAction), StoreError> {
    let session = row.id("session_id")?;
    let turn = row.id("turn_id")?;
    let title = row.text("title")?;
    let expires_at = row.opt_timestamp("expires_at")?;
    let action = match row.text("kind")?.as_str() {
        "approval" => RequiredAction::approval(row.id("id")?, turn, title, expires_at),
        "question" => RequiredAction::question(row.id("id")?, turn, &title, expires_at),
        _ => RequiredAction::client_tool(session, turn, row.id("id")?, &title),
    };
    Ok((session, action))
}
