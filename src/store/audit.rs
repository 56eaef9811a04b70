//! The audit trail as rows. They are written in the transaction of what they
//! tell, by whoever writes that, and never change; the database refuses it. Their
//! places in the chain come later and from elsewhere.

use serde_json::json;

use super::scope::{Rows, Scope};
use super::sessions::named;
use super::{Arg, Conn, Kind, Row, StoreError};
use crate::base::{Clock, Timestamp};
use crate::model::audit::export::Entry;
use crate::model::audit::{Actor, AuditAction, AuditEntry, Audited, Link};
use crate::model::id::{AuditId, CallId, SessionId, TenantId, TurnId};

/// Which entries are listed.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub action: Option<AuditAction>,
    pub actor: Option<String>,
    pub session: Option<SessionId>,
    pub turn: Option<TurnId>,
    pub call: Option<CallId>,
    /// At this instant or later.
    pub since: Option<Timestamp>,
    /// Before this instant.
    pub until: Option<Timestamp>,
}

/// An entry with its place in the chain, once it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Chained {
    pub entry: AuditEntry,
    pub link: Option<Link>,
}

impl Scope {
    /// The same rows, for what this user and key do.
    pub fn acting(mut self, actor: Actor) -> Self {
        self.actor = Some(actor);
        self
    }
}

impl Rows<'_> {
    /// Appends entries, with this transaction's actor where they name none.
    pub async fn audit(&mut self, entries: &[Audited], at: Timestamp) -> Result<(), StoreError> {
        let actor = self.actor.clone().unwrap_or_else(Actor::system);
        insert(self.conn, self.tenant, (&actor, &self.clock), entries, at).await
    }

    /// Entries, newest first, older than `before`.
    pub async fn audit_entries(
        &mut self,
        filter: &AuditFilter,
        before: Option<AuditId>,
        limit: u32,
    ) -> Result<Vec<Chained>, StoreError> {
        const SQL: &str = "
            select audit_id, at, action, actor, key_id, user_id, session_id, turn_id, call_id, approval_id, grant_id,
                target_key_id, tool, rules, verdict, decision, outcome, exit_code, fields, chain_seq, prev_hash, hash
            from audit_entry
            where tenant_id = $1 and user_id = coalesce($2, user_id) and audit_id < coalesce($3, 'aud_~')
                and action = coalesce($4, action) and actor = coalesce($5, actor)
                and ($6 = '' or session_id = $6) and ($7 = '' or turn_id = $7) and ($8 = '' or call_id = $8)
                and coalesce($9, at) <= at and at < coalesce($10, at + 1)
            order by audit_id desc limit $11";
        let id = |id: Option<String>| Arg::Owned(id.unwrap_or_default());
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            before.into(),
            Arg::from(filter.action.map(AuditAction::name)),
            Arg::from(&filter.actor),
            id(filter.session.map(|id| id.to_string())),
            id(filter.turn.map(|id| id.to_string())),
            id(filter.call.map(|id| id.to_string())),
            filter.since.into(),
            filter.until.into(),
            limit.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(chained).collect()
    }

    /// A part of an export: chained entries after the number `seq`, or, with
    /// `after`, those that are not chained up to there, in the order of their
    /// ids. Entries of users that this scope does not see are withheld.
    pub async fn audit_export(
        &mut self,
        seq: i64,
        after: Option<AuditId>,
        limit: u32,
    ) -> Result<Vec<(AuditId, Entry)>, StoreError> {
        const CHAIN: &str = "
            select audit_id, at, action, actor, key_id, user_id, session_id, turn_id, call_id, approval_id, grant_id,
                target_key_id, tool, rules, verdict, decision, outcome, exit_code, fields, chain_seq, prev_hash, hash
            from audit_entry where tenant_id = $1 and $2 < chain_seq order by chain_seq limit $3";
        const TAIL: &str = "
            select audit_id, at, action, actor, key_id, user_id, session_id, turn_id, call_id, approval_id, grant_id,
                target_key_id, tool, rules, verdict, decision, outcome, exit_code, fields, chain_seq, prev_hash, hash
            from audit_entry
            where tenant_id = $1 and (chain_seq is null or $2 < chain_seq) and $4 < audit_id
            order by audit_id limit $3";
        let mut args = vec![self.tenant.into(), seq.into(), limit.into()];
        let sql = match after {
            Some(after) => {
                args.push(after.into());
                TAIL
            }
            None => CHAIN,
        };
        let rows = self.conn.rows(sql, &args).await?;
        let seen = |entry: &AuditEntry| self.user.as_ref().is_none_or(|user| *user == entry.user_id);
        rows.iter()
            .map(|row| {
                let Chained { entry, link } = chained(row)?;
                let (id, shown) = (entry.id, seen(&entry));
                // What was chained while the export ran still belongs to its tail.
                let link = link.filter(|_| after.is_none());
                Ok((id, Entry::new(link, entry, shown)))
            })
            .collect()
    }
}

