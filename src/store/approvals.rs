//! Approval rows. An approval is settled by one compare-and-set on its status:
//! whoever comes first wins, and everyone else can read what was decided.

use super::scope::Rows;
use super::sessions::named;
use super::transcript::wire_name;
use super::{Arg, Row, StoreError};
use crate::base::Timestamp;
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::id::{ApprovalId, QuestionId, SessionId, TurnId};
use crate::model::lineage::Ancestor;
use crate::model::record::ReviewUpdate;

pub(super) const OF_TURN: &str = "
    select session_id, turn_id, call_id, approval_id, kind, status, batch_id, batch_index, tool, title,
        arguments, cwd, backend, findings, choices, digest, requester, reviewer, requested_at, expires_at,
        on_expiry, decision, review, origin_session_id, origin_turn_id
    from approval where tenant_id = $1 and (turn_id = $2 or origin_turn_id = $2) order by approval_id";

impl Rows<'_> {
    pub(super) async fn add_approval(&mut self, user: &str, approval: &Approval) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into approval (tenant_id, session_id, turn_id, call_id, approval_id, user_id, kind, status,
                batch_id, batch_index, tool, title, arguments, cwd, backend, findings, choices, digest, requester,
                reviewer, requested_at, expires_at, on_expiry, decision, origin_session_id, origin_turn_id)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
                $22, $23, $24, $25, $26)";
        let args = [
            self.tenant.into(),
            approval.session_id.into(),
            approval.turn_id.into(),
            approval.tool_call_id.into(),
            approval.id.into(),
            Arg::from(user),
            wire_name(&approval.kind)?,
            Arg::from(approval.status.name()),
            approval.batch_id.into(),
            approval.index.into(),
            Arg::from(&approval.tool),
            Arg::from(&approval.title),
            Arg::json(&approval.arguments)?,
            Arg::from(&approval.cwd),
            Arg::from(&approval.backend),
            Arg::json(&approval.findings)?,
            Arg::json(&approval.choices)?,
            Arg::from(&approval.digest),
            Arg::from(&approval.requester),
            Arg::from(&approval.reviewer),
            approval.requested_at.into(),
            approval.expires_at.into(),
            wire_name(&approval.on_expiry)?,
            Arg::opt_json(approval.decision.as_ref())?,
            approval.origin.map(|origin| origin.session_id).into(),
            approval.origin.map(|origin| origin.turn_id).into(),
        ];
        self.conn.later(SQL, &args).await
    }

    /// Settles a pending approval; `Lost` when it is not pending any more. An
    /// answer that no longer fits the world is superseded after it was given.
    pub(super) async fn settle_approval(&mut self, settled: &Approval) -> Result<(), StoreError> {
        const SQL: &str = "
            update approval set status = $3, decision = $4
            where tenant_id = $1 and approval_id = $2
                and (status = 'pending' or ($3 = 'superseded' and status = 'allowed'))";
        let args = [
            self.tenant.into(),
            settled.id.into(),
            Arg::from(settled.status.name()),
            Arg::opt_json(settled.decision.as_ref())?,
        ];
        match self.conn.execute(SQL, &args).await? {
            0 => Err(StoreError::Lost),
            _ => Ok(()),
        }
    }

    /// Writes what a model said of a pending approval; `Lost` when somebody was
    /// faster.
    pub(super) async fn write_review(&mut self, update: &ReviewUpdate) -> Result<(), StoreError> {
        const SQL: &str = "
            update approval set reviewer = $3, choices = $4, review = $5
            where tenant_id = $1 and approval_id = $2 and status = 'pending'";
        let args = [
            self.tenant.into(),
            update.approval_id.into(),
            Arg::from(&update.reviewer),
            Arg::json(&update.choices)?,
            Arg::json(&update.review)?,
        ];
        match self.conn.execute(SQL, &args).await? {
            0 => Err(StoreError::Lost),
            _ => Ok(()),
        }
    }

    /// One approval; absent and foreign ones are `None`.
    pub async fn approval(&mut self, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        const SQL: &str = "
            select a.session_id, a.turn_id, a.call_id, a.approval_id, a.kind, a.status, a.batch_id, a.batch_index,
                a.tool, a.title, a.arguments, a.cwd, a.backend, a.findings, a.choices, a.digest, a.requester,
                a.reviewer, a.requested_at, a.expires_at, a.on_expiry, a.decision, a.review,
                a.origin_session_id, a.origin_turn_id
            from approval a join session s on s.tenant_id = a.tenant_id and s.session_id = a.session_id
            where a.tenant_id = $1 and a.approval_id = $2 and a.user_id = coalesce($3, a.user_id)
                and s.deleted_at is null";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.as_ref().map(approval).transpose()
    }

    /// Approvals, newest first, older than `before`.
    pub async fn approvals(
        &mut self,
        session: Option<SessionId>,
        status: Option<ApprovalStatus>,
        before: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<Approval>, StoreError> {
        const SQL: &str = "
            select a.session_id, a.turn_id, a.call_id, a.approval_id, a.kind, a.status, a.batch_id, a.batch_index,
                a.tool, a.title, a.arguments, a.cwd, a.backend, a.findings, a.choices, a.digest, a.requester,
                a.reviewer, a.requested_at, a.expires_at, a.on_expiry, a.decision, a.review,
                a.origin_session_id, a.origin_turn_id
            from approval a join session s on s.tenant_id = a.tenant_id and s.session_id = a.session_id
            where a.tenant_id = $1 and a.user_id = coalesce($2, a.user_id) and s.deleted_at is null
                and (a.session_id = coalesce($3, a.session_id) or a.origin_session_id = $3) and a.status = coalesce($4, a.status)
                and a.approval_id < coalesce($5, 'apr_~')
            order by a.approval_id desc limit $6";
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            session.into(),
            Arg::OptText(status.map(ApprovalStatus::name)),
            before.into(),
            limit.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(approval).collect()
    }

    /// All approvals of a turn and of work that it delegated, in the order they
    /// were asked.
    pub async fn approvals_of_turn(&mut self, turn: TurnId) -> Result<Vec<Approval>, StoreError> {
        let rows = self.conn.rows(OF_TURN, &[self.tenant.into(), turn.into()]).await?;
        rows.iter().map(approval).collect()
    }

    /// Approvals by id, for rendering events.
    pub(super) async fn approvals_by_id(
        &mut self,
        session: SessionId,
        ids: &[ApprovalId],
    ) -> Result<Vec<Approval>, StoreError> {
        const SQLITE: &str = "
            select session_id, turn_id, call_id, approval_id, kind, status, batch_id, batch_index, tool, title,
                arguments, cwd, backend, findings, choices, digest, requester, reviewer, requested_at, expires_at,
                on_expiry, decision, review, origin_session_id, origin_turn_id
            from approval where tenant_id = $1 and +session_id = $2
                and approval_id in (select value from json_each($3))";
        const POSTGRES: &str = "
            select session_id, turn_id, call_id, approval_id, kind, status, batch_id, batch_index, tool, title,
                arguments, cwd, backend, findings, choices, digest, requester, reviewer, requested_at, expires_at,
                on_expiry, decision, review, origin_session_id, origin_turn_id
            from approval where tenant_id = $1 and session_id = $2
                and approval_id in (select json_array_elements_text($3::json))";
        let rows = self.by_ids([SQLITE, POSTGRES], session, ids).await?;
        rows.iter().map(approval).collect()
    }
}

