//! Message and tool-call rows as they are read: the transcript. Places are dense;
//! the place of a call's result is reserved when the call is stored. They are
//! written by `bulk`.

use super::approvals::{OF_TURN, approval};
use super::scope::Rows;
use super::sessions::named;
use super::slice::{self, Slice};
use super::turns::{Standing, TURN, standing, turn_record};
use super::{Arg, Row, StoreError};
use crate::model::approval::Approval;
use crate::model::id::{CallId, MessageId, SessionId, TurnId};
use crate::model::message::{FinishReason, Message};
use crate::model::record::{CallRecord, MessageRecord, TurnRecord};

const BATCH: &str = "
    select call_id, turn_id, message_id, batch_index, position, name, provider_id, arguments_raw, arguments,
        edited, effect, execution, segment, parallel, status, exit_code, created_at, started_at, finished_at
    from tool_call
    where tenant_id = $1 and turn_id = $2 and message_id = (
        select message_id from tool_call where tenant_id = $1 and turn_id = $2
        order by position desc limit 1)
    order by position";

impl Rows<'_> {
    /// The calls of a turn's newest answer that made any, in order.
    pub async fn batch(&mut self, turn: TurnId) -> Result<Vec<CallRecord>, StoreError> {
        let rows = self.conn.rows(BATCH, &[self.tenant.into(), turn.into()]).await?;
        self.with_nested(read(&rows, call_record)?).await
    }

    /// What a turn has open: the calls of its newest batch, and all approvals of it
    /// and of work that it delegated, as [`Rows::approvals_of_turn`].
    pub async fn open_work(&mut self, turn: TurnId) -> Result<(Vec<CallRecord>, Vec<Approval>), StoreError> {
        let args = [self.tenant.into(), turn.into()];
        let asked = [(BATCH, args.as_slice()), (OF_TURN, args.as_slice())];
        let [calls, approvals] = Box::pin(self.conn.several(asked)).await?;
        let calls = self.with_nested(read(&calls, call_record)?).await?;
        Ok((calls, read(&approvals, approval)?))
    }

    /// As [`Rows::open_work`], with the turn itself, if it is there.
    pub async fn turn_at_work(
        &mut self,
        session: SessionId,
        turn: TurnId,
    ) -> Result<Option<(TurnRecord, Vec<CallRecord>, Vec<Approval>)>, StoreError> {
        let whole = [self.tenant.into(), session.into(), turn.into()];
        let args = [self.tenant.into(), turn.into()];
        let asked = [
            (TURN, whole.as_slice()),
            (BATCH, args.as_slice()),
            (OF_TURN, args.as_slice()),
        ];
        let [turns, calls, approvals] = Box::pin(self.conn.several(asked)).await?;
        let Some(turn) = turns.first() else { return Ok(None) };
        Ok(Some((
            turn_record(turn)?,
            self.with_nested(read(&calls, call_record)?).await?,
            read(&approvals, approval)?,
        )))
    }

    /// The transcript as the model sees it: messages by place, without those of
    /// turns that were rolled back; and all calls.
    pub async fn transcript(
        &mut self,
        session: SessionId,
    ) -> Result<(Vec<MessageRecord>, Vec<CallRecord>), StoreError> {
        const MESSAGES: &str = "
            select position, message_id, turn_id, role, content, reasoning, finish_reason, call_id, created_at, steered,
                external_id
            from message
            where tenant_id = $1 and session_id = $2 and turn_id not in (
                select turn_id from turn
                where tenant_id = $1 and session_id = $2 and status = 'rolled_back')
            order by position";
        let rows = self.conn.rows(MESSAGES, &[self.tenant.into(), session.into()]).await?;
        let messages: Vec<MessageRecord> = rows.iter().map(message_record).collect::<Result<_, _>>()?;
        let calls = self.calls_of(session, &messages).await?;
        Ok((messages, calls))
    }

    /// As [`Rows::transcript`], with how one of the session's turns stands: both
    /// in one question. `None` when that turn is not there.
    pub async fn transcript_for(
        &mut self,
        session: SessionId,
        turn: TurnId,
    ) -> Result<Option<(Standing, Vec<MessageRecord>, Vec<CallRecord>)>, StoreError> {
        const SQL: &str = "
            select s.head_seq, t.epoch, t.cancel_reason, m.position, m.message_id, m.turn_id, m.role, m.content,
                m.reasoning, m.finish_reason, m.call_id, m.created_at, m.steered, m.external_id
            from session s
            join turn t on t.tenant_id = s.tenant_id and t.session_id = s.session_id
            join message m on m.tenant_id = s.tenant_id and m.session_id = s.session_id
            where s.tenant_id = $1 and s.session_id = $2 and t.tenant_id = $1 and t.turn_id = $3
                and m.tenant_id = $1 and m.session_id = $2 and m.turn_id not in (
                    select turn_id from turn
                    where tenant_id = $1 and session_id = $2 and status = 'rolled_back')
            order by m.position";
        let rows = self
            .conn
            .rows(SQL, &[self.tenant.into(), session.into(), turn.into()])
            .await?;
        // A turn has its input at least.
        let Some(first) = rows.first() else { return Ok(None) };
        let standing = standing(first)?;
        let messages: Vec<MessageRecord> = rows.iter().map(message_record).collect::<Result<_, _>>()?;
        let calls = self.calls_of(session, &messages).await?;
        Ok(Some((standing, messages, calls)))
    }

    /// All calls of a session, if these messages made any.
    async fn calls_of(
        &mut self,
        session: SessionId,
        messages: &[MessageRecord],
    ) -> Result<Vec<CallRecord>, StoreError> {
        const SQL: &str = "
            select call_id, turn_id, message_id, batch_index, position, name, provider_id, arguments_raw, arguments,
                edited, effect, execution, segment, parallel, status, exit_code, created_at, started_at, finished_at
            from tool_call where tenant_id = $1 and session_id = $2 order by position";
        let makes_calls = |message: &MessageRecord| message.finish_reason == Some(FinishReason::ToolCalls);
        if !messages.iter().any(makes_calls) {
            return Ok(Vec::new());
        }
        let calls = self.conn.rows(SQL, &[self.tenant.into(), session.into()]).await?;
        calls.iter().map(call_record).collect()
    }

    /// Messages after a place, oldest first, as clients see them. Stops before
    /// the place of a call that has no result yet, so that a page never has a
    /// hole which is filled later. Each comes with its place.
    pub async fn messages(
        &mut self,
        session: SessionId,
        after: i64,
        limit: u32,
    ) -> Result<Slice<(i64, Message)>, StoreError> {
        const CALLS: &str = "
            select call_id, turn_id, message_id, batch_index, position, name, provider_id, arguments_raw, arguments,
                edited, effect, execution, segment, parallel, status, exit_code, created_at, started_at, finished_at
            from tool_call
            where tenant_id = $1 and session_id = $2 and position > $3 and message_id in (
                select message_id from message
                where tenant_id = $1 and session_id = $2 and position > $3 and position <= $4
                    and role = 'assistant')
            order by position";
        let Slice { items: whole, cut } = self.message_rows(session, after, limit).await?;
        let Some(last) = whole.last().map(|message| message.position) else {
            return Ok(Slice { items: Vec::new(), cut });
        };
        let args = [self.tenant.into(), session.into(), after.into(), last.into()];
        let rows = self.conn.rows(CALLS, &args).await?;
        let calls: Vec<CallRecord> = rows.iter().map(call_record).collect::<Result<_, _>>()?;
        let hidden = self.rolled_back_turns(session).await?;
        let view = |message: MessageRecord| {
            let own = calls.iter().filter(|call| call.message_id == message.message_id);
            let own = own.map(|call| call.view(None)).collect();
            let position = message.position;
            let mut message = message.view(own);
            message.hidden = hidden.contains(&message.turn_id);
            (position, message)
        };
        let items = whole.into_iter().map(view).collect();
        Ok(Slice { items, cut })
    }

    /// Rows without a hole, read in small steps so that large ones are not all
    /// in memory before the slice is full.
    async fn message_rows(
        &mut self,
        session: SessionId,
        after: i64,
        limit: u32,
    ) -> Result<Slice<MessageRecord>, StoreError> {
        const SQL: &str = "
            select position, message_id, turn_id, role, content, reasoning, finish_reason, call_id, created_at, steered,
                external_id
            from message where tenant_id = $1 and session_id = $2 and position > $3 order by position limit $4";
        const STEP: u32 = 16;
        let (mut items, mut bytes, mut last, mut left) = (Vec::new(), 0, after, limit);
        while 0 < left {
            let step = left.min(STEP);
            let args = [self.tenant.into(), session.into(), last.into(), step.into()];
            let rows = self.conn.rows(SQL, &args).await?;
            let enough = rows.len() < step as usize;
            for row in &rows {
                let message = message_record(row)?;
                // A client may name any place.
                if message.position != last.saturating_add(1) {
                    return Ok(Slice { items, cut: false });
                }
                if slice::BYTES < bytes {
                    return Ok(Slice { items, cut: true });
                }
                last = message.position;
                bytes += slice::weight(&message.content) + message.reasoning.as_ref().map_or(0, String::len);
                items.push(message);
            }
            if enough {
                break;
            }
            left -= step;
        }
        Ok(Slice { items, cut: false })
    }

    /// Turns that the model does not see any more.
    async fn rolled_back_turns(&mut self, session: SessionId) -> Result<Vec<TurnId>, StoreError> {
        const SQL: &str = "
            select turn_id from turn where tenant_id = $1 and session_id = $2 and status = 'rolled_back'";
        let rows = self.conn.rows(SQL, &[self.tenant.into(), session.into()]).await?;
        rows.iter().map(|row| row.id("turn_id")).collect()
    }

    /// The calls that assistant messages made, in order. SQLite keeps to the order
    /// of a `cross join`: from the message to its turn's calls.
    pub(super) async fn calls_of_messages(
        &mut self,
        session: SessionId,
        messages: &[MessageId],
    ) -> Result<Vec<CallRecord>, StoreError> {
        const SQLITE: &str = "
            select c.call_id, c.turn_id, c.message_id, c.batch_index, c.position, c.name, c.provider_id,
                c.arguments_raw, c.arguments, c.edited, c.effect, c.execution, c.segment, c.parallel, c.status,
                c.exit_code,
                c.created_at, c.started_at, c.finished_at
            from message m
            cross join tool_call c
            where c.tenant_id = m.tenant_id and c.turn_id = m.turn_id and c.message_id = m.message_id
                and m.tenant_id = $1 and +m.session_id = $2
                and m.message_id in (select value from json_each($3)) order by c.position";
        const POSTGRES: &str = "
            select c.call_id, c.turn_id, c.message_id, c.batch_index, c.position, c.name, c.provider_id,
                c.arguments_raw, c.arguments, c.edited, c.effect, c.execution, c.segment, c.parallel, c.status,
                c.exit_code,
                c.created_at, c.started_at, c.finished_at
            from message m
            cross join tool_call c
            where c.tenant_id = m.tenant_id and c.turn_id = m.turn_id and c.message_id = m.message_id
                and m.tenant_id = $1 and m.session_id = $2
                and m.message_id in (select json_array_elements_text($3::json)) order by c.position";
        let rows = self.by_ids([SQLITE, POSTGRES], session, messages).await?;
        rows.iter().map(call_record).collect()
    }

    /// Calls by id, each with its result where it has one.
    pub async fn calls_with_results(
        &mut self,
        session: SessionId,
        ids: &[CallId],
    ) -> Result<Vec<(CallRecord, Option<String>)>, StoreError> {
        const SQLITE: &str = "
            select c.call_id, c.turn_id, c.message_id, c.batch_index, c.position, c.name, c.provider_id,
                c.arguments_raw, c.arguments, c.edited, c.effect, c.execution, c.segment, c.parallel, c.status,
                c.exit_code,
                c.created_at, c.started_at, c.finished_at, m.content
            from tool_call c
            left join message m on m.tenant_id = c.tenant_id and m.session_id = c.session_id
                and m.position = c.position
            where c.tenant_id = $1 and +c.session_id = $2 and c.call_id in (select value from json_each($3))";
        const POSTGRES: &str = "
            select c.call_id, c.turn_id, c.message_id, c.batch_index, c.position, c.name, c.provider_id,
                c.arguments_raw, c.arguments, c.edited, c.effect, c.execution, c.segment, c.parallel, c.status,
                c.exit_code,
                c.created_at, c.started_at, c.finished_at, m.content
            from tool_call c
            left join message m on m.tenant_id = c.tenant_id and m.session_id = c.session_id
                and m.position = c.position
            where c.tenant_id = $1 and c.session_id = $2 and c.call_id in (select json_array_elements_text($3::json))";
        let rows = self.by_ids([SQLITE, POSTGRES], session, ids).await?;
        let nested = match rows.len() < ids.len() {
            true => self.nested_calls_by_id(session, ids).await?,
            false => Vec::new(),
        };
        let found = |row: &Row| {
            let parts: Option<Vec<crate::model::message::Part>> = row.opt_json("content")?;
            let result = parts.map(|parts| crate::model::message::text_of(&parts));
            Ok((call_record(row)?, result))
        };
        let own = rows.iter().map(found);
        let nested = nested.into_iter().map(|call| Ok((call.clone(), call.nested_result())));
        own.chain(nested).collect()
    }
}

