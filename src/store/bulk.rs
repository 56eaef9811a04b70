//! Many rows at once. On Postgres rows and ids travel as one JSON parameter, as a
//! statement costs more there than a row; columns that hold JSON are texts within
//! it. On SQLite a statement is a call, and rows are bound one by one.

use serde_json::{Value, json};

use super::scope::Rows;
use super::{Arg, Conn, Kind, Row, StoreError};
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
                reasoning, finish_reason, call_id, created_at, steered, external_id)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        const POSTGRES: &str = "
            insert into message (tenant_id, session_id, user_id, position, message_id, turn_id, role, content,
                reasoning, finish_reason, call_id, created_at, steered, external_id)
            select $1, $2, $3, r.p, r.m, r.t, r.r, r.c, r.g, r.f, r.k, r.a, r.s, r.x
            from json_to_recordset($4::json)
                as r(p bigint, m text, t text, r text, c text, g text, f text, k text, a bigint, s bigint, x text)";
        let row = |message: &MessageRecord| {
            Ok(
                json!({"p": message.position, "m": message.message_id, "t": message.turn_id, "r": message.role,
                "c": text(&message.content)?, "g": message.reasoning, "f": message.finish_reason,
                "k": message.call_id, "a": message.created_at.0, "s": i64::from(message.steered), "x": message.external_id}),
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
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
                $22)";
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
        let own = calls.iter().filter(|call| call.nested.is_none());
        let rows = own.map(row).collect::<Result<Vec<_>, StoreError>>()?;
        self.bulk([SQLITE, POSTGRES], session, &rows).await
    }

    /// Writes back what changes of calls.
    pub(super) async fn write_calls(
        &mut self,
        session: &SessionRecord,
        calls: &[CallRecord],
    ) -> Result<(), StoreError> {
        const SQLITE: &str = "
            update tool_call set status = $5, exit_code = $6, started_at = $7, finished_at = $8, edited = $9,
                effect = $10
            where tenant_id = $1 and +session_id = $2 and user_id = $3 and call_id = $4";
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
        let own = calls.iter().filter(|call| call.nested.is_none());
        let rows = own.map(row).collect::<Result<Vec<_>, StoreError>>()?;
        self.bulk([SQLITE, POSTGRES], session, &rows).await
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
    /// are no rows. SQLite's takes one row, its fields in their order from `$4` on.
    pub(super) async fn bulk(
        &mut self,
        [sqlite, postgres]: [&'static str; 2],
        session: &SessionRecord,
        rows: &[Value],
    ) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let whose = [
            self.tenant.into(),
            session.session_id.into(),
            Arg::from(&session.user_id),
        ];
        self.conn.bulk([sqlite, postgres], &whose, rows).await
    }
}

impl Conn {
    /// Rows behind arguments that all of them share: on Postgres one JSON
    /// parameter of one statement, on SQLite a call for each, since a call costs
    /// less there than to read JSON.
    pub(super) async fn bulk(
        &mut self,
        [sqlite, postgres]: [&'static str; 2],
        shared: &[Arg<'_>],
        rows: &[Value],
    ) -> Result<(), StoreError> {
        if self.dialect() == Kind::Postgres {
            let mut args = shared.to_vec();
            args.push(Arg::json(rows)?);
            return self.later(postgres, &args).await;
        }
        for row in rows {
            let mut args = shared.to_vec();
            for field in row.as_object().into_iter().flat_map(serde_json::Map::values) {
                args.push(column(field)?);
            }
            self.execute(sqlite, &args).await?;
        }
        Ok(())
    }
}

/// A field of a row: columns are texts and whole numbers.
fn column(field: &Value) -> Result<Arg<'_>, StoreError> {
    match field {
        Value::Null => Ok(Arg::OptText(None)),
        Value::String(text) => Ok(Arg::Text(text)),
        Value::Number(number) => number
            .as_i64()
            .map(Arg::Int)
            .ok_or_else(|| StoreError::bug("a row with a number that is none of a column")),
        _ => Err(StoreError::bug("a row with a field that is no column")),
    }
}

pub(super) fn text<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Database(std::sync::Arc::new(error)))
}