pub(super) fn approval(row: &Row) -> Result<Approval, StoreError> {
    Ok(Approval {
        id: row.id("approval_id")?,
        session_id: row.id("session_id")?,
        turn_id: row.id("turn_id")?,
        tool_call_id: row.opt_id("call_id")?,
        batch_id: row.opt_id("batch_id")?,
        index: u32::try_from(row.int("batch_index")?).unwrap_or(0),
        kind: named(&row.text("kind")?)?,
        status: named(&row.text("status")?)?,
        tool: row.opt_text("tool")?,
        title: row.text("title")?,
        arguments: row.json("arguments")?,
        cwd: row.opt_text("cwd")?,
        backend: row.text("backend")?,
        findings: row.json("findings")?,
        choices: row.json("choices")?,
        digest: row.text("digest")?,
        requester: row.text("requester")?,
        reviewer: row.text("reviewer")?,
        requested_at: row.timestamp("requested_at")?,
        expires_at: row.opt_timestamp("expires_at")?,
        on_expiry: named(&row.text("on_expiry")?)?,
        decision: row.opt_json("decision")?,
        origin: origin(row)?,
        review: row.opt_json("review")?,
    })
}

fn origin(row: &Row) -> Result<Option<Ancestor>, StoreError> {
    let origin = (row.opt_id("origin_session_id")?, row.opt_id("origin_turn_id")?);
    let (Some(session_id), Some(turn_id)) = origin else {
        return Ok(None);
    };
    Ok(Some(Ancestor { session_id, turn_id }))
}

/// What expires next of all that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueItem {
    Approval(ApprovalId),
    Question(QuestionId),
}

/// When it expires, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub tenant_id: crate::model::id::TenantId,
    pub session_id: SessionId,
    pub item: DueItem,
    pub expires_at: Timestamp,
}
