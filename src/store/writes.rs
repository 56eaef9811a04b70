//! Carrying out what pure code decided: one [`Writes`] becomes a few statements
//! under the session's lock. Here, and only here, events get their numbers.

use super::fresh::Fresh;
use super::notices::Notice;
use super::scope::Rows;
use super::sessions::NewSession;
use super::{News, StoreError};
use crate::base::Timestamp;
use crate::model::id::TurnId;
use crate::model::record::{JobWrite, NewEvent, SessionRecord, TurnRecord, Writes};

impl Rows<'_> {
    /// Writes everything and rings for the session. `session` is the record
    /// under the lock with the changes to it; its `head_seq` grows by the number
    /// of events. Answers the number of the first event.
    pub async fn apply(
        &mut self,
        session: &mut SessionRecord,
        writes: &Writes,
        at: Timestamp,
    ) -> Result<i64, StoreError> {
        self.carry_out(session, writes, at, None).await
    }

    /// Calls, those of programs among them, and what was too long of their results.
    async fn keep_calls(&mut self, session: &SessionRecord, writes: &Writes) -> Result<(), StoreError> {
        self.add_calls(session, &writes.new_calls).await?;
        self.write_calls(session, &writes.calls).await?;
        self.add_artifacts(session, &writes.artifacts).await?;
        self.add_nested_calls(session, &writes.new_calls).await?;
        self.write_nested_calls(session, &writes.calls).await
    }

    /// As [`Rows::apply`]; with `new` the session is not there yet.
    pub(super) async fn carry_out(
        &mut self,
        session: &mut SessionRecord,
        writes: &Writes,
        at: Timestamp,
        new: Option<&NewSession>,
    ) -> Result<i64, StoreError> {
        let first = session.head_seq + 1;
        session.head_seq += i64::try_from(writes.events.len()).unwrap_or(0);
        let mut turns = Vec::with_capacity(writes.new_turns.len() + writes.turns.len());
        for turn in &writes.new_turns {
            let mut turn = turn.clone();
            turn.first_seq = seq_of(&writes.events, first, turn.turn_id, |_| true).unwrap_or(first);
            self.add_turn(&turn).await?;
            turns.push(turn);
        }
        for turn in &writes.turns {
            let turn = ended(turn, &writes.events, first);
            self.write_turn(&turn).await?;
            turns.push(turn);
        }
        for turn in &writes.edited_turns {
            self.edit_turn(turn).await?;
            turns.push(turn.clone());
        }
        self.add_messages(session, &writes.messages).await?;
        self.index_messages(session, &writes.messages).await?;
        self.keep_calls(session, writes).await?;
        for approval in &writes.new_approvals {
            self.add_approval(&session.user_id, approval).await?;
        }
        for update in &writes.reviews {
            self.write_review(update).await?;
        }
        for update in &writes.approvals {
            self.settle_approval(update).await?;
        }
        for question in &writes.new_questions {
            self.add_question(&session.user_id, question).await?;
        }
        for update in &writes.questions {
            self.settle_question(update).await?;
        }
        for grant in &writes.new_grants {
            self.add_grant(&session.user_id, grant).await?;
        }
        for (target, entries) in &writes.memories {
            self.write_memory(&session.user_id, *target, entries, at).await?;
        }
        for pending in &writes.pending {
            self.add_pending_write(pending).await?;
        }
        for process in &writes.processes {
            self.add_background(&session.user_id, process).await?;
        }
        for job in &writes.jobs {
            match job {
                JobWrite::Add(job) => self.add_job(job).await?,
                JobWrite::Change(job) => self.write_job(job).await?,
                JobWrite::Remove(id) => self.remove_job(*id).await?,
            }
        }
        self.audit(&writes.audited, at).await?;
        self.append(session, &writes.events, first, at).await?;
        self.keep_session(session, new, writes, at).await?;
        // Last: many sessions share the sums.
        if !writes.usage.is_empty() || !writes.budget_grants.is_empty() {
            Box::pin(self.add_spending(session.session_id, writes)).await?;
        }
        let news = match writes.events.is_empty() {
            true => News::Other,
            false => News::Events(session.head_seq),
        };
        if self.conn.is_heard(session.session_id) && !writes.events.is_empty() {
            let fresh = Fresh::of(session.session_id, writes, turns, (first, at));
            fresh
                .into_iter()
                .for_each(|fresh| self.conn.lay_out(session.session_id, fresh));
        }
        self.conn.ring(session.session_id, news);
        // Lists leave delegated work out, and so do their streams.
        if session.lineage.is_none()
            && let Some(notice) = Notice::of(session, &writes.events, first)
        {
            self.conn.notify(notice);
        }
        Ok(first)
    }

    async fn append(
        &mut self,
        session: &SessionRecord,
        events: &[NewEvent],
        first: i64,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        const SQLITE: &str = "
            insert into event (tenant_id, session_id, user_id, seq, turn_id, epoch, type, at, data)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        const POSTGRES: &str = "
            insert into event (tenant_id, session_id, user_id, seq, turn_id, epoch, type, at, data)
            select $1, $2, $3, r.s, r.t, r.e, r.k, r.a, r.d
            from json_to_recordset($4::json) as r(s bigint, t text, e bigint, k text, a bigint, d text)";
        let rows: Vec<serde_json::Value> = events
            .iter()
            .zip(first..)
            .map(|(event, seq)| {
                serde_json::json!({"s": seq, "t": event.turn_id, "e": event.epoch, "k": event.kind.name(),
                    "a": at.0, "d": event.data.to_string()})
            })
            .collect();
        self.bulk([SQLITE, POSTGRES], session, &rows).await
    }
}

fn ended(turn: &TurnRecord, events: &[NewEvent], first: i64) -> TurnRecord {
    let mut turn = turn.clone();
    if turn.status.is_terminal() && turn.last_seq.is_none() {
        turn.last_seq = seq_of(events, first, turn.turn_id, |event| event.kind.ends_turn());
    }
    turn
}

/// The number of a turn's first event that `picks`.
fn seq_of(events: &[NewEvent], first: i64, turn: TurnId, picks: impl Fn(&NewEvent) -> bool) -> Option<i64> {
    let mut numbered = events.iter().zip(first..);
    let found = numbered.find(|(event, _)| event.turn_id == Some(turn) && picks(event));
    found.map(|(_, seq)| seq)
}
