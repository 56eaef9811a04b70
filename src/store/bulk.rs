//! Many rows in one statement: rows and ids travel as one JSON parameter, as on both
//! databases a statement costs more than a row. Columns that hold JSON are texts
//! within it.

use serde_json::{Value, json};

use super::scope::Rows;
use super::{Arg, Kind, Row, StoreError};
use crate::model::id::SessionId;
use crate::model::record::{CallRecord, MessageRecord, SessionRecord};

impl Rows<'_> {
    pub(super) async fn add_messages(
        &mut self,
        session: &SessionRecord,
        messages: &[MessageRecord],
    ) -> Result<(), StoreError> {
        const SQLITE: &str = "
            insert into message (tenant_id, session_id, user_id, position, message_id, turn_id, role, content,
                reasoning, finish_reason, call_id, created_at, steered)
            select $1, $2, $3, value ->> '$.p', value ->> '$.m', value ->> '$.t', value ->> '$.r', value ->> '$.c',
                value ->> '$.g', value ->> '$.f', value ->> '$.k', value ->> '$.a', value ->> '$.s'
            from json_each($4)";
        const POSTGRES: &str = "
            insert into message (tenant_id, session_id, user_id, position, message_id, turn_id, role, content,
                reasoning, finish_reason, call_id, created_at, steered)
            select $1, $2, $3, r.p, r.m, r.t, r.r, r.c, r.g, r.f, r.k, r.a, r.s
            from json_to_recordset($4::json)
                as r(p bigint, m text, t text, r text, c text, g text, f text, k text, a bigint, s bigint)";
        let row = |message: &MessageRecord| {
            Ok(
                json!({"p": message.position, "m": message.message_id, "t": message.turn_id, "r": message.role,
                "c": text(&message.content)?, "g": message.reasoning, "f": message.finish_reason,
                "k": message.call_id, "a": message.created_at.0, "s": i64::from(message.steered)}),
            )
        };
        let rows = messages.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?;
        self.bulk([SQLITE, POSTGRES], session, &rows).await
    }

    pub(super) async fn add_calls(&mut self, session: &SessionRecord, calls: &[CallRecord]) -> Result<(), StoreError> {
        const SQLITE: &str = "
            insert into tool_call (tenant_id, session_id, user_id, turn_id, call_id, message_id, batch_index, position,
                name, provider_id, arguments_raw, arguments, edited, effect, execution, segment, parallel, status,
                exit_code, created_at, started_at, finished_at)
            select $1, $2, $3, value ->> '$.t', value ->> '$.i', value ->> '$.m', value ->> '$.b', value ->> '$.p',
                value ->> '$.n', value ->> '$.o', value ->> '$.w', value ->> '$.g', value ->> '$.e', value ->> '$.f',
                value ->> '$.v', value ->> '$.s', value ->> '$.l', value ->> '$.u', value ->> '$.x', value ->> '$.a', value ->> '$.r',
                value ->> '$.z'
            from json_each($4)";
        const POSTGRES: &str = "
            insert into tool_call (tenant_id, session_id, user_id, turn_id, call_id, message_id, batch_index, position,
                name, provider_id, arguments_raw, arguments, edited, effect, execution, segment, parallel, status,
                exit_code, created_at, started_at, finished_at)
            select $1, $2, $3, r.t, r.i, r.m, r.b, r.p, r.n, r.o, r.w, r.g, r.e, r.f, r.v, r.s, r.l, r.u, r.x, r.a, r.r,
                r.z
            from json_to_recordset($4::json)
                as r(t text, i text, m text, b bigint, p bigint, n text, o text, w text, g text, e text, f text,
                    v text, s bigint, l bigint, u text, x bigint, a bigint, r bigint, z bigint)";
        let row = |call: &CallRecord| {
            Ok(
                json!({"t": call.turn_id, "i": call.call_id, "m": call.message_id, "b": call.batch_index,
                "p": call.position, "n": call.name, "o": call.provider_id, "w": call.arguments_raw,
                "g": text(&call.arguments)?, "e": call.edited.as_ref().map(text).transpose()?, "f": call.effect,
                "v": call.execution.name(), "s": call.segment, "l": i64::from(call.parallel), "u": call.status.name(), "x": call.exit_code,
                "a": call.created_at.0, "r": call.started_at.map(|at| at.0), "z": call.finished_at.map(|at| at.0)}),
            )
        };
        let rows = calls.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?;
        self.bulk([SQLITE, POSTGRES], session, &rows).await
    }

    /// Writes back what changes of calls.
    pub(super) async fn write_calls(
        &mut self,
        session: &SessionRecord,
        calls: &[CallRecord],
    ) -> Result<(), StoreError> {
        // SQLite would go through all calls of the session for each row, and has
        // no round trips to save.
        const SQLITE: &str = "
            update tool_call set status = $4 ->> '$.u', exit_code = $4 ->> '$.x', started_at = $4 ->> '$.r',
                finished_at = $4 ->> '$.z', edited = $4 ->> '$.e', effect = $4 ->> '$.f'
            where tenant_id = $1 and +session_id = $2 and user_id = $3 and call_id = $4 ->> '$.i'";
        const POSTGRES: &str = "
            update tool_call set status = r.u, exit_code = r.x, started_at = r.r, finished_at = r.z, edited = r.e,
                effect = r.f
            from json_to_recordset($4::json) as r(i text, u text, x bigint, r bigint, z bigint, e text, f text)
            where tenant_id = $1 and session_id = $2 and user_id = $3 and call_id = r.i";
        let row = |call: &CallRecord| {
            Ok(json!({"i": call.call_id, "u": call.status.name(), "x": call.exit_code,
                "r": call.started_at.map(|at| at.0), "z": call.finished_at.map(|at| at.0),
                "e": call.edited.as_ref().map(text).transpose()?, "f": call.effect}))
        };
        let rows = calls.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?;
        if self.conn.dialect() == Kind::Postgres {
            return self.bulk([SQLITE, POSTGRES], session, &rows).await;
        }
        for row in &rows {
            let args = [
                self.tenant.into(),
                session.session_id.into(),
                Arg::from(&session.user_id),
                Arg::json(row)?,
            ];
            self.conn.execute(SQLITE, &args).await?;
        }
        Ok(())
    }

    /// The rows of a session with these ids. SQLite's text says `+session_id`, so
    /// that it looks the ids up instead of going through the session.
    pub(super) async fn by_ids<K: crate::base::id::Kind>(
        &mut self,
        [sqlite, postgres]: [&'static str; 2],
        session: SessionId,
        ids: &[crate::base::Id<K>],
    ) -> Result<Vec<Row>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let sql = match self.conn.dialect() {
            Kind::Sqlite => sqlite,
            Kind::Postgres => postgres,
        };
        let args = [self.tenant.into(), session.into(), Arg::json(ids)?];
        self.conn.rows(sql, &args).await
    }

    /// The statement of this database over rows of one session; none where there
    /// are no rows.
    pub(super) async fn bulk(
        &mut self,
        [sqlite, postgres]: [&'static str; 2],
        session: &SessionRecord,
        rows: &[Value],
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let sql = match self.conn.dialect() {
            Kind::Sqlite => sqlite,
            Kind::Postgres => postgres,
        };
        let args = [
            self.tenant.into(),
            session.session_id.into(),
            Arg::from(&session.user_id),
            Arg::json(rows)?,
        ];
        self.conn.later(sql, &args).await
    }
}

fn text<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Database(std::sync::Arc::new(error)))
}
