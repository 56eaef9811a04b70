//! Standing permissions: made by a decision, revoked by a client, read under
//! the session's lock so that a revocation counts from the next call on.

use std::collections::BTreeMap;

use super::policies::{BODIES, body};
use super::scope::Rows;
use super::sessions::named;
use super::transcript::wire_name;
use super::{Arg, Kind, Row, StoreError};
use crate::base::Timestamp;
use crate::model::audit::{AuditAction, Audited};
use crate::model::grant::{Grant, GrantLimits, GrantUse};
use crate::model::id::{CallId, GrantId, SessionId};

const IN_FORCE: &str = "
    select grant_id, session_id, scope, tool, backend, keys, exact, approval_id, created_by, created_at,
        revoked_at, uses, last_used_at, arguments, paths, max_uses, expires_at
    from standing_grant
    where tenant_id = $1 and revoked_at is null and (expires_at is null or $4 < expires_at)
        and (max_uses is null or uses < max_uses) and (session_id = $2 or (session_id is null and user_id = $3))
    order by grant_id";

impl Rows<'_> {
    pub async fn add_grant(&mut self, user: &str, grant: &Grant) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into standing_grant (tenant_id, grant_id, user_id, session_id, scope, tool, backend, keys, exact,
                approval_id, created_by, created_at, revoked_at, uses, last_used_at, arguments, paths, max_uses,
                expires_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, null, 0, null, $13, $14, $15, $16)";
        let args = [
            self.tenant.into(),
            grant.id.into(),
            Arg::from(user),
            grant.session_id.into(),
            wire_name(&grant.scope)?,
            Arg::from(&grant.tool),
            Arg::from(&grant.backend),
            Arg::json(&grant.keys)?,
            Arg::from(&grant.exact),
            grant.approval_id.into(),
            Arg::from(&grant.created_by),
            grant.created_at.into(),
            Arg::json(&grant.limits.arguments)?,
            Arg::json(&grant.limits.paths)?,
            Arg::OptInt(grant.limits.max_uses.map(i64::from)),
            grant.limits.expires_at.into(),
        ];
        self.conn.later(SQL, &args).await?;
        let created = Audited {
            session_id: grant.session_id,
            approval_id: grant.approval_id,
            grant_id: Some(grant.id),
            tool: Some(grant.tool.clone()),
            rules: grant.keys.clone(),
            fields: grant.limits.names(),
            ..Audited::new(AuditAction::GrantCreated, user)
        };
        self.audit(&[created], grant.created_at).await
    }

    /// Counts the uses, unless one of the grants is not in force any more or has
    /// none left: then nothing is written, and what was decided by them has to be
    /// decided anew. Each grant stays locked until the transaction ends, so that
    /// those who use or revoke it follow one another.
    pub async fn use_grants(&mut self, user: &str, uses: &[GrantUse], at: Timestamp) -> Result<bool, StoreError> {
        let mut counts: BTreeMap<GrantId, i64> = BTreeMap::new();
        for used in uses {
            *counts.entry(used.grant_id).or_default() += 1;
        }
        // In the order of their ids: two who need the same ones do not deadlock.
        for (grant, count) in &counts {
            if !self.can_use(*grant, *count, at).await? {
                return Ok(false);
            }
        }
        for (grant, count) in counts {
            self.count_uses(grant, count, at).await?;
        }
        for used in uses {
            self.add_use(user, used).await?;
        }
        Ok(true)
    }

    async fn can_use(&mut self, id: GrantId, count: i64, at: Timestamp) -> Result<bool, StoreError> {
        // On Postgres others wait for this transaction before they touch the row.
        const SQLITE: &str = "
            select grant_id from standing_grant
            where tenant_id = $1 and grant_id = $2 and revoked_at is null
                and (max_uses is null or uses + $3 <= max_uses) and (expires_at is null or $4 < expires_at)";
        const POSTGRES: &str = "
            select grant_id from standing_grant
            where tenant_id = $1 and grant_id = $2 and revoked_at is null
                and (max_uses is null or uses + $3 <= max_uses) and (expires_at is null or $4 < expires_at)
            for update";
        let sql = match self.conn.dialect() {
            Kind::Sqlite => SQLITE,
            Kind::Postgres => POSTGRES,
        };
        let args = [self.tenant.into(), id.into(), count.into(), at.into()];
        Ok(self.conn.row(sql, &args).await?.is_some())
    }

    async fn count_uses(&mut self, id: GrantId, count: i64, at: Timestamp) -> Result<(), StoreError> {
        const SQL: &str = "
            update standing_grant set uses = uses + $3, last_used_at = $4
            where tenant_id = $1 and grant_id = $2 and revoked_at is null and (max_uses is null or uses + $3 <= max_uses)";
        let args = [self.tenant.into(), id.into(), count.into(), at.into()];
        match self.conn.execute(SQL, &args).await? {
            1 => Ok(()),
            _ => Err(StoreError::bug("a grant changed under its lock")),
        }
    }

    async fn add_use(&mut self, user: &str, used: &GrantUse) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into grant_use (tenant_id, grant_id, call_id, session_id, turn_id, user_id, tool, used_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8)
            on conflict (tenant_id, grant_id, call_id) do update set used_at = excluded.used_at";
        let args = [
            self.tenant.into(),
            used.grant_id.into(),
            used.tool_call_id.into(),
            used.session_id.into(),
            used.turn_id.into(),
            Arg::from(user),
            Arg::from(&used.tool),
            used.used_at.into(),
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    /// Calls that ran under a grant, newest first, older than `before`.
    pub async fn grant_uses(
        &mut self,
        id: GrantId,
        before: Option<CallId>,
        limit: u32,
    ) -> Result<Vec<GrantUse>, StoreError> {
        const SQL: &str = "
            select grant_id, call_id, session_id, turn_id, tool, used_at from grant_use
            where tenant_id = $1 and grant_id = $2 and user_id = coalesce($3, user_id)
                and call_id < coalesce($4, 'call_~')
            order by call_id desc limit $5";
        let args = [
            self.tenant.into(),
            id.into(),
            Arg::from(&self.user),
            before.into(),
            limit.into(),
        ];
        let rows = self.conn.rows(SQL, &args).await?;
        rows.iter().map(grant_use).collect()
    }

    /// One grant; absent and foreign ones are `None`.
    pub async fn grant(&mut self, id: GrantId) -> Result<Option<Grant>, StoreError> {
        const SQL: &str = "
            select grant_id, session_id, scope, tool, backend, keys, exact, approval_id, created_by, created_at,
                revoked_at, uses, last_used_at, arguments, paths, max_uses, expires_at
            from standing_grant
            where tenant_id = $1 and grant_id = $2 and user_id = coalesce($3, user_id)";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.as_ref().map(grant).transpose()
    }

    /// Grants in force for a session of a user: its own, and the user's.
    pub async fn grants_in_force(
        &mut self,
        session: SessionId,
        user: &str,
        at: Timestamp,
    ) -> Result<Vec<Grant>, StoreError> {
        let args = [self.tenant.into(), session.into(), Arg::from(user), at.into()];
        self.conn.rows(IN_FORCE, &args).await?.iter().map(grant).collect()
    }

    /// What calls are judged by: [`Rows::grants_in_force`] and
    /// [`Rows::policy_bodies`], in one question.
    pub async fn grants_and_policies(
        &mut self,
        (session, user, at): (SessionId, &str, Timestamp),
        (first, second): (&str, &str),
    ) -> Result<(Vec<Grant>, Vec<(String, String)>), StoreError> {
        let grants = [self.tenant.into(), session.into(), Arg::from(user), at.into()];
        let policies = [self.tenant.into(), Arg::from(first), Arg::from(second)];
        let asked = [(IN_FORCE, grants.as_slice()), (BODIES, policies.as_slice())];
        let [grants, bodies] = Box::pin(self.conn.several(asked)).await?;
        let grants = grants.iter().map(grant).collect::<Result<_, _>>()?;
        Ok((grants, bodies.iter().map(body).collect::<Result<_, _>>()?))
    }

    /// Grants, newest first, older than `before`; revoked ones too.
    pub async fn grants(
        &mut self,
        session: Option<SessionId>,
        before: Option<GrantId>,
        limit: u32,
    ) -> Result<Vec<Grant>, StoreError> {
        const SQL: &str = "
            select grant_id, session_id, scope, tool, backend, keys, exact, approval_id, created_by, created_at,
                revoked_at, uses, last_used_at, arguments, paths, max_uses, expires_at
            from standing_grant
            where tenant_id = $1 and user_id = coalesce($2, user_id) and ($3 = 0 or session_id = $4)
                and grant_id < coalesce($5, 'grant_~')
            order by grant_id desc limit $6";
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            Arg::Int(i64::from(session.is_some())),
            session.into(),
            before.into(),
            limit.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(grant).collect()
    }

    /// Ends a grant. `false` when there is none that this scope sees.
    pub async fn revoke_grant(&mut self, id: GrantId, at: Timestamp) -> Result<bool, StoreError> {
        const FIND: &str = "
            select grant_id, user_id, session_id from standing_grant
            where tenant_id = $1 and grant_id = $2 and user_id = coalesce($3, user_id)";
        const END: &str = "
            update standing_grant set revoked_at = $3 where tenant_id = $1 and grant_id = $2 and revoked_at is null";
        let revoked = |row: &Row| {
            Ok(Audited {
                session_id: row.opt_id("session_id")?,
                grant_id: row.opt_id("grant_id")?,
                ..Audited::new(AuditAction::GrantRevoked, row.text("user_id")?)
            })
        };
        self.revoke([FIND, END], id, at, revoked).await
    }
}

