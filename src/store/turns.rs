//! Turn rows: who runs them, how far they are, what waits behind them.

use super::scope::Rows;
use super::sessions::named;
use super::transcript::wire_name;
use super::{Arg, Kind, News, Row, StoreError};
use crate::base::Timestamp;
use crate::model::id::{SessionId, TurnId};
use crate::model::record::TurnRecord;
use crate::model::turn::{CancelReason, TurnStatus, Usage};

/// Whether an owner has anything new to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub head_seq: i64,
    pub epoch: i64,
    pub is_cancelled: bool,
}

/// What an owner finds behind its fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Of the session; if it is what the owner knows, so is all else.
    pub head_seq: i64,
    pub deleted_at: Option<Timestamp>,
    /// Of the session: work that was delegated counts for it, also after its turn.
    pub usage: Usage,
    pub cancel_reason: Option<CancelReason>,
}

pub(super) const TURN: &str = "
    select *
    from turn where tenant_id = $1 and session_id = $2 and turn_id = $3";

impl Rows<'_> {
    pub(super) async fn add_turn(&mut self, turn: &TurnRecord) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into turn (tenant_id, session_id, turn_id, user_id, status, stop_reason, input, options, owner,
                epoch, step, cancel_reason, progress, usage, error, active_ms, active_since, created_at,
                started_at, finished_at, first_seq, last_seq, queue_place, steers, key_id)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
                $22, $23, $24, $25)";
        let args = [
            self.tenant.into(),
            turn.session_id.into(),
            turn.turn_id.into(),
            Arg::from(&turn.user_id),
            Arg::from(turn.status.name()),
            opt_name(turn.stop_reason.as_ref())?,
            Arg::json(&turn.input)?,
            Arg::json(&turn.options)?,
            turn.owner.into(),
            turn.epoch.into(),
            turn.step.into(),
            opt_name(turn.cancel_reason.as_ref())?,
            Arg::json(&turn.progress)?,
            Arg::json(&turn.usage)?,
            Arg::opt_json(turn.error.as_ref())?,
            turn.active_ms.into(),
            turn.active_since.into(),
            turn.created_at.into(),
            turn.started_at.into(),
            turn.finished_at.into(),
            turn.first_seq.into(),
            turn.last_seq.into(),
            turn.queue_place.into(),
            Arg::json(&turn.steers)?,
            turn.key_id.into(),
        ];
        self.conn.later(SQL, &args).await
    }

    /// Writes back a turn's changeable columns; call under the session's lock. It names
    /// the session, for while there are few turns Postgres may take the index of their
    /// sessions instead of that of their ids, and keep to it.
    pub(super) async fn write_turn(&mut self, turn: &TurnRecord) -> Result<(), StoreError> {
        const SQL: &str = "
            update turn set status = $3, stop_reason = $4, owner = $5, epoch = $6, step = $7, cancel_reason = $8,
                progress = $9, usage = $10, error = $11, active_ms = $12, active_since = $13, started_at = $14,
                finished_at = $15, last_seq = $16, steers = $17
            where tenant_id = $1 and session_id = $18 and turn_id = $2";
        let args = [
            self.tenant.into(),
            turn.turn_id.into(),
            Arg::from(turn.status.name()),
            opt_name(turn.stop_reason.as_ref())?,
            turn.owner.into(),
            turn.epoch.into(),
            turn.step.into(),
            opt_name(turn.cancel_reason.as_ref())?,
            Arg::json(&turn.progress)?,
            Arg::json(&turn.usage)?,
            Arg::opt_json(turn.error.as_ref())?,
            turn.active_ms.into(),
            turn.active_since.into(),
            turn.started_at.into(),
            turn.finished_at.into(),
            turn.last_seq.into(),
            Arg::json(&turn.steers)?,
            turn.session_id.into(),
        ];
        self.conn.later(SQL, &args).await
    }

    /// Replaces what a client said of a turn that waits; call under the
    /// session's lock.
    pub(super) async fn edit_turn(&mut self, turn: &TurnRecord) -> Result<(), StoreError> {
        const SQL: &str = "
            update turn set input = $3, options = $4
            where tenant_id = $1 and session_id = $5 and turn_id = $2 and status = 'queued'";
        let args = [
            self.tenant.into(),
            turn.turn_id.into(),
            Arg::json(&turn.input)?,
            Arg::json(&turn.options)?,
            turn.session_id.into(),
        ];
        self.conn.later(SQL, &args).await
    }

    /// The fence: locks the session for the owner of one of its turns and says
    /// what of both another may have changed without an event. `None` says that
    /// somebody else went on with the turn, or that it is gone. The step is taken
    /// by writing the turn with the next one.
    pub async fn fence(
        &mut self,
        session: SessionId,
        turn: TurnId,
        (epoch, step): (i64, i64),
    ) -> Result<Option<Fence>, StoreError> {
        // On Postgres the session is locked first; what changed while this waited
        // for it is read anew.
        const SQLITE: &str = "
            select s.head_seq, s.deleted_at, s.usage, t.epoch, t.step, t.status, t.cancel_reason
            from session s join turn t on t.tenant_id = s.tenant_id and t.session_id = s.session_id
            where s.tenant_id = $1 and s.session_id = $2 and t.turn_id = $3";
        const POSTGRES: &str = "
            select s.head_seq, s.deleted_at, s.usage, t.epoch, t.step, t.status, t.cancel_reason
            from session s join turn t on t.tenant_id = s.tenant_id and t.session_id = s.session_id
            where s.tenant_id = $1 and s.session_id = $2 and t.turn_id = $3
            for no key update of s, t";
        let sql = match self.conn.dialect() {
            Kind::Sqlite => SQLITE,
            Kind::Postgres => POSTGRES,
        };
        let args = [self.tenant.into(), session.into(), turn.into()];
        let Some(row) = self.conn.row(sql, &args).await? else {
            return Ok(None);
        };
        let owned = row.int("epoch")? == epoch && row.int("step")? == step;
        if !owned || row.str("status")? != TurnStatus::Running.name() {
            return Ok(None);
        }
        Ok(Some(Fence {
            head_seq: row.int("head_seq")?,
            deleted_at: row.opt_timestamp("deleted_at")?,
            usage: row.json("usage")?,
            cancel_reason: row.opt_text("cancel_reason")?.map(|name| named(&name)).transpose()?,
        }))
    }

    /// How a turn and its session stand, in short.
    pub async fn standing_of_turn(&mut self, session: SessionId, id: TurnId) -> Result<Option<Standing>, StoreError> {
        const SQL: &str = "
            select s.head_seq, t.epoch, t.cancel_reason
            from turn t join session s on s.tenant_id = t.tenant_id and s.session_id = t.session_id
            where t.tenant_id = $1 and t.session_id = $2 and t.turn_id = $3";
        let args = [self.tenant.into(), session.into(), id.into()];
        self.conn.row(SQL, &args).await?.as_ref().map(standing).transpose()
    }

    /// One turn; absent and foreign ones are `None`.
    pub async fn turn(&mut self, session: SessionId, id: TurnId) -> Result<Option<TurnRecord>, StoreError> {
        let args = [self.tenant.into(), session.into(), id.into()];
        let row = self.conn.row(TURN, &args).await?;
        row.as_ref().map(turn_record).transpose()
    }

    pub(super) async fn turns_by_id(
        &mut self,
        session: SessionId,
        ids: &[TurnId],
    ) -> Result<Vec<TurnRecord>, StoreError> {
        const SQLITE: &str = "
            select turn_id, session_id, user_id, status, stop_reason, input, options, owner, epoch, step,
                cancel_reason, progress, usage, error, active_ms, active_since, created_at, started_at,
                finished_at, first_seq, last_seq, queue_place, steers, key_id
            from turn where tenant_id = $1 and +session_id = $2 and turn_id in (select value from json_each($3))";
        const POSTGRES: &str = "
            select turn_id, session_id, user_id, status, stop_reason, input, options, owner, epoch, step,
                cancel_reason, progress, usage, error, active_ms, active_since, created_at, started_at,
                finished_at, first_seq, last_seq, queue_place, steers, key_id
            from turn where tenant_id = $1 and session_id = $2
                and turn_id in (select json_array_elements_text($3::json))";
        let rows = self.by_ids([SQLITE, POSTGRES], session, ids).await?;
        rows.iter().map(turn_record).collect()
    }

    /// Turns of a session, newest first, older than `before`; with `status`
    /// only those.
    pub async fn turns(
        &mut self,
        session: SessionId,
        status: Option<TurnStatus>,
        before: Option<TurnId>,
        limit: u32,
    ) -> Result<Vec<TurnRecord>, StoreError> {
        const SQL: &str = "
            select *
            from turn
            where tenant_id = $1 and session_id = $2 and turn_id < coalesce($3, 'turn_~')
                and status = coalesce($4, status)
            order by turn_id desc limit $5";
        let args = [
            self.tenant.into(),
            session.into(),
            before.into(),
            Arg::OptText(status.map(TurnStatus::name)),
            limit.into(),
        ];
        let rows = self.conn.rows(SQL, &args).await?;
        rows.iter().map(turn_record).collect()
    }

    /// The head of the queue: the oldest turn that waits behind the active one.
    pub async fn queue_head(&mut self, session: SessionId) -> Result<Option<TurnRecord>, StoreError> {
        const SQL: &str = "
            select *
            from turn where tenant_id = $1 and session_id = $2 and status = 'queued'
            order by queue_place, turn_id limit 1";
        let row = self.conn.row(SQL, &[self.tenant.into(), session.into()]).await?;
        row.as_ref().map(turn_record).transpose()
    }

    /// The place before all turns that wait; call under the session's lock.
    pub async fn queue_front(&mut self, session: SessionId) -> Result<i64, StoreError> {
        const SQL: &str = "
            select coalesce(min(queue_place), 0) - 1 as place from turn
            where tenant_id = $1 and session_id = $2 and status = 'queued'";
        let row = self.conn.row(SQL, &[self.tenant.into(), session.into()]).await?;
        row.map_or(Ok(-1), |row| row.int("place"))
    }

    /// All turns that wait in the queue, oldest first.
    pub async fn queued_turns(&mut self, session: SessionId) -> Result<Vec<TurnRecord>, StoreError> {
        const SQL: &str = "
            select *
            from turn where tenant_id = $1 and session_id = $2 and status = 'queued'
            order by queue_place, turn_id";
        let rows = self.conn.rows(SQL, &[self.tenant.into(), session.into()]).await?;
        rows.iter().map(turn_record).collect()
    }

    /// Asks the owner of a running turn to stop; rings for it.
    pub async fn request_cancel(
        &mut self,
        session: SessionId,
        id: TurnId,
        reason: CancelReason,
    ) -> Result<(), StoreError> {
        const SQL: &str = "
            update turn set cancel_reason = $3 where tenant_id = $1 and turn_id = $2";
        let args = [self.tenant.into(), id.into(), wire_name(&reason)?];
        self.conn.execute(SQL, &args).await?;
        self.conn.ring(session, News::Other);
        Ok(())
    }
}

