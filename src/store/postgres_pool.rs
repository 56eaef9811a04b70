//! Connections to Postgres that stay open between transactions. Whoever takes one
//! gives it back once no transaction is open on it; one that is dropped instead
//! is rolled back first, aside. So nothing need be asked when a connection changes
//! hands in the usual way, and no work of one transaction reaches the next.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::StoreError;
use super::postgres::connected;
use super::postgres_text::Plans;

/// How long a transaction may wait for a connection.
const ACQUIRE: Duration = Duration::from_secs(5);
/// A connection that nobody needed for so long is closed.
const IDLE: Duration = Duration::from_secs(600);
/// A session of the server remembers plans and catalogues; it is not kept for ever.
const LIFE: Duration = Duration::from_secs(1800);

pub(super) struct Pool {
    options: PgConnectOptions,
    /// Whether connections take the role that the walls bind.
    takes_role: bool,
    places: Arc<Semaphore>,
    /// Given back last, taken first.
    idle: Mutex<Vec<Line>>,
    /// Rolling back what was dropped.
    tasks: TaskTracker,
}

/// A connection and what it has prepared.
pub(super) struct Line {
    pub(super) link: PgConnection,
    pub(super) plans: Plans,
    opened: Instant,
    used: Instant,
}

/// A connection while somebody has it.
pub(super) struct Taken {
    pool: Arc<Pool>,
    /// How long nobody had it; nothing where it was just opened.
    idle: Option<Duration>,
    /// Whether a transaction may be open on it.
    touched: bool,
    /// Both are there until it is given back or dropped.
    line: Option<Line>,
    place: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(super) fn new(options: PgConnectOptions, takes_role: bool, most: u32) -> Arc<Self> {
        Arc::new(Self {
            options,
            takes_role,
            places: Arc::new(Semaphore::new(most as usize)),
            idle: Mutex::default(),
            tasks: TaskTracker::new(),
        })
    }

    /// Waits for a place, and opens a connection where none is idle.
    pub(super) async fn take(self: &Arc<Self>) -> Result<Taken, StoreError> {
        let place = tokio::time::timeout(ACQUIRE, Arc::clone(&self.places).acquire_owned()).await;
        let place = place
            .map_err(|_| StoreError::unavailable("every connection to the database is busy"))?
            .map_err(|_| StoreError::unavailable("the store is closed"))?;
        let (line, idle) = match self.young() {
            Some(line) => {
                let idle = line.used.elapsed();
                (line, Some(idle))
            }
            None => (self.opened().await?, None),
        };
        Ok(Taken {
            pool: Arc::clone(self),
            idle,
            touched: false,
            line: Some(line),
            place: Some(place),
        })
    }

    /// Closes what is idle; what is in use closes when it is given back.
    pub(super) async fn close(&self) {
        self.places.close();
        self.tasks.close();
        self.tasks.wait().await;
        let idle = std::mem::take(&mut *self.idle());
        for line in idle {
            // A connection that will not close is closed by being dropped.
            let _closed = sqlx::Connection::close(line.link).await;
        }
    }

    fn young(&self) -> Option<Line> {
        let mut idle = self.idle();
        while let Some(line) = idle.pop() {
            if line.opened.elapsed() < LIFE {
                return Some(line);
            }
        }
        None
    }

    async fn opened(&self) -> Result<Line, StoreError> {
        let mut link = connected(&self.options).await?;
        // Compiling a plan takes longer than any of ours runs.
        link.execute("set jit = off").await?;
        if self.takes_role {
            link.execute("set role hermes_app").await?;
        }
        let now = Instant::now();
        Ok(Line {
            link,
            plans: Plans::default(),
            opened: now,
            used: now,
        })
    }

    fn put(&self, mut line: Line) {
        if self.places.is_closed() {
            return;
        }
        line.used = Instant::now();
        let mut idle = self.idle();
        // The oldest are in front; one at a time is enough.
        if idle.first().is_some_and(|first| IDLE < first.used.elapsed()) {
            idle.remove(0);
        }
        idle.push(line);
    }

    /// No code of others runs under this lock.
    fn idle(&self) -> MutexGuard<'_, Vec<Line>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// For something that may leave a transaction open.
    pub(super) fn line(&mut self) -> Result<&mut Line, StoreError> {
        self.touched = true;
        self.line
            .as_mut()
            .ok_or_else(|| StoreError::bug("a connection that was given back"))
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// How long nobody had the connection, which may have died since; nothing
    /// where it was just opened.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.idle
    }

    /// Gives the connection back; only where no transaction is open on it.
    pub(super) fn give_back(mut self) {
        if let Some(line) = self.line.take() {
            self.pool.put(line);
        }
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken").finish_non_exhaustive()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let (Some(mut line), place) = (self.line.take(), self.place.take()) else {
            return;
        };
        if !self.touched {
            return self.pool.put(line);
        }
        // Without a runtime the line is closed, which undoes it as well.
        let Ok(runtime) = Handle::try_current() else { return };
        let pool = Arc::clone(&self.pool);
        let undo = async move {
            let undone = tokio::time::timeout(ACQUIRE, line.link.execute("rollback")).await;
            if matches!(undone, Ok(Ok(_))) {
                pool.put(line);
            }
            // Whoever waits for the place finds the line there.
            drop(place);
        };
        self.pool.tasks.spawn_on(undo, &runtime);
    }
}
