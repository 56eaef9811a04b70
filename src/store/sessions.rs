//! Session rows. Whoever appends events locks the session's row first, so that
//! commit order is the order of event numbers.

use super::notices::{Change, Notice};
use super::scope::Rows;
use super::{Arg, Kind, News, Row, StoreError};
use crate::base::Timestamp;
use crate::model::budget::SessionBudget;
use crate::model::client_tool::ClientTool;
use crate::model::id::SessionId;
use crate::model::record::{SessionRecord, Writes};
use crate::model::sampling::SamplingChanges;
use crate::model::session::{Metadata, Parent, RequiredAction, Session, SessionStatus};

/// The columns a client may set, already checked.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSession {
    pub record: SessionRecord,
    pub external_id: Option<String>,
    pub title: Option<String>,
    pub metadata: Metadata,
    pub parent: Option<Parent>,
    pub created_at: Timestamp,
}

/// A change of a session; `None` leaves a column as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPatch {
    pub title: Option<Option<String>>,
    pub external_id: Option<Option<String>>,
    pub model: Option<Option<String>>,
    pub instructions: Option<Option<String>>,
    pub preset: Option<String>,
    pub toolsets: Option<crate::model::session::ToolsetSelection>,
    pub approvals: Option<crate::model::session::ApprovalPolicy>,
    pub sampling: SamplingChanges,
    pub tools: Option<Vec<ClientTool>>,
    /// The whole of it.
    pub budget: Option<SessionBudget>,
    pub metadata: Option<Metadata>,
}

