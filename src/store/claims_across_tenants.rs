//! What crosses tenants by its nature: which turns lost their owner, which
//! approvals are due. These only *name* rows; whatever is done about one of
//! them is done within its tenant, under the session's lock, after a second
//! look.

use super::approvals::{Due, DueItem};
use super::backgrounds::record as background;
use super::once::KEPT_MS;
use super::{Arg, Kind, Row, Store, StoreError, Wall, dialect};
use crate::base::Timestamp;
use crate::model::background::BackgroundRecord;
use crate::model::id::{JobId, JobRunId, NodeId, PendingWriteId, ProcessId, SessionId, TenantId, TurnId};

/// A turn that runs, as its row says, on a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub tenant_id: TenantId,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub owner: Option<ProcessId>,
    pub epoch: i64,
    /// The data directory that holds the session's files.
    pub node_id: Option<NodeId>,
}

/// A job that is due, or will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueJob {
    pub tenant_id: TenantId,
    pub job_id: JobId,
    pub due_at: Timestamp,
}

/// A session that has something to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removable {
    pub tenant_id: TenantId,
    pub session_id: SessionId,
}

impl Store {
    /// Running turns, oldest first; without those of `except`.
    pub async fn running_turns_across_tenants(&self, except: Option<ProcessId>) -> Result<Vec<Claimed>, StoreError> {
        const SQL: &str = "
            select t.tenant_id, t.session_id, t.turn_id, t.owner, t.epoch, s.node_id
            from turn t join session s on s.tenant_id = t.tenant_id and s.session_id = t.session_id
            where t.status = 'running' and (t.owner is null or t.owner <> coalesce($1, ''))
            order by t.turn_id limit 1000";
        let rows = self
            .read(Wall::Across, move |conn| {
                Box::pin(async move { conn.rows(SQL, &[except.into()]).await })
            })
            .await?;
        let claimed = rows.iter().map(|row| {
            Ok(Claimed {
                tenant_id: row.id("tenant_id")?,
                session_id: row.id("session_id")?,
                turn_id: row.id("turn_id")?,
                owner: row.opt_id("owner")?,
                epoch: row.int("epoch")?,
                node_id: row.opt_id("node_id")?,
            })
        });
        claimed.collect()
    }

    /// Processes in the background whose server is gone, oldest first.
    pub async fn orphaned_backgrounds_across_tenants(&self) -> Result<Vec<BackgroundRecord>, StoreError> {
        const SQL: &str = "
            select tenant_id, background_id, session_id, turn_id, call_id, owner, command, cwd, pid, terminal, notify,
                patterns, started_at, completion, exit_code, finished_at
            from background
            where completion is null and owner not in (select process_id from process)
            order by background_id limit 1000";
        let rows = self
            .read(Wall::Across, move |conn| {
                Box::pin(async move { conn.rows(SQL, &[]).await })
            })
            .await?;
        rows.iter().map(background).collect()
    }

    /// Pending approvals and questions that expire, soonest first.
    pub async fn due_across_tenants(&self, limit: u32) -> Result<Vec<Due>, StoreError> {
        const SQL: &str = "
            select tenant_id, session_id, 'approval' as kind, approval_id as id, expires_at from approval
            where status = 'pending' and expires_at is not null
            union all
            select tenant_id, session_id, 'question' as kind, question_id as id, expires_at from question
            where status = 'pending' and expires_at is not null
            order by expires_at limit $1";
        let rows = self
            .read(Wall::Across, move |conn| {
                Box::pin(async move { conn.rows(SQL, &[limit.into()]).await })
            })
            .await?;
        let due = rows.iter().map(|row| {
            Ok(Due {
                tenant_id: row.id("tenant_id")?,
                session_id: row.id("session_id")?,
                item: match row.text("kind")?.as_str() {
                    "approval" => DueItem::Approval(row.id("id")?),
                    _ => DueItem::Question(row.id("id")?),
                },
                expires_at: Timestamp(row.int("expires_at")?),
            })
        });
        due.collect()
    }

    /// Jobs that are due or will be, soonest first.
    pub async fn due_jobs_across_tenants(&self, limit: u32) -> Result<Vec<DueJob>, StoreError> {
        const SQL: &str = "
            select tenant_id, job_id, due_at from job where due_at is not null order by due_at limit $1";
        let rows = self
            .read(Wall::Across, move |conn| {
                Box::pin(async move { conn.rows(SQL, &[limit.into()]).await })
            })
            .await?;
        let due = rows.iter().map(|row| {
            Ok(DueJob {
                tenant_id: row.id("tenant_id")?,
                job_id: row.id("job_id")?,
                due_at: row.timestamp("due_at")?,
            })
        });
        due.collect()
    }

    /// Answers of runs that are over and not delivered: first those that can be
    /// delivered, oldest first, then those whose session is busy.
    pub async fn undelivered_across_tenants(&self, limit: u32) -> Result<Vec<WaitingAnswer>, StoreError> {
        let rows = self
            .read(Wall::Across, move |conn| {
                let sql = undelivered(conn.dialect());
                Box::pin(async move { conn.rows(sql, &[limit.into()]).await })
            })
            .await?;
        let answers = rows.iter().map(|row| {
            Ok(WaitingAnswer {
                tenant_id: row.id("tenant_id")?,
                run_id: row.id("run_id")?,
                waits_for: row.opt_id("waits_for")?,
            })
        });
        answers.collect()
    }