pub(super) fn standing(row: &Row) -> Result<Standing, StoreError> {
    Ok(Standing {
        head_seq: row.int("head_seq")?,
        epoch: row.int("epoch")?,
        is_cancelled: row.opt_str("cancel_reason")?.is_some(),
    })
}

fn opt_name<T: serde::Serialize>(reason: Option<&T>) -> Result<Arg<'static>, StoreError> {
    reason.map_or(Ok(Arg::OptText(None)), wire_name)
}

pub(super) fn turn_record(row: &Row) -> Result<TurnRecord, StoreError> {
    Ok(TurnRecord {
        turn_id: row.id("turn_id")?,
        session_id: row.id("session_id")?,
        user_id: row.text("user_id")?,
        key_id: row.opt_id("key_id")?,
        status: named(&row.text("status")?)?,
        stop_reason: row.opt_text("stop_reason")?.map(|name| named(&name)).transpose()?,
        input: row.json("input")?,
        options: row.json("options")?,
        owner: row.opt_id("owner")?,
        epoch: row.int("epoch")?,
        step: row.int("step")?,
        cancel_reason: row.opt_text("cancel_reason")?.map(|name| named(&name)).transpose()?,
        progress: row.json("progress")?,
        usage: row.json("usage")?,
        error: row.opt_json("error")?,
        active_ms: row.int("active_ms")?,
        active_since: row.opt_timestamp("active_since")?,
        created_at: row.timestamp("created_at")?,
        started_at: row.opt_timestamp("started_at")?,
        finished_at: row.opt_timestamp("finished_at")?,
        first_seq: row.int("first_seq")?,
        last_seq: row.opt_int("last_seq")?,
        queue_place: row.int("queue_place")?,
        steers: row.json("steers")?,
    })
}
