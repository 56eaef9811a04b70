//! Postgres: transactions that stand behind their tenant's wall from their first
//! round trip. A write runs in a task of its own, so that a caller that goes away
//! can neither cut a COMMIT in two nor keep the bell silent.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Row as _};
use tokio_util::task::TaskTracker;

use crate::base::Secret;

use super::conn::Link;
use super::job::{Attempt, Hooks, Job, LIMIT};
use super::postgres_group::{self, Member};
use super::postgres_lanes::Lanes;
use super::postgres_link::Transaction;
use super::postgres_pool::Pool;
use super::together::Together;
use super::{Conn, Fate, StoreError, Wall};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// How long a transaction may wait for a connection.
const ACQUIRE: Duration = Duration::from_secs(5);
const STATEMENTS: usize = 512;
/// How long a write that goes alone keeps its lane from others, as long as a group
/// waits for a lock.
const PATIENCE: Duration = Duration::from_millis(100);
/// The server's own limits on one statement, one lock and an idle transaction:
/// below the 30 s after which a job is given up here, so that it is the server
/// that ends the work and says why.
const LIMITS: [(&str, &str); 3] = [
    ("statement_timeout", "20s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "60s"),
];

pub(super) struct Database {
    pool: Arc<Pool>,
    options: PgConnectOptions,
    tasks: TaskTracker,
    lanes: Lanes,
    hooks: Hooks,
}

impl Database {
    pub(super) async fn open(url: &Secret, max_connections: u32, hooks: Hooks) -> Result<Self, StoreError> {
        let options = parsed(url)?;
        let mut link = connected(&options).await?;
        // A migration that moves rows must see them: the walls are forced.
        sqlx::query("select set_config('app.across', 'on', false)")
            .execute(&mut link)
            .await?;
        MIGRATIONS.run(&mut link).await?;
        let takes_role = role(&mut link).await?;
        // A connection that will not close is closed by being dropped.
        let _closed = link.close().await;

        let pool = Pool::new(options.clone().options(LIMITS), takes_role, max_connections);
        Ok(Self {
            pool,
            options,
            tasks: TaskTracker::new(),
            lanes: Lanes::default(),
            hooks,
        })
    }

    /// One connection of its own, outside the pool, for locks of a session.
    pub(super) async fn own_connection(&self) -> Result<PgConnection, StoreError> {
        connected(&self.options).await
    }

    pub(super) async fn reader(&self, wall: Wall) -> Result<Conn, StoreError> {
        self.begin("begin isolation level repeatable read read only", wall)
            .await
    }

    pub(super) fn submit(self: &Arc<Self>, wall: Wall, job: Job) -> Result<(), StoreError> {
        if self.tasks.is_closed() {
            return Err(StoreError::unavailable("the store is closed"));
        }
        let database = Arc::clone(self);
        self.tasks.spawn(async move { database.run(wall, job).await });
        Ok(())
    }

    /// As [`Database::submit`], for a write that may share its transaction with those
    /// of other sessions. [`StoreError::Alone`] says that it could not.
    pub(super) fn submit_grouped(self: &Arc<Self>, member: Member) -> Result<(), StoreError> {
        // A probe meets every commit by itself.
        if self.hooks.probe.is_some() {
            return self.submit(Wall::Tenant(member.tenant), member.job);
        }
        if self.tasks.is_closed() {
            return Err(StoreError::unavailable("the store is closed"));
        }
        if let Some(first) = self.lanes.enter(member) {
            let database = Arc::clone(self);
            self.tasks.spawn(async move {
                let lane = first.session;
                let mut members = vec![first];
                while !members.is_empty() {
                    database.run_group(members).await;
                    members = database.lanes.next(lane);
                }
            });
        }
        Ok(())
    }

    async fn run_group(self: &Arc<Self>, mut members: Vec<Member>) {
        if members.len() > 1 {
            return postgres_group::carry_out(&self.pool, &self.hooks, members).await;
        }
        let Some(Member { tenant, job, .. }) = members.pop() else {
            return;
        };
        let database = Arc::clone(self);
        let mut alone = Box::pin(async move { database.run(Wall::Tenant(tenant), job).await });
        // It may wait for a lock; those behind it in the lane do not need that one.
        if tokio::time::timeout(PATIENCE, &mut alone).await.is_err() {
            self.tasks.spawn(alone);
        }
    }

    pub(super) async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.pool.close().await;
    }

    async fn run(&self, wall: Wall, job: Job) {
        let mut conn = match self.begin("begin", wall).await {
            Ok(conn) => conn.ringing(self.hooks.bell.clone()),
            Err(error) => return job.refuse(error),
        };
        let Attempt { fate, verdict } = job.attempt(&mut conn, self.hooks.probe.as_ref()).await;
        let rings = conn.take_rings();
        let (Link::Postgres(work), last) = conn.into_parts() else {
            return;
        };
        let outcome = match fate {
            Ok(Fate::Go) => self.commit(work, last).await,
            Ok(Fate::UnclearCommitted) => {
                let done = self.commit(work, last).await;
                done.and(Err(StoreError::unclear("the probe hid that the commit succeeded")))
            }
            Ok(Fate::FailBefore) => {
                work.undo().await;
                Err(StoreError::unavailable("the probe failed the commit"))
            }
            Ok(Fate::UnclearRolledBack) => {
                work.undo().await;
                Err(StoreError::unclear("the probe hid that the commit failed"))
            }
            Err(error) => {
                work.undo().await;
                Err(error)
            }
        };
        match outcome {
            Ok(()) => self.hooks.bell.ring_all(rings),
            Err(StoreError::Unclear(_)) => self.hooks.bell.ring_all(rings.unclear()),
            Err(_) => {}
        }
        verdict.tell(outcome);
    }

    async fn commit(&self, work: Transaction, last: Together) -> Result<(), StoreError> {
        let last = last.joined();
        let last = last.as_ref().map(|(sql, values)| ("", (sql.as_ref(), values)));
        let commit = work.commit(last.as_slice());
        let late = |_| Err(StoreError::unclear("the database does not answer"));
        tokio::time::timeout(LIMIT, commit).await.unwrap_or_else(late)?;
        self.hooks.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn begin(&self, begin: &str, wall: Wall) -> Result<Conn, StoreError> {
        // An id prints as its prefix and lower-case base32: nothing in it can
        // end the literal.
        let opening = match wall {
            Wall::Tenant(tenant) => format!("{begin};set local app.tenant='{tenant}';"),
            Wall::Across => format!("{begin};set local app.across='on';"),
        };
        let transaction = Transaction::new(&self.pool, opening, Arc::clone(&self.hooks.trips)).await?;
        Ok(Conn::new(Link::Postgres(transaction)))
    }
}

/// The driver takes a URL of any scheme and fills what is missing from defaults;
/// a mistyped one must not lead to some other database.
pub(super) fn parsed(url: &Secret) -> Result<PgConnectOptions, StoreError> {
    let scheme = url.expose().split_once("://").map(|(scheme, _)| scheme);
    if !matches!(scheme, Some("postgres" | "postgresql")) {
        return Err(StoreError::Url(Arc::new(std::io::Error::other(
            "expected `postgres://user@host/database`",
        ))));
    }
    let options = PgConnectOptions::from_str(url.expose()).map_err(|error| StoreError::Url(Arc::new(error)))?;
    Ok(options
        .application_name("hermes-server")
        .statement_cache_capacity(STATEMENTS)
        .disable_statement_logging())
}

pub(super) async fn connected(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    let late = |_| StoreError::unavailable("the database does not answer");
    Ok(tokio::time::timeout(ACQUIRE, options.connect()).await.map_err(late)??)
}

/// Whether the role of the walls can be taken; says so, once, when the walls
/// would be weaker than they look.
async fn role(link: &mut PgConnection) -> Result<bool, StoreError> {
    let sql = "select rolsuper or rolbypassrls as unbound, \
               exists (select 1 from pg_roles where rolname = 'hermes_app') as made from pg_roles where rolname = current_user";
    let row = sqlx::query(sql).fetch_one(&mut *link).await?;
    let (unbound, made): (bool, bool) = (row.try_get("unbound")?, row.try_get("made")?);
    let taken = made
        && sqlx::raw_sql("begin; set local role hermes_app; rollback")
            .execute(&mut *link)
            .await
            .is_ok();
    if made && !taken {
        // The failed batch left its transaction open.
        sqlx::raw_sql("rollback").execute(&mut *link).await?;
    }
    if unbound {
        let walls = if taken {
            "connections take the role `hermes_app`, which they bind"
        } else {
            "tenants are kept apart by queries alone"
        };
        tracing::warn!("the database user bypasses row-level security: {walls}; use an ordinary user");
    }
    Ok(taken)
}
