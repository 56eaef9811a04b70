//! Message and tool-call rows: the transcript. Places are dense; the place of a
//! call's result is reserved when the call is stored.

use super::scope::Rows;
use super::sessions::named;
use super::slice::{self, Slice};
use super::{Arg, Row, StoreError};
use crate::model::id::{CallId, SessionId, TurnId};
use crate::model::message::{Message, Role};
use crate::model::record::{CallRecord, MessageRecord, SessionRecord};

impl Rows<'_> {
    pub(super) async fn add_message(
        &mut self,
        session: &SessionRecord,
        message: &MessageRecord,
    ) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into message (tenant_id, session_id, position, message_id, turn_id, role, content, reasoning,
                finish_reason, call_id, created_at, user_id, steered)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let args = [
            self.tenant.into(),
            session.session_id.into(),
            message.position.into(),
            message.message_id.into(),
            message.turn_id.into(),
            wire_name(&message.role)?,
            Arg::json(&message.content)?,
            Arg::from(&message.reasoning),
            match &message.finish_reason {
                Some(reason) => wire_name(reason)?,
                None => Arg::OptText(None),
            },
            message.call_id.into(),
            message.created_at.into(),
            Arg::from(&session.user_id),
            message.steered.into(),
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    pub(super) async fn add_call(&mut self, session: &SessionRecord, call: &CallRecord) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into tool_call (tenant_id, session_id, turn_id, call_id, message_id, batch_index, position, name,
                provider_id, arguments_raw, arguments, edited, effect, segment, parallel, status, exit_code,
                created_at, started_at, finished_at, user_id)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";
        let args = [
            self.tenant.into(),
            session.session_id.into(),
            call.turn_id.into(),
            call.call_id.into(),
            call.message_id.into(),
            call.batch_index.into(),
            call.position.into(),
            Arg::from(&call.name),
            Arg::from(&call.provider_id),
            Arg::from(&call.arguments_raw),
            Arg::json(&call.arguments)?,
            Arg::opt_json(call.edited.as_ref())?,
            wire_name(&call.effect)?,
            call.segment.into(),
            call.parallel.into(),
            Arg::from(call.status.name()),
            call.exit_code.into(),
            call.created_at.into(),
            call.started_at.into(),
            call.finished_at.into(),
            Arg::from(&session.user_id),
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    pub(super) async fn write_call(&mut self, call: &CallRecord) -> Result<(), StoreError> {
        const SQL: &str = "
            update tool_call set status = $3, exit_code = $4, started_at = $5, finished_at = $6, edited = $7,
                effect = $8
            where tenant_id = $1 and call_id = $2";
        let args = [
            self.tenant.into(),
            call.call_id.into(),
            Arg::from(call.status.name()),
            call.exit_code.into(),
            call.started_at.into(),
            call.finished_at.into(),
            Arg::opt_json(call.edited.as_ref())?,
            wire_name(&call.effect)?,
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// The calls of a turn's newest answer that made any, in order.
    pub async fn batch(&mut self, turn: TurnId) -> Result<Vec<CallRecord>, StoreError> {
        const SQL: &str = "
            select call_id, turn_id, message_id, batch_index, position, name, provider_id, arguments_raw, arguments,
                edited, effect, segment, parallel, status, exit_code, created_at, started_at, finished_at
            from tool_call
            where tenant_id = $1 and turn_id = $2 and message_id = (
                select message_id from tool_call where tenant_id = $1 and turn_id = $2
                order by position desc limit 1)
            order by position";
        let rows = self.conn.rows(SQL, &[self.tenant.into(), turn.into()]).await?;
        rows.iter().map(call_record).collect()
    }

    /// The transcript as the model sees it: messages by place, without those of
    /// turns that were rolled back; and all calls.
    pub async fn transcript(
        &mut self,
        session: SessionId,
    ) -> Result<(Vec<MessageRecord>, Vec<CallRecord>), StoreError> {
        const MESSAGES: &str = "
            select position, message_id, turn_id, role, content, reasoning, finish_reason, call_id, created_at, steered
            from message
            where tenant_id = $1 and session_id = $2 and turn_id not in (
                select turn_id from turn
                where tenant_id = $1 and session_id = $2 and status = 'rolled_back')
            order by position";
        const CALLS: &str = "
            select call_id, turn_id, message_id, batch_index, position, name, provider_id, arguments_raw, arguments,
                edited, effect, segment, parallel, status, exit_code, created_at, started_at, finished_at
            from tool_call where tenant_id = $1 and session_id = $2 order by position";
        let args = [self.tenant.into(), session.into()];
        let messages = self.conn.rows(MESSAGES, &args).await?;
        let calls = self.conn.rows(CALLS, &args).await?;
        Ok((
            messages.iter().map(message_record).collect::<Result<_, _>>()?,
            calls.iter().map(call_record).collect::<Result<_, _>>()?,
        ))
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
                edited, effect, segment, parallel, status, exit_code, created_at, started_at, finished_at
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
            select position, message_id, turn_id, role, content, reasoning, finish_reason, call_id, created_at, steered
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

    /// The calls that an assistant message made, in order; other messages make
    /// none.
    pub(super) async fn calls_of_message(
        &mut self,
        session: SessionId,
        message: &MessageRecord,
    ) -> Result<Vec<CallRecord>, StoreError> {
        const SQL: &str = "
            select call_id, turn_id, message_id, batch_index, position, name, provider_id, arguments_raw, arguments,
                edited, effect, segment, parallel, status, exit_code, created_at, started_at, finished_at
            from tool_call
            where tenant_id = $1 and session_id = $2 and position > $3 and message_id = $4 order by position";
        if message.role != Role::Assistant {
            return Ok(Vec::new());
        }
        let args = [
            self.tenant.into(),
            session.into(),
            message.position.into(),
            message.message_id.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(call_record).collect()
    }

    /// Calls by id, each with its result where it has one.
    pub async fn calls_with_results(
        &mut self,
        session: SessionId,
        ids: &[CallId],
    ) -> Result<Vec<(CallRecord, Option<String>)>, StoreError> {
        const SQL: &str = "
            select c.call_id, c.turn_id, c.message_id, c.batch_index, c.position, c.name, c.provider_id,
                c.arguments_raw, c.arguments, c.edited, c.effect, c.segment, c.parallel, c.status, c.exit_code,
                c.created_at, c.started_at, c.finished_at, m.content
            from tool_call c
            left join message m on m.tenant_id = c.tenant_id and m.session_id = c.session_id
                and m.position = c.position
            where c.tenant_id = $1 and c.session_id = $2 and c.call_id = $3";
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let args = [self.tenant.into(), session.into(), (*id).into()];
            let Some(row) = self.conn.row(SQL, &args).await? else {
                continue;
            };
            let parts: Option<Vec<crate::model::message::Part>> = row.opt_json("content")?;
            found.push((
                call_record(&row)?,
                parts.map(|parts| crate::model::message::text_of(&parts)),
            ));
        }
        Ok(found)
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
        segment: small("segment")?,
        parallel: row.int("parallel")? != 0,
        status: named(&row.text("status")?)?,
        exit_code: row.opt_int("exit_code")?,
        created_at: row.timestamp("created_at")?,
        started_at: row.opt_timestamp("started_at")?,
        finished_at: row.opt_timestamp("finished_at")?,
    })
}

/// The wire name of a plain enum value, for a status column.
pub(super) fn wire_name<T: serde::Serialize>(value: &T) -> Result<Arg<'static>, StoreError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => Ok(Arg::Owned(name)),
        _ => Err(StoreError::bug("a status without a name")),
    }
}
