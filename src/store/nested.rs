//! Calls that a program of another call makes: rows beside the transcript, each
//! with its result.

use serde_json::json;

use super::bulk::text;
use super::scope::Rows;
use super::sessions::named;
use super::{Row, StoreError};
use crate::model::call::{CallStatus, Effect, Execution};
use crate::model::id::{CallId, SessionId};
use crate::model::record::{CallRecord, Nested, SessionRecord};

impl Rows<'_> {
    /// Of new calls those that a program makes.
    pub(super) async fn add_nested_calls(
        &mut self,
        session: &SessionRecord,
        calls: &[CallRecord],
    ) -> Result<(), StoreError> {
        const SQLITE: &str = "
            insert into nested_call (tenant_id, session_id, user_id, turn_id, call_id, parent_call_id, message_id,
                batch_index, name, arguments, effect, status, result, created_at, started_at, finished_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
        const POSTGRES: &str = "
            insert into nested_call (tenant_id, session_id, user_id, turn_id, call_id, parent_call_id, message_id,
                batch_index, name, arguments, effect, status, result, created_at, started_at, finished_at)
            select $1, $2, $3, r.t, r.i, r.p, r.m, r.b, r.n, r.g, r.f, r.u, r.o, r.a, r.r, r.z
            from json_to_recordset($4::json)
                as r(t text, i text, p text, m text, b bigint, n text, g text, f text, u text, o text, a bigint,
                    r bigint, z bigint)";
        let row = |call: &CallRecord, nested: &Nested| {
            Ok(
                json!({"t": call.turn_id, "i": call.call_id, "p": nested.parent, "m": call.message_id,
                "b": call.batch_index, "n": call.name, "g": text(&call.arguments)?, "f": call.effect,
                "u": call.status.name(), "o": nested.result.as_deref(), "a": call.created_at.0,
                "r": call.started_at.map(|at| at.0), "z": call.finished_at.map(|at| at.0)}),
            )
        };
        let own = calls.iter().filter_map(|call| Some((call, call.nested.as_ref()?)));
        let rows = own
            .map(|(call, nested)| row(call, nested))
            .collect::<Result<Vec<_>, StoreError>>()?;
        self.bulk([SQLITE, POSTGRES], session, &rows).await
    }

    /// Writes back what changes of those.
    pub(super) async fn write_nested_calls(
        &mut self,
        session: &SessionRecord,
        calls: &[CallRecord],
    ) -> Result<(), StoreError> {
        const SQLITE: &str = "
            update nested_call set status = $5, exit_code = $6, started_at = $7, finished_at = $8, edited = $9,
                effect = $10, result = $11
            where tenant_id = $1 and +session_id = $2 and user_id = $3 and call_id = $4";
        const POSTGRES: &str = "
            update nested_call set status = r.u, exit_code = r.x, started_at = r.r, finished_at = r.z, edited = r.e,
                effect = r.f, result = r.o
            from json_to_recordset($4::json)
                as r(i text, u text, x bigint, r bigint, z bigint, e text, f text, o text)
            where tenant_id = $1 and session_id = $2 and user_id = $3 and call_id = r.i";
        let row = |call: &CallRecord, nested: &Nested| {
            Ok(json!({"i": call.call_id, "u": call.status.name(), "x": call.exit_code,
                "r": call.started_at.map(|at| at.0), "z": call.finished_at.map(|at| at.0),
                "e": call.edited.as_ref().map(text).transpose()?, "f": call.effect, "o": nested.result.as_deref()}))
        };
        let own = calls.iter().filter_map(|call| Some((call, call.nested.as_ref()?)));
        let rows = own
            .map(|(call, nested)| row(call, nested))
            .collect::<Result<Vec<_>, StoreError>>()?;
        self.bulk([SQLITE, POSTGRES], session, &rows).await
    }

    /// Behind a turn's calls those that their programs make, where one runs.
    pub(super) async fn with_nested(&mut self, mut calls: Vec<CallRecord>) -> Result<Vec<CallRecord>, StoreError> {
        let runs = |call: &&CallRecord| call.status == CallStatus::Running && call.effect == Effect::Write;
        let running: Vec<CallRecord> = calls.iter().filter(runs).cloned().collect();
        for parent in &running {
            calls.extend(self.nested_calls(parent).await?);
        }
        Ok(calls)
    }

    /// The calls that a call's program made, in their order.
    async fn nested_calls(&mut self, parent: &CallRecord) -> Result<Vec<CallRecord>, StoreError> {
        const SQL: &str = "
            select call_id, turn_id, parent_call_id, message_id, batch_index, name, arguments, edited, effect, status,
                exit_code, result, created_at, started_at, finished_at
            from nested_call where tenant_id = $1 and parent_call_id = $2 order by batch_index";
        let args = [self.tenant.into(), parent.call_id.into()];
        let rows = self.conn.rows(SQL, &args).await?;
        rows.iter().map(nested_record).collect()
    }

    pub(super) async fn nested_calls_by_id(
        &mut self,
        session: SessionId,
        ids: &[CallId],
    ) -> Result<Vec<CallRecord>, StoreError> {
        const SQLITE: &str = "
            select call_id, turn_id, parent_call_id, message_id, batch_index, name, arguments, edited, effect, status,
                exit_code, result, created_at, started_at, finished_at
            from nested_call
            where tenant_id = $1 and +session_id = $2 and call_id in (select value from json_each($3))";
        const POSTGRES: &str = "
            select call_id, turn_id, parent_call_id, message_id, batch_index, name, arguments, edited, effect, status,
                exit_code, result, created_at, started_at, finished_at
            from nested_call
            where tenant_id = $1 and session_id = $2 and call_id in (select json_array_elements_text($3::json))";
        let rows = self.by_ids([SQLITE, POSTGRES], session, ids).await?;
        rows.iter().map(nested_record).collect()
    }
}

fn nested_record(row: &Row) -> Result<CallRecord, StoreError> {
    let index = row.int("batch_index")?;
    Ok(CallRecord {
        call_id: row.id("call_id")?,
        turn_id: row.id("turn_id")?,
        message_id: row.id("message_id")?,
        batch_index: u32::try_from(index).map_err(|_| StoreError::corrupt(format!("column `batch_index`: {index}")))?,
        position: 0,
        name: row.text("name")?,
        provider_id: String::new(),
        arguments_raw: String::new(),
        arguments: row.json("arguments")?,
        edited: row.opt_json("edited")?,
        effect: named(&row.text("effect")?)?,
        execution: Execution::Server,
        segment: 0,
        parallel: false,
        status: named(&row.text("status")?)?,
        exit_code: row.opt_int("exit_code")?,
        created_at: row.timestamp("created_at")?,
        started_at: row.opt_timestamp("started_at")?,
        finished_at: row.opt_timestamp("finished_at")?,
        nested: Some(Nested {
            parent: row.id("parent_call_id")?,
            result: row.opt_text("result")?.map(Into::into),
        }),
    })
}