impl Rows<'_> {
    /// Stores a session with `head_seq` 0; its first event follows in the same
    /// transaction.
    pub async fn add_session(&mut self, new: &NewSession) -> Result<(), StoreError> {
        self.insert_session(new, &new.record).await
    }

    /// Stores a session as its first events leave it: `record` is the state of
    /// `new` behind them.
    pub(super) async fn insert_session(&mut self, new: &NewSession, record: &SessionRecord) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into session (tenant_id, session_id, user_id, external_id, title, model, instructions, preset,
                toolsets, environment, approvals, metadata, status, head_seq, next_position, usage, todo, cwd,
                created_at, updated_at, sampling, parent_session_id, parent_message_id, tools, lineage,
                root_session_id, delegated_by, budget)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $26, $27, $14, $15, $16, $17, $17, $18,
                $19, $20, $21, $22, $23, $24, $25)";
        let lineage = record.lineage.as_ref();
        let args = [
            self.tenant.into(),
            record.session_id.into(),
            Arg::from(&record.user_id),
            Arg::from(&new.external_id),
            Arg::from(&new.title),
            Arg::from(&record.model),
            Arg::from(&record.instructions),
            Arg::from(&record.preset),
            Arg::json(&record.toolsets)?,
            Arg::json(&record.environment)?,
            Arg::json(&record.approvals)?,
            Arg::json(&new.metadata)?,
            Arg::from(record.status.name()),
            Arg::json(&record.usage)?,
            Arg::from(&record.todo),
            Arg::from(&record.cwd),
            new.created_at.into(),
            Arg::json(&record.sampling)?,
            new.parent.map(|parent| parent.session_id).into(),
            new.parent.and_then(|parent| parent.message_id).into(),
            Arg::json(&record.tools)?,
            Arg::opt_json(record.lineage.as_ref())?,
            lineage
                .and_then(|lineage| lineage.root())
                .map(|root| root.session_id)
                .into(),
            lineage.map(|lineage| lineage.tool_call_id).into(),
            Arg::json(&record.budget)?,
            record.head_seq.into(),
            record.next_position.into(),
        ];
        self.conn.later(SQL, &args).await?;
        match record.lineage {
            // It is found by its root.
            Some(_) => Ok(()),
            None => self.index_title(&new.record, new.title.as_deref()).await,
        }
    }

    /// Writes the state of a session that is there, or of one that is new.
    pub(super) async fn keep_session(
        &mut self,
        session: &SessionRecord,
        new: Option<&NewSession>,
        writes: &Writes,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        match new {
            Some(new) => self.insert_session(new, session).await,
            None => self.write_session(session, writes, at).await,
        }
    }

    /// Stores a session together with its first events and its past; answers what
    /// clients see of it. A name that is taken shows as `Unique`.
    pub async fn found(&mut self, new: NewSession, writes: &Writes) -> Result<Session, StoreError> {
        let mut record = new.record.clone();
        Box::pin(self.carry_out(&mut record, writes, new.created_at, Some(&new))).await?;
        Ok(new_view(new, record))
    }

    /// Locks a session for this transaction and reads its state. Absent,
    /// foreign and deleted sessions are `None`.
    pub async fn lock_session(&mut self, id: SessionId) -> Result<Option<SessionRecord>, StoreError> {
        let locked = self.lock_session_even_deleted(id).await?;
        Ok(locked.filter(|session| session.deleted_at.is_none()))
    }

    /// As [`Rows::lock_session`], but a deleted session counts: its running turn
    /// still has to end.
    pub async fn lock_session_even_deleted(&mut self, id: SessionId) -> Result<Option<SessionRecord>, StoreError> {
        // On Postgres the lock is the row's, and who waited for it reads the row
        // as it is then. On SQLite the writer is alone.
        const SQLITE: &str = "
            select * from session where tenant_id = $1 and session_id = $2 and user_id = coalesce($3, user_id)";
        const POSTGRES: &str = "
            select * from session where tenant_id = $1 and session_id = $2 and user_id = coalesce($3, user_id)
            for no key update";
        let sql = match self.conn.dialect() {
            Kind::Sqlite => SQLITE,
            Kind::Postgres => POSTGRES,
        };
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let row = self.conn.row(sql, &args).await?;
        row.map(|row| self.record(&row)).transpose()
    }

    /// Reads a session's state without locking it.
    pub async fn session_record(&mut self, id: SessionId) -> Result<Option<SessionRecord>, StoreError> {
        let found = self.session_record_even_deleted(id).await?;
        Ok(found.filter(|session| session.deleted_at.is_none()))
    }

    /// As [`Rows::session_record`], but a deleted session counts.
    pub async fn session_record_even_deleted(&mut self, id: SessionId) -> Result<Option<SessionRecord>, StoreError> {
        const SQL: &str = "
            select * from session where tenant_id = $1 and session_id = $2 and user_id = coalesce($3, user_id)";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| self.record(&row)).transpose()
    }

    /// The number of a session's newest event; absent, foreign and deleted
    /// sessions are `None`.
    pub async fn head_seq(&mut self, id: SessionId) -> Result<Option<i64>, StoreError> {
        const SQL: &str = "
            select head_seq from session
            where tenant_id = $1 and session_id = $2 and user_id = coalesce($3, user_id) and deleted_at is null";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| row.int("head_seq")).transpose()
    }

    /// Writes back what the lock's holder changed. What is long is only written
    /// when `writes` has it.
    pub(super) async fn write_session(
        &mut self,
        session: &SessionRecord,
        writes: &Writes,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        const SQL: &str = "
            update session set status = $3, head_seq = $4, next_position = $5, active_turn_id = $6, usage = $7,
                todo = $8, cwd = $9, updated_at = $10, node_id = $11, seen_files = coalesce($12, seen_files),
                memory_block = coalesce($13, memory_block), context_block = coalesce($14, context_block)
            where tenant_id = $1 and session_id = $2";
        let args = [
            self.tenant.into(),
            session.session_id.into(),
            Arg::from(session.status.name()),
            session.head_seq.into(),
            session.next_position.into(),
            session.active_turn_id.into(),
            Arg::json(&session.usage)?,
            Arg::from(&session.todo),
            Arg::from(&session.cwd),
            at.into(),
            session.node_id.into(),
            Arg::from(&writes.seen_files),
            Arg::from(&writes.memory_block),
            Arg::from(&writes.context_block),
        ];
        self.conn.later(SQL, &args).await
    }

    /// Changes what a client may change; call under the lock. What changes in
    /// parts stands in the record as it is to be.
    pub async fn patch_session(&mut self, session: &SessionRecord, patch: &SessionPatch) -> Result<(), StoreError> {
        const SQL: &str = "
            update session set
                title = case when $3 = 1 then $4 else title end,
                external_id = case when $5 = 1 then $6 else external_id end,
                model = case when $7 = 1 then $8 else model end,
                instructions = case when $9 = 1 then $10 else instructions end,
                preset = coalesce($11, preset),
                toolsets = coalesce($12, toolsets),
                approvals = coalesce($13, approvals),
                metadata = coalesce($14, metadata),
                sampling = $15,
                tools = coalesce($16, tools),
                budget = coalesce($17, budget)
            where tenant_id = $1 and session_id = $2";
        fn column(change: &Option<Option<String>>) -> [Arg<'_>; 2] {
            let text = change.as_ref().and_then(Option::as_deref);
            [Arg::Int(i64::from(change.is_some())), Arg::OptText(text)]
        }
        let [title, title_to] = column(&patch.title);
        let [external, external_to] = column(&patch.external_id);
        let [model, model_to] = column(&patch.model);
        let [instructions, instructions_to] = column(&patch.instructions);
        let args = [
            self.tenant.into(),
            session.session_id.into(),
            title,
            title_to,
            external,
            external_to,
            model,
            model_to,
            instructions,
            instructions_to,
            Arg::from(&patch.preset),
            Arg::opt_json(patch.toolsets.as_ref())?,
            Arg::opt_json(patch.approvals.as_ref())?,
            Arg::opt_json(patch.metadata.as_ref())?,
            Arg::json(&session.sampling)?,
            Arg::opt_json(patch.tools.as_ref())?,
            Arg::opt_json(patch.budget.as_ref())?,
        ];
        self.conn.execute(SQL, &args).await?;
        match &patch.title {
            Some(title) => self.index_title(session, title.as_deref()).await,
            None => Ok(()),
        }
    }

    /// Puts a session away, or takes it back; call under the lock.
    pub async fn archive_session(&mut self, id: SessionId, at: Option<Timestamp>) -> Result<(), StoreError> {
        const SQL: &str = "update session set archived_at = $3 where tenant_id = $1 and session_id = $2";
        let args = [self.tenant.into(), id.into(), at.into()];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// Hides a session at once; the rows go with [`Rows::purge_session`].
    pub async fn hide_session(&mut self, id: SessionId, at: Timestamp) -> Result<(), StoreError> {
        const SQL: &str = "
            update session set deleted_at = $3 where tenant_id = $1 and session_id = $2 returning user_id";
        let args = [self.tenant.into(), id.into(), at.into()];
        if let Some(row) = self.conn.row(SQL, &args).await? {
            self.conn.notify(Notice {
                tenant: self.tenant,
                session: id,
                user: row.text("user_id")?,
                change: Change::Deleted,
            });
        }
        self.conn.ring(id, News::Other);
        Ok(())
    }

    /// Removes everything of a deleted session but what its model calls cost and
    /// what the audit trail tells of it.
    pub async fn purge_session(&mut self, id: SessionId) -> Result<(), StoreError> {
        const SQL: [&str; 15] = [
            "delete from usage_sum where tenant_id = $1 and (subject = $2 or subject in (
                select turn_id from turn where tenant_id = $1 and session_id = $2))",
            "delete from event where tenant_id = $1 and session_id = $2",
            "delete from question where tenant_id = $1 and session_id = $2",
            "delete from background where tenant_id = $1 and session_id = $2",
            "delete from approval where tenant_id = $1 and session_id = $2",
            "delete from grant_use where tenant_id = $1 and session_id = $2",
            "delete from standing_grant where tenant_id = $1 and session_id = $2",
            "delete from tool_call where tenant_id = $1 and session_id = $2",
            "delete from artifact where tenant_id = $1 and session_id = $2",
            "delete from nested_call where tenant_id = $1 and session_id = $2",
            "delete from message where tenant_id = $1 and session_id = $2",
            "delete from search_entry where tenant_id = $1 and session_id = $2",
            // What was answered to requests tells of it too.
            "delete from idempotency where tenant_id = $1 and answer like '%' || $2 || '%'",
            "delete from turn where tenant_id = $1 and session_id = $2",
            "delete from session where tenant_id = $1 and session_id = $2",
        ];
        for sql in SQL {
            self.conn.execute(sql, &[self.tenant.into(), id.into()]).await?;
        }
        Ok(())
    }

    /// One session as clients see it.
    pub async fn session(&mut self, id: SessionId) -> Result<Option<Session>, StoreError> {
        const SQL: &str = "
            select session_id, external_id, user_id, title, model, instructions, preset, toolsets, environment,
                approvals, sampling, tools, budget, metadata, lineage, parent_session_id, parent_message_id, archived_at,
                status, head_seq, active_turn_id, usage, created_at, updated_at
            from session
            where tenant_id = $1 and session_id = $2 and user_id = coalesce($3, user_id) and deleted_at is null";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let Some(row) = self.conn.row(SQL, &args).await? else {
            return Ok(None);
        };
        let actions = self.required_actions(id, id).await?;
        let actions = actions.into_iter().map(|(_, action)| action).collect();
        session_view(&row, actions).map(Some)
    }

    /// Whether a session of that user other than `except` has this external id: a
    /// name is its user's own, so that nobody learns what others call theirs.
    pub async fn external_id_is_taken(
        &mut self,
        user: &str,
        name: &str,
        except: Option<SessionId>,
    ) -> Result<bool, StoreError> {
        const SQL: &str = "
            select session_id from session
            where tenant_id = $1 and external_id = $2 and user_id = $4 and deleted_at is null
                and session_id <> coalesce($3, '')";
        let args = [self.tenant.into(), Arg::from(name), except.into(), Arg::from(user)];
        Ok(self.conn.row(SQL, &args).await?.is_some())
    }

    pub(super) fn record(&self, row: &Row) -> Result<SessionRecord, StoreError> {
        Ok(SessionRecord {
            tenant_id: self.tenant,
            session_id: row.id("session_id")?,
            user_id: row.text("user_id")?,
            model: row.opt_text("model")?,
            instructions: row.opt_text("instructions")?,
            preset: row.text("preset")?,
            toolsets: row.json("toolsets")?,
            environment: row.json("environment")?,
            approvals: row.json("approvals")?,
            sampling: row.json("sampling")?,
            tools: row.json("tools")?,
            budget: row.json("budget")?,
            status: named(&row.text("status")?)?,
            head_seq: row.int("head_seq")?,
            next_position: row.int("next_position")?,
            active_turn_id: row.opt_id("active_turn_id")?,
            usage: row.json("usage")?,
            todo: row.text("todo")?,
            seen_files: row.text("seen_files")?,
            memory_block: row.opt_text("memory_block")?,
            context_block: row.opt_text("context_block")?,
            cwd: row.opt_text("cwd")?,
            node_id: row.opt_id("node_id")?,
            deleted_at: row.opt_timestamp("deleted_at")?,
            lineage: row.opt_json("lineage")?.map(Box::new),
        })
    }
}