pub(super) fn message_record(row: &Row) -> Result<MessageRecord, StoreError> {
    Ok(MessageRecord {
        position: row.int("position")?,
        message_id: row.id("message_id")?,
        turn_id: row.id("turn_id")?,
        role: named(&row.text("role")?)?,
        content: row.json("content")?,
        reasoning: row.opt_text("reasoning")?,
        finish_reason: row.opt_text("finish_reason")?.map(|name| named(&name)).transpose()?,
        call_id: row.opt_id("call_id")?,
        steered: row.int("steered")? != 0,
        external_id: row.opt_text("external_id")?,
        created_at: row.timestamp("created_at")?,
    })
}

pub(super) fn call_record(row: &Row) -> Result<CallRecord, StoreError> {
    let small = |column: &str| {
        let number = row.int(column)?;
        u32::try_from(number).map_err(|_| StoreError::corrupt(format!("column `{column}`: {number}")))
    };
    Ok(CallRecord {
        call_id: row.id("call_id")?,
        turn_id: row.id("turn_id")?,
        message_id: row.id("message_id")?,
        batch_index: small("batch_index")?,
        position: row.int("position")?,
        name: row.text("name")?,
        provider_id: row.text("provider_id")?,
        arguments_raw: row.text("arguments_raw")?,
        arguments: row.json("arguments")?,
        edited: row.opt_json("edited")?,
        effect: named(&row.text("effect")?)?,
        execution: named(&row.text("execution")?)?,
        segment: small("segment")?,
        parallel: row.int("parallel")? != 0,
        status: named(&row.text("status")?)?,
        exit_code: row.opt_int("exit_code")?,
        created_at: row.timestamp("created_at")?,
        started_at: row.opt_timestamp("started_at")?,
        finished_at: row.opt_timestamp("finished_at")?,
        nested: None,
    })
}

/// The wire name of a plain enum value, for a status column.
pub(super) fn wire_name<T: serde::Serialize>(value: &T) -> Result<Arg<'static>, StoreError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => Ok(Arg::Owned(name)),
        _ => Err(StoreError::bug("a status without a name")),
    }
}
fn read<T>(rows: &[Row], one: fn(&Row) -> Result<T, StoreError>) -> Result<Vec<T>, StoreError> {
    rows.iter().map(one).collect()
}
