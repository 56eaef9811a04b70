//! The embedded database: one file, one process, one writing connection (see
//! `sqlite_writer`) and a few that can only read.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::conn::Link;
use super::job::{Hooks, Job};
use super::sqlite_link::{Readers, SqliteLink};
use super::sqlite_writer::Writer;
use super::{Conn, StoreError, lock};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// Writers beyond this wait in `submit`.
const QUEUE: usize = 256;

pub(super) struct Database {
    readers: Arc<Readers>,
    jobs: mpsc::Sender<Job>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Database {
    pub(super) async fn open(path: &Path, hooks: Hooks) -> Result<Self, StoreError> {
        let held = prepared_files(path)?;
        migrated(path).await?;
        let link = SqliteLink::writer(path)?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let writer = Writer::new(link, path.to_owned(), queue, stop.clone(), hooks, held);
        let runtime = Handle::current();
        tasks.spawn_blocking(move || runtime.block_on(writer.run()));
        Ok(Self {
            readers: Readers::new(path),
            jobs,
            stop,
            tasks,
        })
    }

    pub(super) fn reader(&self) -> Result<Conn, StoreError> {
        Ok(Conn::new(Link::SqliteReader(Box::new(self.readers.begin()?))))
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
        self.readers.close();
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

/// The library that brings both databases up to date has connections of its own.
async fn migrated(path: &Path) -> Result<(), StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .disable_statement_logging();
    let mut link = options.connect().await?;
    MIGRATIONS.run(&mut link).await?;
    Ok(link.close().await?)
}