    /// Forgets the keys of requests that are older than a day.
    pub async fn forget_old_keys_across_tenants(&self) -> Result<u64, StoreError> {
        const ANY: &str = "select route from idempotency where created_at <= $1 limit 1";
        const SQL: &str = "delete from idempotency where created_at <= $1";
        let clock = self.clock().clone();
        let there = self.read(Wall::Across, move |conn| {
            Box::pin(async move {
                let since = dialect::now(conn, &clock).await?.0 - KEPT_MS;
                Ok(conn.row(ANY, &[since.into()]).await?.is_some())
            })
        });
        if !there.await? {
            return Ok(0);
        }
        let clock = self.clock().clone();
        self.write(Wall::Across, "forget_keys", move |conn| {
            Box::pin(async move {
                let since = dialect::now(conn, &clock).await?.0 - KEPT_MS;
                conn.execute(SQL, &[since.into()]).await
            })
        })
        .await
    }

    /// Sessions whose oldest event is from before `before`, behind `last` in the
    /// order of their ids.
    pub async fn sessions_with_old_events_across_tenants(
        &self,
        before: Timestamp,
        last: Option<Removable>,
        limit: u32,
    ) -> Result<Vec<Removable>, StoreError> {
        const SQL: &str = "
            select s.tenant_id, s.session_id from session s
            where (s.tenant_id > $1 or (s.tenant_id = $1 and s.session_id > $2)) and s.deleted_at is null
                and (select e.at from event e where e.tenant_id = s.tenant_id and e.session_id = s.session_id
                    order by e.seq limit 1) < $3
            order by s.tenant_id, s.session_id limit $4";
        let place = |id: Option<String>| Arg::Owned(id.unwrap_or_default());
        let rows = self.read(Wall::Across, move |conn| {
            Box::pin(async move {
                let args = [
                    place(last.map(|last| last.tenant_id.to_string())),
                    place(last.map(|last| last.session_id.to_string())),
                    before.into(),
                    limit.into(),
                ];
                conn.rows(SQL, &args).await
            })
        });
        let found = rows.await?;
        found.iter().map(session_named).collect()
    }

    /// What a server that ended in the middle may have left.
    pub async fn approved_writes_across_tenants(&self) -> Result<Vec<ApprovedWrite>, StoreError> {
        const SQL: &str = "
            select tenant_id, pending_id, approved from pending_write where approved is not null limit 1000";
        let args: [Arg<'static>; 0] = [];
        let rows = self
            .read(Wall::Across, move |conn| {
                Box::pin(async move { conn.rows(SQL, &args).await })
            })
            .await?;
        let approved = |row: &Row| {
            Ok(ApprovedWrite {
                tenant_id: row.id("tenant_id")?,
                id: row.id("pending_id")?,
                plan: row.json("approved")?,
            })
        };
        rows.iter().map(approved).collect()
    }

    /// Deleted sessions without a turn that still runs.
    pub async fn hidden_sessions_across_tenants(&self) -> Result<Vec<Removable>, StoreError> {
        const SQL: &str = "
            select tenant_id, session_id from session s
            where deleted_at is not null and active_turn_id is null and not exists (
                select 1 from session child
                where child.tenant_id = s.tenant_id and child.root_session_id = s.session_id
                    and child.active_turn_id is not null)
            limit 1000";
        let args: [Arg<'static>; 0] = [];
        let rows = self
            .read(Wall::Across, move |conn| {
                Box::pin(async move { conn.rows(SQL, &args).await })
            })
            .await?;
        rows.iter().map(session_named).collect()
    }
}

/// A change that was let in and is not known to be on the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovedWrite {
    pub tenant_id: TenantId,
    pub id: PendingWriteId,
    pub plan: serde_json::Value,
}

fn session_named(row: &Row) -> Result<Removable, StoreError> {
    Ok(Removable {
        tenant_id: row.id("tenant_id")?,
        session_id: row.id("session_id")?,
    })
}

/// The answer of a run that is to be told to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingAnswer {
    pub tenant_id: TenantId,
    pub run_id: JobRunId,
    /// The session, where it is busy.
    pub waits_for: Option<SessionId>,
}

/// Who waits for a busy session comes last, and so stands in nobody's way.
const fn undelivered(kind: Kind) -> &'static str {
    match kind {
        Kind::Sqlite => {
            "select r.tenant_id, r.run_id, case when s.active_turn_id is null then null else s.session_id end as waits_for \
             from job_run r \
             left join turn t on t.tenant_id = r.tenant_id and t.turn_id = r.turn_id \
             left join job j on j.tenant_id = r.tenant_id and j.job_id = r.job_id \
             left join session s on s.tenant_id = r.tenant_id and s.session_id = j.data ->> 'origin_session_id' \
             where r.delivery = 'pending' and coalesce(t.status, 'gone') not in ('queued', 'running', 'waiting') \
             order by case when s.active_turn_id is null then 0 else 1 end, r.run_id limit $1"
        }
        Kind::Postgres => {
            "select r.tenant_id, r.run_id, case when s.active_turn_id is null then null else s.session_id end as waits_for \
             from job_run r \
             left join turn t on t.tenant_id = r.tenant_id and t.turn_id = r.turn_id \
             left join job j on j.tenant_id = r.tenant_id and j.job_id = r.job_id \
             left join session s on s.tenant_id = r.tenant_id and s.session_id = j.data::json ->> 'origin_session_id' \
             where r.delivery = 'pending' and coalesce(t.status, 'gone') not in ('queued', 'running', 'waiting') \
             order by case when s.active_turn_id is null then 0 else 1 end, r.run_id limit $1"
        }
    }
}
