//! The one writing connection of the embedded database and the thread that owns
//! it, so that nobody else waits for the disk. It takes every waiting job into one transaction, each behind a savepoint
//! of its own, so that one fsync serves all and a failed job undoes only
//! itself. Nobody is answered or rung before the COMMIT returned.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::bell::Rings;
use super::conn::Link;
use super::job::{Hooks, Job, Settle};
use super::sqlite_link::SqliteLink;
use super::{Conn, Fate, StoreError};

/// Keeps the wait of the first job of a group short: 64 small jobs take about
/// as long as one fsync on a slow disk.
const GROUP: usize = 64;

pub(super) struct Writer {
    conn: Conn,
    path: PathBuf,
    jobs: mpsc::Receiver<Job>,
    stop: CancellationToken,
    hooks: Hooks,
    /// Held while this thread lives: the file belongs to the one who writes.
    _lock: File,
}

/// A job that succeeded inside a transaction that is still open.
struct Pending {
    verdict: Settle,
    rings: Rings,
    unclear: bool,
}

impl Writer {
    pub(super) fn new(
        link: SqliteLink,
        path: PathBuf,
        jobs: mpsc::Receiver<Job>,
        stop: CancellationToken,
        hooks: Hooks,
        lock: File,
    ) -> Self {
        Self {
            conn: Conn::new(Link::SqliteWriter(Box::new(link))).ringing(hooks.bell.clone()),
            path,
            jobs,
            stop,
            hooks,
            _lock: lock,
        }
    }

    /// Until the store is closed or dropped; jobs accepted by then are done.
    pub(super) async fn run(mut self) {
        loop {
            let first = tokio::select! {
                biased;
                job = self.jobs.recv() => job,
                () = self.stop.cancelled(), if !self.jobs.is_closed() => {
                    self.jobs.close();
                    continue;
                }
            };
            let Some(first) = first else { break };
            let mut waiting = VecDeque::from([first]);
            while waiting.len() < GROUP
                && let Ok(job) = self.jobs.try_recv()
            {
                waiting.push_back(job);
            }
            // A group that breaks in the middle leaves the rest for the next.
            while !waiting.is_empty() {
                self.group(&mut waiting).await;
            }
        }
        if let (Link::SqliteWriter(link), _) = self.conn.into_parts()
            && let Err(error) = link.close()
        {
            tracing::warn!(%error, "the database did not close cleanly; the next start recovers it");
        }
    }

    /// One transaction with as many of `waiting` as it can hold.
    async fn group(&mut self, waiting: &mut VecDeque<Job>) {
        if let Err(error) = self.begin().await {
            for job in waiting.drain(..) {
                job.refuse(error.clone());
            }
            return;
        }
        let mut pending = Vec::new();
        let mut broken = None;
        while let Some(job) = waiting.pop_front() {
            let step = match self.attempt(job).await {
                Some(done) => {
                    pending.push(done);
                    // COMMIT releases the last savepoint by itself.
                    if waiting.is_empty() {
                        Ok(())
                    } else {
                        self.next_savepoint().await
                    }
                }
                None => self.statement("rollback to job").await,
            };
            if let Err(error) = step {
                broken = Some(error);
                break;
            }
        }
        let outcome = match broken {
            // SQLite itself undid the transaction (disk full, I/O error).
            Some(error) => Err(error),
            None if pending.is_empty() => Err(StoreError::unavailable("nothing to commit")),
            None => self.statement("commit").await,
        };
        self.settle(outcome, pending).await;
    }

    /// Runs one job behind the open savepoint. `None`: it is to be undone, and
    /// has been told so.
    async fn attempt(&mut self, job: Job) -> Option<Pending> {
        let attempt = job.attempt(&mut self.conn, self.hooks.probe.as_ref()).await;
        let rings = self.conn.take_rings();
        let verdict = attempt.verdict;
        match attempt.fate {
            Ok(Fate::Go) => Some(Pending {
                verdict,
                rings,
                unclear: false,
            }),
            Ok(Fate::UnclearCommitted) => Some(Pending {
                verdict,
                rings,
                unclear: true,
            }),
            Ok(Fate::FailBefore) => {
                verdict.tell(Err(StoreError::unavailable("the probe failed the commit")));
                None
            }
            Ok(Fate::UnclearRolledBack) => {
                self.hooks.bell.ring_all(rings.unclear());
                verdict.tell(Err(StoreError::unclear("the probe hid that the commit failed")));
                None
            }
            Err(error) => {
                verdict.tell(Err(error));
                None
            }
        }
    }

    async fn settle(&mut self, outcome: Result<(), StoreError>, mut pending: Vec<Pending>) {
        match outcome {
            Ok(()) => {
                self.hooks.commits.fetch_add(1, Ordering::Relaxed);
                for done in &mut pending {
                    self.hooks.bell.ring_all(std::mem::take(&mut done.rings));
                }
                for done in pending {
                    let unclear = || Err(StoreError::unclear("the probe hid that the commit succeeded"));
                    done.verdict.tell(if done.unclear { unclear() } else { Ok(()) });
                }
            }
            // A COMMIT that fails here wrote nothing: the log has no commit
            // frame, and what is left open is undone now.
            Err(error) => {
                // There may be no transaction left to undo.
                let _ended = self.statement("rollback").await;
                let cause = match error {
                    StoreError::Unavailable(cause) | StoreError::Database(cause) => cause,
                    other => std::sync::Arc::new(other),
                };
                for done in pending {
                    done.verdict.tell(Err(StoreError::Unavailable(cause.clone())));
                }
            }
        }
    }

    async fn begin(&mut self) -> Result<(), StoreError> {
        if let Err(error) = self.statement("begin immediate").await {
            // Whatever state the old connection is in, a new one has none.
            tracing::warn!(%error, "the writing connection is opened anew");
            let link = SqliteLink::writer(&self.path)?;
            self.conn = Conn::new(Link::SqliteWriter(Box::new(link)));
            self.statement("begin immediate").await?;
        }
        self.statement("savepoint job").await
    }

    async fn next_savepoint(&mut self) -> Result<(), StoreError> {
        self.statement("release job").await?;
        self.statement("savepoint job").await
    }

    /// A statement of the transaction itself: the work's own failures do not
    /// count here, and its failure does not count for the work.
    async fn statement(&mut self, sql: &'static str) -> Result<(), StoreError> {
        let outcome = self.conn.execute(sql, &[]).await;
        self.conn.take_failed();
        outcome.map(|_| ())
    }
}
