//! Processes in the background, as this server runs them: each belongs to one
//! session of one tenant, is held to a bound and dies with the server.
//!
//! What is here is the living part: output, input, the end. The row that says
//! that there is a process is the store's; it is written with the result of the
//! call that started it, and until then nothing is told of it.

mod entry;
pub mod note;
mod rolling;
mod watch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::{Clock, Timestamp};
use crate::environment::{Attendance, Chunk, Command, Environment, EnvironmentError, Finished, Workspace};
use crate::model::background::{BackgroundEnd, BackgroundRecord, Completion, Notices};
use crate::model::id::{BackgroundId, CallId, SessionId, TenantId};

pub use entry::{Entry, Snapshot, Unread};
pub use watch::Told;

use watch::Breaker;

/// Processes of one session that are known (the original's figure).
pub const MAX_TRACKED: usize = 64;
/// How long the output of one that ended is kept (the original's figure).
const KEPT: Duration = Duration::from_secs(1_800);
/// The record follows the result of the call; a store that is away is waited for
/// half a minute, and then nobody knows of the process.
const RECORD_PATIENCE: Duration = Duration::from_secs(120);
/// As the original: between asking a process to end and ending it.
const GRACE: Duration = Duration::from_secs(2);
/// No process is meant to last longer than this.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);
/// Pieces of input that wait to be read.
const TYPED: usize = 16;
/// News that wait to be stored.
const NEWS: usize = 1_024;

/// What happened to a process that the store knows.
#[derive(Debug)]
pub enum News {
    Ended {
        record: BackgroundRecord,
        end: BackgroundEnd,
        /// Its last output, where somebody has to be told.
        tell: Option<String>,
    },
    Watched {
        record: BackgroundRecord,
        told: Told,
    },
}

/// A process to be started.
#[derive(Debug)]
pub struct Start {
    pub tenant: TenantId,
    pub session: SessionId,
    pub call: CallId,
    pub command: String,
    pub cwd: PathBuf,
    pub terminal: bool,
    pub notices: Notices,
    pub clock: Clock,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{MAX_TRACKED} processes of this session run already; end one with `process` first")]
    TooMany,
    #[error("the server is shutting down")]
    Stopping,
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
}

/// A cheap handle; clones are the same processes.
#[derive(Clone, Debug)]
pub struct Processes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sessions: Mutex<HashMap<(TenantId, SessionId), Session>>,
    tasks: TaskTracker,
    /// Ends all of them; a new token takes the place of one that was used.
    stopping: Mutex<CancellationToken>,
    news: mpsc::Sender<News>,
    /// Taken once, by whoever stores the news.
    outlet: Mutex<Option<mpsc::Receiver<News>>>,
}

#[derive(Debug, Default)]
struct Session {
    /// Oldest first.
    entries: Vec<Arc<Entry>>,
    breaker: Breaker,
}

impl Default for Processes {
    fn default() -> Self {
        let (news, outlet) = mpsc::channel(NEWS);
        Self(Arc::new(Inner {
            sessions: Mutex::default(),
            tasks: TaskTracker::new(),
            stopping: Mutex::default(),
            news,
            outlet: Mutex::new(Some(outlet)),
        }))
    }
}

