//! The rows of living processes, by which turns name their owner. A lease,
//! renewed by the database's clock, says who may be alive; on Postgres a lock
//! held on a connection of its own proves death before the lease ends. These
//! rows belong to no tenant.

use std::time::Duration;

use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::time::Instant;

use crate::model::id::{NodeId, ProcessId};

use super::{Backend, Store, StoreError, Wall, dialect};

/// The longest wait for the lock, or for a sign of life of its connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// This process as the others see it. One task owns and renews it.
pub struct Registration {
    store: Store,
    process: ProcessId,
    node: NodeId,
    /// When the lease in force was asked for, by this machine's own steady
    /// clock: it ends no sooner than its length after this.
    renewed: Instant,
    /// Postgres only; its end frees the lock.
    lock: Option<PgConnection>,
}

/// Enters this process, with a lease that begins now.
pub async fn register(store: &Store, node: NodeId, lease: Duration) -> Result<Registration, StoreError> {
    let process = ProcessId::new(store.clock());
    // The lock comes first: no row is ever seen without it.
    let lock = held(store, process).await?;
    let renewed = Instant::now();
    enter(store, process, node, lease).await?;
    Ok(Registration {
        store: store.clone(),
        process,
        node,
        renewed,
        lock,
    })
}

async fn enter(store: &Store, process: ProcessId, node: NodeId, lease: Duration) -> Result<(), StoreError> {
    let clock = store.clock().clone();
    store
        .write(Wall::Across, "process.registered", move |conn| {
            Box::pin(async move {
                let now = dialect::now(conn, &clock).await?;
                let sql = "insert into process (process_id, node_id, started_at, expires_at) values ($1, $2, $3, $4)";
                conn.execute(sql, &[process.into(), node.into(), now.into(), now.after(lease).into()])
                    .await
                    .map(|_| ())
            })
        })
        .await
}

impl Registration {
    pub fn id(&self) -> ProcessId {
        self.process
    }

    /// When the lease in force began.
    pub fn renewed(&self) -> Instant {
        self.renewed
    }

    /// Extends the lease to `lease` from now. [`StoreError::Lost`] means that
    /// the others declared this process dead; it must then act as if it were.
    pub async fn renew(&mut self, lease: Duration) -> Result<(), StoreError> {
        if let Some(link) = &mut self.lock
            && !matches!(tokio::time::timeout(PATIENCE, link.ping()).await, Ok(Ok(())))
        {
            self.lock = None;
        }
        if self.lock.is_none() {
            self.lock = held(&self.store, self.process).await?;
        }
        let (process, clock) = (self.process, self.store.clock().clone());
        let began = Instant::now();
        self.store
            .write(Wall::Across, "process.renewed", move |conn| {
                Box::pin(async move {
                    let until = dialect::now(conn, &clock).await?.after(lease);
                    let sql = "update process set expires_at = $2 where process_id = $1";
                    match conn.execute(sql, &[process.into(), until.into()]).await? {
                        0 => Err(StoreError::Lost),
                        _ => Ok(()),
                    }
                })
            })
            .await?;
        self.renewed = began;
        Ok(())
    }

    /// Enters the process again after [`StoreError::Lost`], once it holds nothing
    /// of before any more.
    pub async fn enter_again(&mut self, lease: Duration) -> Result<(), StoreError> {
        let began = Instant::now();
        enter(&self.store, self.process, self.node, lease).await?;
        self.renewed = began;
        Ok(())
    }

    /// The orderly end: the others need not wait for the lease.
    pub async fn leave(self) -> Result<(), StoreError> {
        remove(&self.store, self.process).await?;
        if let Some(link) = self.lock {
            // A connection that will not close is closed by being dropped.
            let _closed = tokio::time::timeout(PATIENCE, link.close()).await;
        }
        Ok(())
    }
}

/// Takes a process off the list; its turns and its tasks are then nobody's.
pub async fn remove(store: &Store, process: ProcessId) -> Result<(), StoreError> {
    store
        .write(Wall::Across, "process.removed", move |conn| {
            Box::pin(async move {
                for sql in [
                    "delete from task_lease where holder = $1",
                    "delete from process where process_id = $1",
                ] {
                    conn.execute(sql, &[process.into()]).await?;
                }
                Ok(())
            })
        })
        .await
}

/// Processes on the list that are certainly gone, seen from a living one that
/// holds its node's identity.
pub async fn dead(store: &Store, me: ProcessId, node: NodeId) -> Result<Vec<ProcessId>, StoreError> {
    let clock = store.clock().clone();
    store
        .read(Wall::Across, move |conn| {
            Box::pin(async move {
                let now = dialect::now(conn, &clock).await?;
                let sql = dialect::dead_processes(conn.dialect());
                let rows = conn.rows(sql, &[me.into(), now.into(), node.into()]).await?;
                rows.iter().map(|row| row.id("process_id")).collect()
            })
        })
        .await
}

/// Whether one process is certainly gone: its lease ended, its lock is free, or
/// it is not on the list.
pub async fn is_dead(store: &Store, process: ProcessId) -> Result<bool, StoreError> {
    let clock = store.clock().clone();
    store
        .read(Wall::Across, move |conn| {
            Box::pin(async move {
                let now = dialect::now(conn, &clock).await?;
                let sql = dialect::living_process(conn.dialect());
                Ok(conn.row(sql, &[process.into(), now.into()]).await?.is_none())
            })
        })
        .await
}

/// The lock that lives as long as its connection. Waiting for it is brief:
/// only one who asks whether this process is dead ever holds it besides.
async fn held(store: &Store, process: ProcessId) -> Result<Option<PgConnection>, StoreError> {
    let Backend::Postgres(database) = &store.0.backend else {
        return Ok(None);
    };
    let mut link = database.own_connection().await?;
    let id = process.to_string();
    let lock = sqlx::query("select pg_advisory_lock(hashtextextended($1, 0))")
        .bind(&id)
        .execute(&mut link);
    let late = |_| StoreError::unavailable("the lock of the process is not free");
    tokio::time::timeout(PATIENCE, lock).await.map_err(late)??;
    Ok(Some(link))
}
