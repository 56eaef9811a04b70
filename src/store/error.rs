//! What can go wrong in the store, sorted by what the caller may do about it:
//! wait and retry, ask again whether it happened, give up the step, or report a
//! bug. The driver's errors are translated here and nowhere else.

use std::borrow::Cow;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use sqlx::migrate::MigrateError;

use super::Aside;

/// The first error; shared, because one failed COMMIT answers many writers.
pub type Cause = Arc<dyn Error + Send + Sync>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written; the same call may succeed later.
    #[error("the store is not available: {0}")]
    Unavailable(#[source] Cause),
    /// The connection broke during COMMIT: written or not, only a read can tell.
    #[error("the store did not confirm the commit: {0}")]
    Unclear(#[source] Cause),
    /// Another process holds the file.
    #[error("`{}` is in use by another process{}; stop it, or give this one its own data directory", path.display(), shown(*holder))]
    Locked { path: PathBuf, holder: Option<u32> },
    /// The schema of the database and the one built in here do not meet.
    #[error("{0}")]
    Migration(String),
    /// A row or a file holds what this program never writes.
    #[error("unreadable data in the store: {what}")]
    Corrupt { what: String },
    /// A fence or a compare-and-set found no row; the transaction is undone.
    #[error("the row was changed by someone else")]
    Lost,
    /// Another transaction does the same thing and takes long; nothing was
    /// written.
    #[error("the same request is still being carried out")]
    InFlight,
    /// A write cannot share its transaction with others, or the one that it shared
    /// was undone. Never leaves the store: the write is made anew, alone.
    #[error("the write is to be made alone")]
    Alone,
    /// Nothing was written: this is to be done first, and not in a transaction.
    #[error("the transaction left work to be done aside")]
    Aside(Aside),
    /// A unique constraint or index refused the row; the text is the driver's
    /// name for it (Postgres: the constraint, SQLite: `table.column, …`).
    #[error("`{0}` is already taken")]
    Unique(String),
    /// A bug: wrong SQL, a broken constraint, a panic.
    #[error("the store refused a statement: {0}")]
    Database(#[source] Cause),
    /// The address of the database is not one.
    #[error("the database URL cannot be used: {0}")]
    Url(#[source] Cause),
    /// A file beside the database (lock, node id, directory).
    #[error("cannot use `{}`: {source}", path.display())]
    File { path: PathBuf, source: Arc<std::io::Error> },
}

fn shown(holder: Option<u32>) -> String {
    holder.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

impl StoreError {
    pub(super) fn unavailable(why: &'static str) -> Self {
        Self::Unavailable(why_cause(why))
    }

    pub(super) fn unclear(why: &'static str) -> Self {
        Self::Unclear(why_cause(why))
    }

    pub(super) fn bug(why: &'static str) -> Self {
        Self::Database(why_cause(why))
    }

    pub(super) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into() }
    }

    pub(super) fn file(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// The code that the database gave the error, if it comes from there.
    pub(super) fn code(&self) -> Option<String> {
        let (Self::Unavailable(cause) | Self::Database(cause)) = self else {
            return None;
        };
        let said = cause.downcast_ref::<sqlx::Error>()?.as_database_error()?;
        said.code().map(Cow::into_owned)
    }

    /// The error of a COMMIT on Postgres: when the server itself said no, the
    /// transaction is undone; when the line went dead, nobody knows.
    pub(super) fn of_commit(error: sqlx::Error) -> Self {
        let said_no = error.as_database_error().is_some_and(|said| {
            // 08: connection, 57P: shutdown under way, 40003: completion unknown.
            let code = said.code().unwrap_or_default();
            !(code.starts_with("08") || code.starts_with("57P") || code == "40003")
        });
        if said_no {
            Self::from(error)
        } else {
            Self::Unclear(Arc::new(error))
        }
    }
}

fn why_cause(why: &'static str) -> Cause {
    Arc::new(std::io::Error::other(why))
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        match &error {
            E::Database(said) if said.is_unique_violation() => Self::Unique(unique_name(said.as_ref())),
            E::Database(said) if passes(&said.code().unwrap_or_default()) => Self::Unavailable(Arc::new(error)),
            E::Io(_)
            | E::Tls(_)
            | E::Protocol(_)
            | E::PoolTimedOut
            | E::PoolClosed
            | E::WorkerCrashed
            | E::BeginFailed => Self::Unavailable(Arc::new(error)),
            E::ColumnDecode { .. } | E::Decode(_) => Self::corrupt(error.to_string()),
            _ => Self::Database(Arc::new(error)),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ffi;
        let Some(said) = error.sqlite_error() else {
            return Self::Database(Arc::new(error));
        };
        match said.extended_code {
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
                // SQLite names no constraint; its message ends in the columns.
                let message = error.to_string();
                let columns = message.rsplit_once(": ").map_or("", |(_, columns)| columns);
                Self::Unique(columns.to_owned())
            }
            // The low byte is busy, locked, no memory, read-only, interrupt, I/O,
            // full or cannot open: not now rather than never.
            code if matches!(code & 0xff, 5 | 6 | 7 | 8 | 9 | 10 | 13 | 14) => Self::Unavailable(Arc::new(error)),
            _ => Self::Database(Arc::new(error)),
        }
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) => Self::from(error),
            MigrateError::VersionMissing(version) => Self::Migration(format!(
                "migration {version} of the database is unknown to this program: the database was used by a newer version"
            )),
            MigrateError::VersionMismatch(version) => Self::Migration(format!(
                "migration {version} was applied in another form than the one built in here: applied migrations never change"
            )),
            other => Self::Migration(format!("the database could not be migrated: {other}")),
        }
    }
}

/// Whether the database's code means "not now" rather than "never".
fn passes(code: &str) -> bool {
    match code.parse::<u32>() {
        // SQLite: a number of at most four digits, whose low byte is busy,
        // locked, no memory, read-only, interrupt, I/O, full or cannot open.
        Ok(number) if code.len() != 5 => matches!(number & 0xff, 5 | 6 | 7 | 8 | 9 | 10 | 13 | 14),
        // Postgres, always five characters: connection, rollback (deadlock, serialisation), resources
        // and disk, cancelled or shut down, system error, login, no database,
        // lock not available, read-only or idle for too long.
        _ => {
            ["08", "40", "53", "57", "58", "28", "3D"]
                .iter()
                .any(|class| code.starts_with(class))
                || matches!(code, "55P03" | "25006" | "25P03" | "25P04")
        }
    }
}

fn unique_name(said: &dyn sqlx::error::DatabaseError) -> String {
    let name = said.constraint().map(Cow::Borrowed);
    // SQLite names no constraint; its message ends in the columns.
    let columns = || {
        said.message()
            .rsplit_once(": ")
            .map(|(_, columns)| Cow::Borrowed(columns))
    };
    name.or_else(columns).unwrap_or_default().into_owned()
}
