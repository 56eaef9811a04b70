//! Rows in, domain values out: every SQL string and every transaction of the
//! product. One set of functions over SQLite (embedded, one process) and
//! Postgres (many processes).
//!
//! All commits pass [`Store::write`]; whoever waits for news is rung after the
//! COMMIT and never before it.

pub mod across_tenants;
mod admission;
pub mod approvals;
mod artifacts;
mod aside;
pub mod audit;
mod audit_export;
mod backgrounds;
mod bell;
mod bulk;
pub mod chain_across_tenants;
mod children;
pub mod claims_across_tenants;
mod conn;
pub mod dialect;
mod error;
mod events;
mod fresh;
mod grants;
mod heads_across_tenants;
mod inbox;
mod job;
pub mod jobs;
pub mod keys;
mod lock;
mod memories;
mod nested;
pub mod node;
mod notices;
pub mod once;
mod open;
mod overview;
pub mod pending;
mod policies;
mod postgres;
mod postgres_group;
mod postgres_lanes;
mod postgres_link;
mod postgres_pool;
mod postgres_rows;
mod postgres_text;
mod probe;
pub mod process;
pub mod questions;
mod reach;
pub mod recall;
mod render;
mod required;
mod retention;
mod row;
mod scope;
pub mod search;
mod session_list;
pub mod sessions;
mod several;
mod slice;
mod sqlite;
mod sqlite_link;
mod sqlite_writer;
mod story;
pub mod tenants;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod together;
mod transcript;
pub mod transfer;
mod turn_log;
mod turns;
pub mod usage;
mod writes;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;

use crate::base::{Clock, Secret};
use crate::model::id::{SessionId, TenantId};

use postgres_group::Member;

pub use admission::Executing;
pub use aside::{Aside, LongWork, MOST_ASIDE};
pub use audit_export::AuditExport;
pub use bell::{Bell, BellReceiver, Heard, News};
pub use conn::Conn;
pub use error::{Cause, StoreError};
pub use fresh::{Fresh, FreshEvent};
pub use notices::{Change, Missed, Notice, NoticeReceiver, Notices};
pub use once::{Earlier, Once};
pub use overview::{Overview, OverviewFilter};
pub use probe::{Fate, Probe};
pub use reach::{Reached, reach};
pub use row::{Arg, Row};
pub use scope::{Rows, Scope};
pub use session_list::{Archived, SessionFilter};
pub use slice::Slice;
pub use story::Story;
pub use turns::{Fence, Standing};

/// Where the rows live.
#[derive(Clone, Debug)]
pub enum Target {
    Sqlite { path: PathBuf },
    Postgres { url: Secret, max_connections: u32 },
}

#[derive(Clone)]
pub struct StoreOptions {
    pub target: Target,
    pub clock: Clock,
    pub probe: Option<Probe>,
}

/// Which database answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// Whose rows a transaction may see. Postgres enforces it with row-level
/// security, whatever the SQL says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wall {
    Tenant(TenantId),
    /// Only for code with `across_tenants` in its name.
    Across,
}

/// The open store; clones are the same store.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    backend: Backend,
    clock: Clock,
    hooks: job::Hooks,
    cursor_key: Secret,
    heads: heads_across_tenants::Heads,
}

enum Backend {
    Sqlite(sqlite::Database),
    Postgres(Arc<postgres::Database>),
}

impl Backend {
    async fn reader(&self, wall: Wall) -> Result<Conn, StoreError> {
        match self {
            Backend::Sqlite(database) => database.reader(),
            Backend::Postgres(database) => database.reader(wall).await,
        }
    }
}

impl Store {
    /// Opens the database, takes its lock, brings its schema up to date.
    pub async fn open(options: StoreOptions) -> Result<Self, StoreError> {
        open::open(options).await
    }

    /// Finishes the writes under way and lets the database go; later calls
    /// fail as unavailable.
    pub async fn close(&self) {
        match &self.0.backend {
            Backend::Sqlite(database) => database.close().await,
            Backend::Postgres(database) => database.close().await,
        }
    }

    pub fn bell(&self) -> &Bell {
        &self.0.hooks.bell
    }

    pub fn kind(&self) -> Kind {
        match self.0.backend {
            Backend::Sqlite(_) => Kind::Sqlite,
            Backend::Postgres(_) => Kind::Postgres,
        }
    }

    /// Signs cursors of lists; made with the database and the same for all of
    /// its servers.
    pub fn cursor_key(&self) -> &Secret {
        &self.0.cursor_key
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// How many COMMITs reached the database; grouped writes share one.
    pub fn commits(&self) -> u64 {
        self.0.hooks.commits.load(Ordering::Relaxed)
    }

    /// How often Postgres was asked something and waited for; SQLite never is.
    pub fn round_trips(&self) -> u64 {
        self.0.hooks.trips.load(Ordering::Relaxed)
    }

    /// One read: all its statements see the same snapshot.
    pub async fn read<T, F>(&self, wall: Wall, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        let mut conn = self.0.backend.reader(wall).await?;
        job::bounded(work(&mut conn)).await
    }

    /// One transaction: all of `work` or nothing of it. `label` names the
    /// commit for the probe. Once begun it runs to its end even if the caller
    /// stops waiting. An error of `work` undoes it. `work` awaits nothing but
    /// its `Conn`: on SQLite all other writers wait for it.
    pub async fn write<T, F>(&self, wall: Wall, label: &'static str, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        let (job, answer) = job::Job::new(label, work);
        match &self.0.backend {
            Backend::Sqlite(database) => database.submit(job).await?,
            Backend::Postgres(database) => database.submit(wall, job)?,
        }
        answer.wait().await
    }

    /// As [`Store::write`], in a transaction that may be shared with writes of other
    /// sessions. [`StoreError::Alone`]: nothing was done, and it has to be made anew.
    async fn write_grouped<T, F>(
        &self,
        (tenant, session): (TenantId, SessionId),
        label: &'static str,
        work: F,
    ) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(&'c mut Conn) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        let (job, answer) = job::Job::new(label, work);
        match &self.0.backend {
            // There all writes that wait share a transaction.
            Backend::Sqlite(database) => database.submit(job).await?,
            Backend::Postgres(database) => database.submit_grouped(Member { tenant, session, job })?,
        }
        answer.wait().await
    }
}
