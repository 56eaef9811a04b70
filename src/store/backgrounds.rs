//! Processes that sessions run in the background: a row from the result of the
//! call that started one, its end when it is known. Of a session the last ones
//! that ended are kept.

use super::scope::Rows;
use super::{Arg, Row, StoreError};
use crate::model::background::{BackgroundEnd, BackgroundRecord, Completion, Notices};
use crate::model::id::{BackgroundId, SessionId};

/// Rows of one session beside those that run (the original's figure).
const KEPT: u32 = 64;

impl Rows<'_> {
    pub(super) async fn add_background(&mut self, user: &str, record: &BackgroundRecord) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into background (tenant_id, background_id, session_id, user_id, turn_id, call_id, owner, command,
                cwd, pid, terminal, notify, patterns, started_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        const FORGET: &str = "
            delete from background
            where tenant_id = $1 and session_id = $2 and completion is not null and background_id not in (
                select background_id from background where tenant_id = $1 and session_id = $2
                order by background_id desc limit $3)";
        let (Some(turn), Some(owner)) = (record.turn_id, record.owner) else {
            return Err(StoreError::bug("a process of no turn"));
        };
        let args = [
            self.tenant.into(),
            record.id.into(),
            record.session_id.into(),
            Arg::from(user),
            turn.into(),
            record.call_id.into(),
            owner.into(),
            Arg::from(&record.command),
            Arg::from(&record.cwd),
            record.pid.into(),
            record.terminal.into(),
            record.notices.on_completion.into(),
            Arg::json(&record.notices.patterns)?,
            record.started_at.into(),
        ];
        self.conn.execute(SQL, &args).await?;
        let args = [self.tenant.into(), record.session_id.into(), KEPT.into()];
        self.conn.execute(FORGET, &args).await?;
        Ok(())
    }

    /// Processes of a session, the newest first, older than `before`.
    pub async fn backgrounds(
        &mut self,
        session: SessionId,
        before: Option<BackgroundId>,
        limit: u32,
    ) -> Result<Vec<BackgroundRecord>, StoreError> {
        const SQL: &str = "
            select tenant_id, background_id, session_id, turn_id, call_id, owner, command, cwd, pid, terminal, notify,
                patterns, started_at, completion, exit_code, finished_at
            from background
            where tenant_id = $1 and session_id = $2 and user_id = coalesce($3, user_id)
                and background_id < coalesce($4, 'proc_~')
            order by background_id desc limit $5";
        let args = [
            self.tenant.into(),
            session.into(),
            Arg::from(&self.user),
            before.into(),
            limit.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(record).collect()
    }

    pub async fn background(
        &mut self,
        session: SessionId,
        id: BackgroundId,
    ) -> Result<Option<BackgroundRecord>, StoreError> {
        const SQL: &str = "
            select tenant_id, background_id, session_id, turn_id, call_id, owner, command, cwd, pid, terminal, notify,
                patterns, started_at, completion, exit_code, finished_at
            from background
            where tenant_id = $1 and session_id = $2 and background_id = $3 and user_id = coalesce($4, user_id)";
        let args = [self.tenant.into(), session.into(), id.into(), Arg::from(&self.user)];
        self.conn.row(SQL, &args).await?.as_ref().map(record).transpose()
    }

    /// Notes the end of a process. `false` when it was known, or the process is
    /// not.
    pub async fn end_background(&mut self, id: BackgroundId, end: &BackgroundEnd) -> Result<bool, StoreError> {
        const SQL: &str = "
            update background set completion = $3, exit_code = $4, finished_at = $5
            where tenant_id = $1 and background_id = $2 and completion is null";
        let args = [
            self.tenant.into(),
            id.into(),
            Arg::from(end.completion.name()),
            end.exit_code.into(),
            end.at.into(),
        ];
        Ok(self.conn.execute(SQL, &args).await? == 1)
    }

    /// Notes what is told of a process from now on.
    pub async fn set_background_notices(&mut self, id: BackgroundId, notices: &Notices) -> Result<bool, StoreError> {
        const SQL: &str = "
            update background set notify = $3, patterns = $4
            where tenant_id = $1 and background_id = $2";
        let args = [
            self.tenant.into(),
            id.into(),
            notices.on_completion.into(),
            Arg::json(&notices.patterns)?,
        ];
        Ok(self.conn.execute(SQL, &args).await? == 1)
    }
}

pub(super) fn record(row: &Row) -> Result<BackgroundRecord, StoreError> {
    let end = match row.opt_text("completion")? {
        None => None,
        Some(name) => Some(BackgroundEnd {
            completion: Completion::parse(&name).ok_or_else(|| StoreError::bug("an end of no known kind"))?,
            exit_code: row.opt_int("exit_code")?,
            at: row.timestamp("finished_at")?,
        }),
    };
    Ok(BackgroundRecord {
        id: row.id("background_id")?,
        tenant_id: row.id("tenant_id")?,
        session_id: row.id("session_id")?,
        call_id: row.id("call_id")?,
        turn_id: row.opt_id("turn_id")?,
        owner: row.opt_id("owner")?,
        command: row.text("command")?,
        cwd: row.text("cwd")?,
        pid: row.opt_int("pid")?,
        terminal: row.int("terminal")? != 0,
        notices: Notices {
            on_completion: row.int("notify")? != 0,
            patterns: row.json("patterns")?,
        },
        started_at: row.timestamp("started_at")?,
        end,
    })
}
