//! What waits for a person, across the sessions of a scope: for the inbox and
//! for counts. Lists of settled approvals are elsewhere.

use super::approvals::approval;
use super::scope::Rows;
use super::{Arg, StoreError};
use crate::model::approval::Approval;
use crate::model::id::{ApprovalId, SessionId};

impl Rows<'_> {
    /// Pending approvals after `after`, oldest first; of one session where given.
    pub async fn pending_approvals(
        &mut self,
        session: Option<SessionId>,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<Approval>, StoreError> {
        const SQL: &str = "
            select a.session_id, a.turn_id, a.call_id, a.approval_id, a.kind, a.status, a.batch_id, a.batch_index,
                a.tool, a.title, a.arguments, a.cwd, a.backend, a.findings, a.choices, a.digest, a.requester,
                a.reviewer, a.requested_at, a.expires_at, a.on_expiry, a.decision,
                a.origin_session_id, a.origin_turn_id
            from approval a join session s on s.tenant_id = a.tenant_id and s.session_id = a.session_id
            where a.tenant_id = $1 and a.status = 'pending' and a.user_id = coalesce($2, a.user_id)
                and s.deleted_at is null and a.session_id = coalesce($3, a.session_id)
                and a.approval_id > coalesce($4, '')
            order by a.approval_id limit $5";
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            session.into(),
            after.into(),
            limit.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(approval).collect()
    }

    /// How many approvals are pending; of one session where given.
    pub async fn count_pending(&mut self, session: Option<SessionId>) -> Result<i64, StoreError> {
        const SQL: &str = "
            select count(*) as pending
            from approval a join session s on s.tenant_id = a.tenant_id and s.session_id = a.session_id
            where a.tenant_id = $1 and a.status = 'pending' and a.user_id = coalesce($2, a.user_id)
                and s.deleted_at is null and a.session_id = coalesce($3, a.session_id)";
        let args = [self.tenant.into(), Arg::from(&self.user), session.into()];
        let row = self.conn.row(SQL, &args).await?;
        row.ok_or_else(|| StoreError::bug("no count"))?.int("pending")
    }
}