/// Appends entries in one statement, as rows of one JSON parameter.
pub(super) async fn insert(
    conn: &mut Conn,
    tenant_id: TenantId,
    (actor, clock): (&Actor, &Clock),
    entries: &[Audited],
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQLITE: &str = "
        insert into audit_entry (tenant_id, audit_id, at, action, actor, key_id, user_id, session_id, turn_id, call_id,
            approval_id, grant_id, target_key_id, tool, rules, verdict, decision, outcome, exit_code, fields)
        select $1, value ->> '$.id', $2, value ->> '$.action', value ->> '$.actor', value ->> '$.key',
            value ->> '$.owner', value ->> '$.session', value ->> '$.turn', value ->> '$.call', value ->> '$.approval',
            value ->> '$.granted', value ->> '$.target', value ->> '$.tool', value ->> '$.rules',
            value ->> '$.verdict', value ->> '$.decision', value ->> '$.outcome', value ->> '$.exit',
            value ->> '$.fields'
        from json_each($3)";
    const POSTGRES: &str = "
        insert into audit_entry (tenant_id, audit_id, at, action, actor, key_id, user_id, session_id, turn_id, call_id,
            approval_id, grant_id, target_key_id, tool, rules, verdict, decision, outcome, exit_code, fields)
        select $1, r.id, $2, r.action, r.actor, r.key, r.owner, r.session, r.turn, r.call, r.approval, r.granted,
            r.target, r.tool, r.rules, r.verdict, r.decision, r.outcome, r.exit, r.fields
        from json_to_recordset($3::json) as r(id text, action text, actor text, key text, owner text, session text,
            turn text, call text, approval text, granted text, target text, tool text, rules text, verdict text,
            decision text, outcome text, exit bigint, fields text)";
    if entries.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        let by = entry.actor.as_ref().unwrap_or(actor);
        let action = entry
            .action
            .ok_or_else(|| StoreError::bug("an audit entry without an action"))?;
        rows.push(json!({
            "id": AuditId::new(clock), "action": action, "actor": by.user, "key": by.key, "owner": entry.user_id,
            "session": entry.session_id, "turn": entry.turn_id, "call": entry.tool_call_id,
            "approval": entry.approval_id, "granted": entry.grant_id, "target": entry.target_key_id,
            "tool": entry.tool, "rules": json!(entry.rules).to_string(), "verdict": entry.verdict,
            "decision": entry.decision, "outcome": entry.outcome, "exit": entry.exit_code,
            "fields": json!(entry.fields).to_string(),
        }));
    }
    let sql = match conn.dialect() {
        Kind::Sqlite => SQLITE,
        Kind::Postgres => POSTGRES,
    };
    conn.later(sql, &[tenant_id.into(), at.into(), Arg::json(&rows)?])
        .await?;
    conn.note_audit();
    Ok(())
}

pub(super) fn chained(row: &Row) -> Result<Chained, StoreError> {
    let link = match row.opt_int("chain_seq")? {
        Some(seq) => Some(Link {
            seq,
            prev: row.text("prev_hash")?,
            hash: row.text("hash")?,
        }),
        None => None,
    };
    let entry = AuditEntry {
        id: row.id("audit_id")?,
        at: row.timestamp("at")?,
        action: named(&row.text("action")?)?,
        actor: row.text("actor")?,
        key_id: row.opt_id("key_id")?,
        user_id: row.text("user_id")?,
        session_id: row.opt_id("session_id")?,
        turn_id: row.opt_id("turn_id")?,
        tool_call_id: row.opt_id("call_id")?,
        approval_id: row.opt_id("approval_id")?,
        grant_id: row.opt_id("grant_id")?,
        target_key_id: row.opt_id("target_key_id")?,
        tool: row.opt_text("tool")?,
        rules: row.json("rules")?,
        verdict: row.opt_text("verdict")?,
        decision: row.opt_text("decision")?,
        outcome: row.opt_text("outcome")?,
        exit_code: row.opt_int("exit_code")?,
        fields: row.json("fields")?,
    };
    Ok(Chained { entry, link })
}