impl Processes {
    /// The news, for the one who stores them.
    pub fn news(&self) -> Option<mpsc::Receiver<News>> {
        self.0.outlet.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Starts a process and waits until it runs.
    pub async fn start(
        &self,
        environment: &Environment,
        workspace: &Workspace,
        start: Start,
    ) -> Result<Arc<Entry>, StartError> {
        if self.0.tasks.is_closed() {
            return Err(StartError::Stopping);
        }
        let now = start.clock.now();
        let (typed, typing) = mpsc::channel(TYPED);
        let (started, running) = oneshot::channel();
        let record = BackgroundRecord {
            id: BackgroundId::new(&start.clock),
            tenant_id: start.tenant,
            session_id: start.session,
            call_id: start.call,
            turn_id: None,
            owner: None,
            command: start.command.clone(),
            cwd: start.cwd.to_string_lossy().into_owned(),
            pid: None,
            terminal: start.terminal,
            notices: start.notices,
            started_at: now,
            end: None,
        };
        let cancel = self.stopping().child_token();
        let entry = Arc::new(Entry::new(record, start.terminal.then_some(typed), cancel.clone()));
        self.enter(&entry, now)?;
        let attendance = Attendance {
            started,
            typed: start.terminal.then_some(typing),
            grace: GRACE,
        };
        let task = Task {
            processes: self.clone(),
            environment: environment.clone(),
            workspace: workspace.clone(),
            entry: Arc::clone(&entry),
            clock: start.clock,
        };
        let command = command(&start.command, start.cwd, start.terminal);
        let (failed, failure) = oneshot::channel();
        self.0.tasks.spawn(task.tend(command, attendance, failed));
        match running.await {
            Ok(pid) => {
                entry.runs(pid);
                Ok(entry)
            }
            Err(_) => {
                self.forget(&entry);
                Err(failure.await.unwrap_or(EnvironmentError::Lost).into())
            }
        }
    }

    /// Takes a new process in, where there is room.
    fn enter(&self, entry: &Arc<Entry>, now: Timestamp) -> Result<(), StartError> {
        let mut sessions = self.sessions();
        let session = sessions.entry(entry.key()).or_default();
        session.prune(now);
        while MAX_TRACKED <= session.entries.len() {
            let oldest = session.entries.iter().position(|entry| entry.end().is_some());
            session.entries.remove(oldest.ok_or(StartError::TooMany)?);
        }
        session.entries.push(Arc::clone(entry));
        Ok(())
    }

    fn forget(&self, entry: &Entry) {
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get_mut(&entry.key()) {
            session.entries.retain(|own| own.id() != entry.id());
            if session.entries.is_empty() {
                sessions.remove(&entry.key());
            }
        }
    }

    /// The processes of a session, the newest first.
    pub fn of(&self, tenant: TenantId, session: SessionId, now: Timestamp) -> Vec<Arc<Entry>> {
        let mut sessions = self.sessions();
        let Some(found) = sessions.get_mut(&(tenant, session)) else {
            return Vec::new();
        };
        found.prune(now);
        found.entries.iter().rev().cloned().collect()
    }

    pub fn get(&self, tenant: TenantId, session: SessionId, id: BackgroundId) -> Option<Arc<Entry>> {
        let sessions = self.sessions();
        let found = sessions.get(&(tenant, session))?;
        found.entries.iter().find(|entry| entry.id() == id).cloned()
    }

    /// The store knows the process now: its news may be told.
    pub fn recorded(&self, record: &BackgroundRecord) {
        if let Some(entry) = self.get(record.tenant_id, record.session_id, record.id) {
            entry.recorded(record.clone());
        }
    }

    /// A process that an earlier server ran and nobody ended.
    pub fn lost(&self, record: BackgroundRecord) {
        let entry = Arc::new(Entry::lost(record));
        let mut sessions = self.sessions();
        let session = sessions.entry(entry.key()).or_default();
        if session.entries.iter().all(|own| own.id() != entry.id()) {
            session.entries.insert(0, entry);
        }
    }

    /// Sessions that have processes here.
    pub fn sessions_here(&self) -> Vec<(TenantId, SessionId)> {
        self.sessions().keys().copied().collect()
    }

    /// Ends all processes of a session that is gone, and forgets them.
    pub async fn end_session(&self, tenant: TenantId, session: SessionId) {
        let gone = self.sessions().remove(&(tenant, session));
        let entries = gone.map(|session| session.entries).unwrap_or_default();
        for entry in &entries {
            entry.silence();
            entry.ask_to_end(Completion::Killed);
        }
        for entry in &entries {
            entry.ended().await;
        }
    }

    /// Ends every process: this server may count as dead for the others.
    pub fn abandon(&self) {
        for session in self.sessions().values() {
            session.entries.iter().for_each(|entry| entry.mark(Completion::Lost));
        }
        std::mem::take(&mut *self.stopping_lock()).cancel();
    }

    /// Ends every process for good; no task is left when this returns.
    pub async fn stop(&self) {
        self.0.tasks.close();
        self.abandon();
        // Nobody stores the news any more: the next start finds the rows.
        drop(self.news());
        self.0.tasks.wait().await;
    }

    fn stopping(&self) -> CancellationToken {
        self.stopping_lock().clone()
    }

    fn stopping_lock(&self) -> std::sync::MutexGuard<'_, CancellationToken> {
        self.0.stopping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No lock is held across an await.
    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<(TenantId, SessionId), Session>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn prune(&mut self, now: Timestamp) {
        let is_old = |entry: &Arc<Entry>| entry.end().is_some_and(|end| KEPT <= now.since(end.at));
        self.entries.retain(|entry| !is_old(entry));
    }
}

fn command(script: &str, cwd: PathBuf, terminal: bool) -> Command {
    let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut environment = vec![own("PYTHONUNBUFFERED", "1")];
    if terminal {
        environment.push(own("TERM", "xterm-256color"));
    }
    Command {
        // To the letter: this is what was judged and shown.
        script: script.to_owned(),
        cwd,
        timeout: FOREVER,
        stdin: None,
        environment,
    }
}

/// The task that owns a process.
struct Task {
    processes: Processes,
    environment: Environment,
    workspace: Workspace,
    entry: Arc<Entry>,
    clock: Clock,
}

impl Task {
    async fn tend(self, command: Command, attendance: Attendance, failed: oneshot::Sender<EnvironmentError>) {
        let entry = &self.entry;
        let output = |chunk: Chunk| self.take(&chunk);
        let ended = self
            .environment
            .attend(&self.workspace, command, attendance, output, entry.cancel.clone())
            .await;
        let end = match ended {
            // Nothing ran, which whoever started it learns.
            Err(error) if !entry.has_run() => {
                let _ = failed.send(error);
                return;
            }
            Err(_) => None,
            Ok(finished) => Some(finished),
        };
        let (end, tell) = entry.close(end.as_ref().map(exit_code), self.clock.now());
        let Ok(Some(record)) = timeout(RECORD_PATIENCE, entry.record()).await else {
            self.processes.forget(entry);
            return;
        };
        self.send(News::Ended { record, end, tell }).await;
    }

    fn take(&self, chunk: &Chunk) {
        let text = self.entry.take(chunk);
        if text.is_empty() {
            return;
        }
        let now = self.clock.now();
        let told = {
            let mut sessions = self.processes.sessions();
            let Some(session) = sessions.get_mut(&self.entry.key()) else {
                return;
            };
            self.entry.watch(&text, now, &mut session.breaker)
        };
        for told in told {
            // Where the store is that far behind a line less is no loss.
            if let Some(record) = self.entry.record_now() {
                drop(self.processes.0.news.try_send(News::Watched { record, told }));
            } else {
                self.entry.keep_for_later(told, &self.processes.0.news);
            }
        }
    }

    async fn send(&self, news: News) {
        drop(self.processes.0.news.send(news).await);
    }
}

/// As the shell says; of one that was ended by us the original's figure.
fn exit_code(finished: &Finished) -> i64 {
    if finished.interrupted {
        -15
    } else {
        i64::from(finished.exit_code)
    }
}
