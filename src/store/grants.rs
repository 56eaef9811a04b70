//! Standing permissions: made by a decision, revoked by a client, read under
//! the session's lock so that a revocation counts from the next call on.

use super::scope::Rows;
use super::sessions::named;
use super::transcript::wire_name;
use super::{Arg, Row, StoreError};
use crate::base::Timestamp;
use crate::model::grant::Grant;
use crate::model::id::{GrantId, SessionId};

impl Rows<'_> {
    pub(super) async fn add_grant(&mut self, user: &str, grant: &Grant) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into standing_grant (tenant_id, grant_id, user_id, session_id, scope, tool, backend, keys, exact,
                approval_id, created_by, created_at, revoked_at, uses, last_used_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, null, 0, null)";
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
        ];
        self.conn.execute(SQL, &args).await?;
        Ok(())
    }

    pub(super) async fn use_grant(&mut self, id: GrantId, at: Timestamp) -> Result<(), StoreError> {
        const SQL: &str = "
            update standing_grant set uses = uses + 1, last_used_at = $3 where tenant_id = $1 and grant_id = $2";
        self.conn
            .execute(SQL, &[self.tenant.into(), id.into(), at.into()])
            .await?;
        Ok(())
    }

    /// Grants in force for a session of a user: its own, and the user's.
    pub async fn grants_in_force(&mut self, session: SessionId, user: &str) -> Result<Vec<Grant>, StoreError> {
        const SQL: &str = "
            select grant_id, session_id, scope, tool, backend, keys, exact, approval_id, created_by, created_at,
                revoked_at, uses, last_used_at
            from standing_grant
            where tenant_id = $1 and revoked_at is null
                and (session_id = $2 or (session_id is null and user_id = $3))
            order by grant_id";
        let args = [self.tenant.into(), session.into(), Arg::from(user)];
        self.conn.rows(SQL, &args).await?.iter().map(grant).collect()
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
                revoked_at, uses, last_used_at
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
        const SQL: &str = "
            update standing_grant set revoked_at = coalesce(revoked_at, $3)
            where tenant_id = $1 and grant_id = $2 and user_id = coalesce($4, user_id)";
        let args = [self.tenant.into(), id.into(), at.into(), Arg::from(&self.user)];
        Ok(self.conn.execute(SQL, &args).await? == 1)
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
        approval_id: row.opt_id("approval_id")?,
        created_by: row.text("created_by")?,
        created_at: row.timestamp("created_at")?,
        revoked_at: row.opt_timestamp("revoked_at")?,
        uses: row.int("uses")?.unsigned_abs(),
        last_used_at: row.opt_timestamp("last_used_at")?,
    })
}