fn grant(row: &Row) -> Result<Grant, StoreError> {
    Ok(Grant {
        id: row.id("grant_id")?,
        scope: named(&row.text("scope")?)?,
        session_id: row.opt_id("session_id")?,
        tool: row.text("tool")?,
        backend: row.text("backend")?,
        keys: row.json("keys")?,
        exact: row.opt_text("exact")?,
        limits: GrantLimits {
            arguments: row.json("arguments")?,
            paths: row.json("paths")?,
            max_uses: row.opt_int("max_uses")?.and_then(|uses| u32::try_from(uses).ok()),
            expires_at: row.opt_timestamp("expires_at")?,
        },
        approval_id: row.opt_id("approval_id")?,
        created_by: row.text("created_by")?,
        created_at: row.timestamp("created_at")?,
        revoked_at: row.opt_timestamp("revoked_at")?,
        uses: row.int("uses")?.unsigned_abs(),
        last_used_at: row.opt_timestamp("last_used_at")?,
    })
}

fn grant_use(row: &Row) -> Result<GrantUse, StoreError> {
    Ok(GrantUse {
        grant_id: row.id("grant_id")?,
        tool_call_id: row.id("call_id")?,
        session_id: row.id("session_id")?,
        turn_id: row.id("turn_id")?,
        tool: row.text("tool")?,
        used_at: row.timestamp("used_at")?,
    })
}
