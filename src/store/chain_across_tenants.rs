//! Chaining the audit trail: entries that have no place yet get the next ones of
//! their tenant's chain. One process does it at a time, by a lease that the
//! transaction takes, keeps while there is more to do, and gives back.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::audit::{Chained, chained};
use super::{Arg, Conn, Store, StoreError, Wall, dialect};
use crate::model::audit::{Link, beginning, digest, link};
use crate::model::id::{ProcessId, TenantId};

/// Entries of one transaction: it takes well below a tenth of a second.
const BATCH: u32 = 500;
/// How long a process that dies in the middle keeps the others waiting.
const LEASE: Duration = Duration::from_secs(5);

/// How far chaining got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything that was committed is chained.
    Done,
    More,
    /// Another process is at it.
    Busy,
}

impl Store {
    /// Chains entries of all tenants, up to a bounded number.
    pub async fn chain_audit_across_tenants(&self, holder: ProcessId) -> Result<Progress, StoreError> {
        // In the order of the index of those without a place, so that it is asked.
        const ANY: &str = "select tenant_id from audit_entry where chain_seq is null order by audit_id limit 1";
        let there = self.read(Wall::Across, |conn| {
            Box::pin(async move { Ok(conn.row(ANY, &[]).await?.is_some()) })
        });
        if !there.await? {
            return Ok(Progress::Done);
        }
        let clock = self.clock().clone();
        self.write(Wall::Across, "audit.chained", move |conn| {
            Box::pin(async move {
                let now = dialect::now(conn, &clock).await?;
                let lease = |until| [holder.into(), until, now.into()];
                if !held(conn, &lease(now.after(LEASE).into())).await? {
                    return Ok(Progress::Busy);
                }
                let more = batch(conn).await?;
                if !more {
                    held(conn, &lease(now.into())).await?;
                }
                Ok(if more { Progress::More } else { Progress::Done })
            })
        })
        .await
    }
}

/// Takes the lease or changes its end; `false` when another process has it.
async fn held(conn: &mut Conn, args: &[Arg<'_>]) -> Result<bool, StoreError> {
    const SQL: &str = "
        insert into task_lease (name, holder, expires_at) values ('audit', $1, $2)
        on conflict (name) do update set holder = excluded.holder, expires_at = excluded.expires_at
        where task_lease.holder = excluded.holder or task_lease.expires_at <= $3";
    Ok(conn.execute(SQL, args).await? == 1)
}

/// Whether there may be more.
pub(super) async fn batch(conn: &mut Conn) -> Result<bool, StoreError> {
    const SQL: &str = "
        select tenant_id, audit_id, at, action, actor, key_id, user_id, session_id, turn_id, call_id, approval_id,
            grant_id, target_key_id, tool, rules, verdict, decision, outcome, exit_code, fields, chain_seq, prev_hash,
            hash
        from audit_entry where chain_seq is null order by audit_id limit $1";
    dialect::look_up(conn).await?;
    let rows = conn.rows(SQL, &[BATCH.into()]).await?;
    let more = rows.len() == BATCH as usize;
    let mut by_tenant: BTreeMap<TenantId, Vec<Chained>> = BTreeMap::new();
    for row in &rows {
        by_tenant.entry(row.id("tenant_id")?).or_default().push(chained(row)?);
    }
    for (tenant, entries) in by_tenant {
        append(conn, tenant, &entries).await?;
    }
    Ok(more)
}

async fn append(conn: &mut Conn, tenant: TenantId, entries: &[Chained]) -> Result<(), StoreError> {
    const SQLITE: &str = "
        update audit_entry set chain_seq = $3, prev_hash = $4, hash = $5 where tenant_id = $1 and audit_id = $2";
    const POSTGRES: &str = "
        update audit_entry set chain_seq = found.s, prev_hash = found.p, hash = found.h
        from (
            select held.ctid as place, r.s, r.p, r.h
            from json_to_recordset($2::json) as r(i text, s bigint, p text, h text),
                lateral (select ctid from audit_entry where tenant_id = $1 and audit_id = r.i limit 1) as held
            offset 0) as found
        where audit_entry.ctid = found.place";
    let (mut seq, mut prev) = head(conn, tenant).await?;
    let mut links = Vec::with_capacity(entries.len());
    for chained in entries {
        let Link {
            seq: at,
            prev: before,
            hash,
        } = link(&prev, seq + 1, &digest(&chained.entry));
        links.push(json!({"i": chained.entry.id, "s": at, "p": before, "h": hash}));
        (seq, prev) = (at, hash);
    }
    conn.bulk([SQLITE, POSTGRES], &[tenant.into()], &links).await
}

/// Number and hash of a tenant's last chained entry.
async fn head(conn: &mut Conn, tenant: TenantId) -> Result<(i64, String), StoreError> {
    const SQL: &str = "
        select chain_seq, hash from audit_entry
        where tenant_id = $1 and chain_seq is not null order by chain_seq desc limit 1";
    match conn.row(SQL, &[tenant.into()]).await? {
        Some(row) => Ok((row.int("chain_seq")?, row.text("hash")?)),
        None => Ok((0, beginning(tenant))),
    }
}
