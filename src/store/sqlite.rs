//! The embedded database: one file, one process, one writing connection (see
//! `sqlite_writer`) and a few that can only read.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, SqlitePool};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::conn::Link;
use super::job::{Hooks, Job};
use super::sqlite_writer::Writer;
use super::{Conn, StoreError, lock};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// Two for each core of a small machine; a read takes well under a millisecond.
const READERS: u32 = 4;
/// Only a foreign tool can hold the file; ours has one writer.
const BUSY: Duration = Duration::from_secs(5);
/// Statements of the product, all kept prepared.
const STATEMENTS: usize = 512;
/// Writers beyond this wait in `submit`.
const QUEUE: usize = 256;

pub(super) struct Database {
    readers: SqlitePool,
    jobs: mpsc::Sender<Job>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Database {
    pub(super) async fn open(path: &Path, hooks: Hooks) -> Result<Self, StoreError> {
        let held = prepared_files(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY)
            .statement_cache_capacity(STATEMENTS)
            .disable_statement_logging();
        let mut link = options.connect().await?;
        migrated(&mut link).await?;

        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(BUSY)
            .test_before_acquire(false)
            .max_lifetime(None)
            .idle_timeout(None)
            .connect_lazy_with(options.clone().pragma("query_only", "on"));
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(Writer::new(link, options, queue, stop.clone(), hooks, held).run());
        Ok(Self {
            readers,
            jobs,
            stop,
            tasks,
        })
    }

    pub(super) async fn reader(&self) -> Result<Conn, StoreError> {
        Ok(Conn::new(Link::SqliteReader(self.readers.begin().await?)))
    }

    pub(super) async fn submit(&self, job: Job) -> Result<(), StoreError> {
        self.jobs
            .send(job)
            .await
            .map_err(|_| StoreError::unavailable("the store is closed"))
    }

    /// The writer goes last: its connection folds the write-ahead log into the
    /// file, and its end lets the lock go.
    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The lock, and the database file with its mode set before SQLite writes to it
/// (the log beside it takes the same mode).
fn prepared_files(path: &Path) -> Result<File, StoreError> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        lock::private_dir(parent)?;
    }
    let held = lock::take_signed(&lock::beside(path))?;
    lock::private_file(path)?;
    Ok(held)
}

async fn migrated(link: &mut SqliteConnection) -> Result<(), StoreError> {
    MIGRATIONS.run(link).await.map_err(StoreError::from)
}