pub(super) fn session_view(row: &Row, required_actions: Vec<RequiredAction>) -> Result<Session, StoreError> {
    let status: SessionStatus = named(&row.text("status")?)?;
    Ok(Session {
        id: row.id("session_id")?,
        external_id: row.opt_text("external_id")?,
        user_id: row.text("user_id")?,
        title: row.opt_text("title")?,
        model: row.opt_text("model")?,
        instructions: row.opt_text("instructions")?,
        preset: row.text("preset")?,
        toolsets: row.json("toolsets")?,
        environment: row.json("environment")?,
        approvals: row.json("approvals")?,
        sampling: row.json("sampling")?,
        tools: row.json("tools")?,
        budget: row.json("budget")?,
        metadata: row.json("metadata")?,
        lineage: row.opt_json("lineage")?,
        parent: parent(row)?,
        archived_at: row.opt_timestamp("archived_at")?,
        status,
        required_actions,
        head_seq: row.int("head_seq")?,
        active_turn_id: row.opt_id("active_turn_id")?,
        usage: row.json("usage")?,
        created_at: row.timestamp("created_at")?,
        updated_at: row.timestamp("updated_at")?,
    })
}

/// As [`session_view`], of one that was stored just now.
fn new_view(new: NewSession, record: SessionRecord) -> Session {
    Session {
        id: record.session_id,
        external_id: new.external_id,
        user_id: record.user_id,
        title: new.title,
        model: record.model,
        instructions: record.instructions,
        preset: record.preset,
        toolsets: record.toolsets,
        environment: record.environment,
        approvals: record.approvals,
        sampling: *record.sampling,
        tools: record.tools,
        budget: record.budget,
        metadata: new.metadata,
        lineage: record.lineage.map(|lineage| *lineage),
        parent: new.parent,
        archived_at: None,
        status: record.status,
        required_actions: Vec::new(),
        head_seq: record.head_seq,
        active_turn_id: record.active_turn_id,
        usage: record.usage,
        created_at: new.created_at,
        updated_at: new.created_at,
    }
}

fn parent(row: &Row) -> Result<Option<Parent>, StoreError> {
    let Some(session_id) = row.opt_id("parent_session_id")? else {
        return Ok(None);
    };
    let message_id = row.opt_id("parent_message_id")?;
    Ok(Some(Parent { session_id, message_id }))
}

/// A value of an enum by its wire name, as status columns hold it.
pub(super) fn named<T: serde::de::DeserializeOwned>(name: &str) -> Result<T, StoreError> {
    serde_json::from_value(serde_json::Value::String(name.to_owned()))
        .map_err(|_| StoreError::corrupt(format!("unknown name `{name}` in a status column")))
}
