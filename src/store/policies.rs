//! Policies of a tenant, by name. They are read in every transaction that judges
//! calls, so a change counts from the next call on.

use super::scope::Rows;
use super::{Arg, Row, StoreError};
use crate::model::audit::{AuditAction, Audited};
use crate::model::policy::NamedPolicy;

pub(super) const BODIES: &str = "
    select name, body from policy where tenant_id = $1 and (name = $2 or name = $3) order by name";

/// The name and the text of a policy.
pub(super) fn body(row: &Row) -> Result<(String, String), StoreError> {
    Ok((row.text("name")?, row.text("body")?))
}

impl Rows<'_> {
    pub async fn policy(&mut self, name: &str) -> Result<Option<NamedPolicy>, StoreError> {
        const SQL: &str = "
            select name, body, created_at, updated_at, updated_by from policy where tenant_id = $1 and name = $2";
        let row = self.conn.row(SQL, &[self.tenant.into(), Arg::from(name)]).await?;
        row.as_ref().map(policy).transpose()
    }

    /// Names and bodies, as JSON, of those of two names that were written.
    pub async fn policy_bodies(&mut self, first: &str, second: &str) -> Result<Vec<(String, String)>, StoreError> {
        let args = [self.tenant.into(), Arg::from(first), Arg::from(second)];
        let rows = self.conn.rows(BODIES, &args).await?;
        rows.iter().map(body).collect()
    }

    /// Policies that were written, by name, from behind `after` on.
    pub async fn policies(&mut self, after: Option<&str>, limit: u32) -> Result<Vec<NamedPolicy>, StoreError> {
        const SQL: &str = "
            select name, body, created_at, updated_at, updated_by from policy
            where tenant_id = $1 and name > $2 order by name limit $3";
        // No name is empty.
        let args = [self.tenant.into(), Arg::from(after.unwrap_or_default()), limit.into()];
        self.conn.rows(SQL, &args).await?.iter().map(policy).collect()
    }

    /// Takes a policy away. `false` when there is none of that name.
    pub async fn delete_policy(&mut self, name: &str, by: &str) -> Result<bool, StoreError> {
        const SQL: &str = "delete from policy where tenant_id = $1 and name = $2 returning name";
        let gone = self.conn.row(SQL, &[self.tenant.into(), Arg::from(name)]).await?;
        if gone.is_none() {
            return Ok(false);
        }
        let entry = Audited {
            fields: vec![name.to_owned()],
            ..Audited::new(AuditAction::PolicyDeleted, by.to_owned())
        };
        let at = self.clock.now();
        self.audit(&[entry], at).await?;
        Ok(true)
    }

    /// Writes a policy, whatever was there.
    pub async fn put_policy(&mut self, new: &NamedPolicy, changed: Vec<String>) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into policy (tenant_id, name, body, created_at, updated_at, updated_by)
            values ($1, $2, $3, $4, $5, $6)
            on conflict (tenant_id, name) do update set body = excluded.body, updated_at = excluded.updated_at,
                updated_by = excluded.updated_by";
        let by = new.updated_by.clone().unwrap_or_default();
        let at = new.updated_at.unwrap_or_else(|| self.clock.now());
        let args = [
            self.tenant.into(),
            Arg::from(&new.name),
            Arg::json(&new.policy)?,
            new.created_at.unwrap_or(at).into(),
            at.into(),
            Arg::from(&by),
        ];
        self.conn.execute(SQL, &args).await?;
        let fields = std::iter::once(new.name.clone()).chain(changed).collect();
        let entry = Audited {
            fields,
            ..Audited::new(AuditAction::PolicyChanged, by)
        };
        self.audit(&[entry], at).await
    }
}

fn policy(row: &Row) -> Result<NamedPolicy, StoreError> {
    Ok(NamedPolicy {
        name: row.text("name")?,
        policy: row.json("body")?,
        created_at: row.opt_timestamp("created_at")?,
        updated_at: row.opt_timestamp("updated_at")?,
        updated_by: row.opt_text("updated_by")?,
    })
}
