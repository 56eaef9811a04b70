//! The log as clients read it. An event row holds ids and the small state as of
//! that event; bodies are joined here: those that never change from their rows,
//! those that do from the event.

use std::collections::HashMap;

use super::render::{Bodies, Stored, id_in};
use super::scope::Rows;
use super::slice::{self, Slice};
use super::transcript::message_record;
use super::{Arg, Kind, Row, StoreError};
use crate::model::call::{CallStatus, ToolCall};
use crate::model::event::{Event, EventType};
use crate::model::id::{MessageId, SessionId, TurnId};
use crate::model::message::{Message, Role};
use crate::model::record::{CallRecord, MessageRecord};

impl Rows<'_> {
    /// Events after `after`, oldest first; of one turn where given. `None` when
    /// the session does not exist for this scope.
    pub async fn events(
        &mut self,
        session: SessionId,
        turn: Option<TurnId>,
        after: i64,
        limit: u32,
    ) -> Result<Option<Slice<Event>>, StoreError> {
        match self.head_seq(session).await? {
            Some(_) => self.kept_events(session, turn, after, limit).await.map(Some),
            None => Ok(None),
        }
    }

    /// As [`Rows::events`], with the number of the session's newest event and with
    /// the first event that is kept where events after `after` are not kept any
    /// more. A turn's are all kept or none is.
    pub async fn log(
        &mut self,
        session: SessionId,
        turn: Option<TurnId>,
        after: i64,
        limit: u32,
    ) -> Result<Option<(i64, Slice<Event>, Option<i64>)>, StoreError> {
        let Some(head_seq) = self.head_seq(session).await? else {
            return Ok(None);
        };
        let events = self.kept_events(session, turn, after, limit).await?;
        let next = events.items.first().map(|event| event.seq);
        let whole = match turn {
            Some(_) => next.is_some(),
            None => head_seq <= after || next.is_some_and(|next| next == after.saturating_add(1)),
        };
        let oldest = match whole {
            true => None,
            false => self.oldest_seq(session).await?,
        };
        let gap = oldest.filter(|oldest| after.saturating_add(1) < *oldest);
        Ok(Some((head_seq, events, gap)))
    }

    /// The last event up to `to` that says that a turn waits.
    pub async fn last_waiting(
        &mut self,
        session: SessionId,
        turn: TurnId,
        to: i64,
    ) -> Result<Option<Event>, StoreError> {
        let rows = self.waiting_row(session, turn, to).await?;
        Ok(self.rendered(session, &rows).await?.items.pop())
    }

    async fn kept_events(
        &mut self,
        session: SessionId,
        turn: Option<TurnId>,
        after: i64,
        limit: u32,
    ) -> Result<Slice<Event>, StoreError> {
        const SQL: &str = "
            select seq, turn_id, type, at, data from event
            where tenant_id = $1 and session_id = $2 and seq > $3
                and seq >= (select oldest_seq from session where tenant_id = $1 and session_id = $2)
            order by seq limit $4";
        let rows = match turn {
            Some(turn) => self.turn_log(session, turn, after, limit).await?,
            None => {
                let args = [self.tenant.into(), session.into(), after.into(), limit.into()];
                self.conn.rows(SQL, &args).await?
            }
        };
        self.rendered(session, &rows).await
    }

    /// Events after `after` that a tenant's lists show, oldest first. `None`
    /// when the session does not exist for this scope.
    pub async fn list_events(
        &mut self,
        session: SessionId,
        approvals_only: bool,
        after: i64,
        limit: u32,
    ) -> Result<Option<Slice<Event>>, StoreError> {
        const SQL: &str = "
            select seq, turn_id, type, at, data from event
            where tenant_id = $1 and session_id = $2 and seq > $3
                and (type like 'approval.%' or ($4 = 0 and type like 'session.%'))
            order by seq limit $5";
        if self.head_seq(session).await?.is_none() {
            return Ok(None);
        }
        let args = [
            self.tenant.into(),
            session.into(),
            after.into(),
            Arg::Int(i64::from(approvals_only)),
            limit.into(),
        ];
        let rows = self.conn.rows(SQL, &args).await?;
        self.rendered(session, &rows).await.map(Some)
    }

    /// Joins the bodies of events, as far as a slice holds.
    async fn rendered(&mut self, session: SessionId, rows: &[Row]) -> Result<Slice<Event>, StoreError> {
        let mut stored: Vec<Stored> = rows.iter().map(stored).collect::<Result<_, _>>()?;
        let mut bodies = self.bodies(session, &stored).await?;
        if stored.iter().any(|event| event.kind.shows_session()) {
            bodies.session = self.session(session).await?;
        }
        let cut = bodies.fits < stored.len();
        stored.truncate(bodies.fits);
        let render = |event| bodies.render(session, event);
        let items = stored.iter().map(render).collect::<Result<_, _>>()?;
        Ok(Slice { items, cut })
    }

    /// Loads bodies until the slice is full; `fits` says for how many events.
    /// In small steps, so that large ones are not all in memory before that.
    async fn bodies(&mut self, session: SessionId, events: &[Stored]) -> Result<Bodies, StoreError> {
        const STEP: usize = 16;
        let mut bodies = Bodies::default();
        let mut bytes = 0;
        for step in events.chunks(STEP) {
            self.load(session, step, &mut bodies).await?;
            for event in step {
                if slice::BYTES < bytes {
                    return Ok(bodies);
                }
                bodies.fits += 1;
                bytes += bodies.weight(event);
            }
        }
        Ok(bodies)
    }

    /// The bodies of these events, each kind in one statement.
    async fn load(&mut self, session: SessionId, events: &[Stored], bodies: &mut Bodies) -> Result<(), StoreError> {
        let turns = named_in(events, "turn_id", &bodies.turns);
        for turn in self.turns_by_id(session, &turns).await? {
            bodies.turns.insert(turn.turn_id, turn);
        }
        let messages = named_in(events, "message_id", &bodies.messages);
        for message in self.messages_by_id(session, &messages).await? {
            bodies.messages.insert(message.id, message);
        }
        let calls = named_in(events, "call_id", &bodies.calls);
        for (call, result) in self.calls_with_results(session, &calls).await? {
            bodies.calls.insert(call.call_id, (call, result));
        }
        let approvals = named_in(events, "approval_id", &bodies.approvals);
        for approval in self.approvals_by_id(session, &approvals).await? {
            bodies.approvals.insert(approval.id, approval);
        }
        let questions = named_in(events, "question_id", &bodies.questions);
        for question in self.questions_by_id(session, &questions).await? {
            bodies.questions.insert(question.id, question);
        }
        Ok(())
    }

    /// The event that put a message on a running turn, and that turn; `id` is of
    /// the turn that the message may become.
    pub async fn steered(&mut self, session: SessionId, id: TurnId) -> Result<Option<(i64, TurnId)>, StoreError> {
        const SQL: &str = "
            select seq, turn_id from event
            where tenant_id = $1 and session_id = $2 and type = 'turn.steered' and data like $3";
        let args = [self.tenant.into(), session.into(), Arg::from(format!("%\"{id}\"%"))];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| Ok((row.int("seq")?, row.id("turn_id")?))).transpose()
    }

    /// The last message the model wrote in a turn.
    pub async fn last_answer(&mut self, session: SessionId, turn: TurnId) -> Result<Option<Message>, StoreError> {
        const SQL: &str = "
            select message_id from message
            where tenant_id = $1 and session_id = $2 and turn_id = $3 and role = 'assistant'
            order by position desc limit 1";
        let args = [self.tenant.into(), session.into(), turn.into()];
        match self.conn.row(SQL, &args).await? {
            Some(row) => self.message(session, row.id("message_id")?).await,
            None => Ok(None),
        }
    }

    /// The messages of a session that have these names where they come from.
    pub async fn messages_by_external_id(
        &mut self,
        session: SessionId,
        names: &[&str],
    ) -> Result<Vec<Message>, StoreError> {
        const SQLITE: &str = "
            select message_id from message
            where tenant_id = $1 and session_id = $2 and external_id in (select value from json_each($3))";
        const POSTGRES: &str = "
            select message_id from message
            where tenant_id = $1 and session_id = $2
                and external_id in (select json_array_elements_text($3::json))";
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let sql = match self.conn.dialect() {
            Kind::Sqlite => SQLITE,
            Kind::Postgres => POSTGRES,
        };
        let args = [self.tenant.into(), session.into(), Arg::json(names)?];
        let rows = self.conn.rows(sql, &args).await?;
        let ids: Vec<MessageId> = rows.iter().map(|row| row.id("message_id")).collect::<Result<_, _>>()?;
        self.messages_by_id(session, &ids).await
    }

    async fn message(&mut self, session: SessionId, id: MessageId) -> Result<Option<Message>, StoreError> {
        Ok(self.messages_by_id(session, &[id]).await?.pop())
    }

    /// Messages as of their event: calls proposed, nothing started.
    async fn messages_by_id(&mut self, session: SessionId, ids: &[MessageId]) -> Result<Vec<Message>, StoreError> {
        const SQLITE: &str = "
            select position, message_id, turn_id, role, content, reasoning, finish_reason, call_id, created_at,
                steered, external_id
            from message where tenant_id = $1 and +session_id = $2
                and message_id in (select value from json_each($3))";
        const POSTGRES: &str = "
            select position, message_id, turn_id, role, content, reasoning, finish_reason, call_id, created_at,
                steered, external_id
            from message where tenant_id = $1 and session_id = $2
                and message_id in (select json_array_elements_text($3::json))";
        let rows = self.by_ids([SQLITE, POSTGRES], session, ids).await?;
        let records: Vec<MessageRecord> = rows.iter().map(message_record).collect::<Result<_, _>>()?;
        let callers = records.iter().filter(|record| record.role == Role::Assistant);
        let callers: Vec<MessageId> = callers.map(|record| record.message_id).collect();
        let mut calls: HashMap<MessageId, Vec<ToolCall>> = HashMap::new();
        for call in self.calls_of_messages(session, &callers).await? {
            calls.entry(call.message_id).or_default().push(proposed(call));
        }
        let view = |record: MessageRecord| {
            let own = calls.remove(&record.message_id).unwrap_or_default();
            record.view(own)
        };
        Ok(records.into_iter().map(view).collect())
    }
}

/// Ids under `key` in these events of which nothing is known yet.
fn named_in<K: crate::base::id::Kind, V>(
    events: &[Stored],
    key: &str,
    known: &HashMap<crate::base::Id<K>, V>,
) -> Vec<crate::base::Id<K>> {
    let mut ids = Vec::new();
    for id in events.iter().filter_map(|event| id_in(&event.data, key)) {
        if !known.contains_key(&id) && !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// A call as of the message that made it.
pub(super) fn proposed(mut call: CallRecord) -> ToolCall {
    call.status = CallStatus::Proposed;
    (call.exit_code, call.started_at, call.finished_at) = (None, None, None);
    call.view(None)
}

fn stored(row: &Row) -> Result<Stored, StoreError> {
    let name = row.text("type")?;
    Ok(Stored {
        seq: row.int("seq")?,
        turn_id: row.opt_id("turn_id")?,
        kind: EventType::from_name(&name).ok_or_else(|| StoreError::corrupt(format!("event type `{name}`")))?,
        at: row.timestamp("at")?,
        data: row.json("data")?,
    })
}
