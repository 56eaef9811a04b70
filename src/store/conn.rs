//! One connection inside one transaction, the same for both databases. SQL is
//! written once with `$1` placeholders. After a failed statement every further
//! one fails too, as on Postgres, and the transaction cannot commit: no work
//! goes on over a hole.

use sqlx::Transaction;
use sqlx::postgres::{PgArguments, PgConnection, Postgres};
use sqlx::query::Query;

use crate::model::id::SessionId;

use super::bell::Rings;
use super::notices::Notice;
use super::sqlite_link::{Reading, SqliteLink};
use super::{Arg, Kind, News, Row, StoreError};

/// What the work of a read or a write gets.
#[derive(Debug)]
pub struct Conn {
    link: Link,
    rings: Rings,
    failed: bool,
}

#[derive(Debug)]
pub(super) enum Link {
    /// The one writing connection; its owner opens and ends transactions.
    SqliteWriter(Box<SqliteLink>),
    SqliteReader(Box<Reading>),
    Postgres(Transaction<'static, Postgres>),
}

impl Conn {
    pub(super) fn new(link: Link) -> Self {
        Self {
            link,
            rings: Rings::default(),
            failed: false,
        }
    }

    /// Runs one statement; answers how many rows it changed.
    pub async fn execute(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, StoreError> {
        self.sound()?;
        let outcome = match self.driver()? {
            Driver::Sqlite(link) => link.execute(sql, args),
            Driver::Postgres(link) => match bound(sql, args).execute(link).await {
                Ok(done) => Ok(done.rows_affected()),
                Err(error) => Err(error.into()),
            },
        };
        self.noted(outcome)
    }

    /// Runs one statement; answers its rows.
    pub async fn rows(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<Row>, StoreError> {
        self.sound()?;
        let outcome = match self.driver()? {
            Driver::Sqlite(link) => link
                .rows(sql, args)
                .map(|rows| rows.into_iter().map(Row::Sqlite).collect()),
            Driver::Postgres(link) => match bound(sql, args).fetch_all(link).await {
                Ok(rows) => Ok(rows.into_iter().map(Row::Postgres).collect()),
                Err(error) => Err(error.into()),
            },
        };
        self.noted(outcome)
    }

    /// Runs one statement; answers its first row, if it has one.
    pub async fn row(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Option<Row>, StoreError> {
        // All rows are fetched: a statement that writes must run to its end.
        Ok(self.rows(sql, args).await?.into_iter().next())
    }

    /// Which database this is, for the statements of `dialect`.
    pub fn dialect(&self) -> Kind {
        match self.link {
            Link::SqliteWriter(_) | Link::SqliteReader(_) => Kind::Sqlite,
            Link::Postgres(_) => Kind::Postgres,
        }
    }

    /// Remembers to ring for `session` once this transaction is committed.
    pub fn ring(&mut self, session: SessionId, news: News) {
        if !self.rings.sessions.contains(&(session, news)) {
            self.rings.sessions.push((session, news));
        }
    }

    /// Remembers to tell that the audit trail grew.
    pub(super) fn note_audit(&mut self) {
        self.rings.audited = true;
    }

    /// Remembers to tell the tenant's lists once this transaction is committed.
    pub(super) fn notify(&mut self, notice: Notice) {
        self.rings.notices.push(notice);
    }

    pub(super) fn take_rings(&mut self) -> Rings {
        std::mem::take(&mut self.rings)
    }

    /// Whether a statement failed; forgets it, for the next user of the link.
    pub(super) fn take_failed(&mut self) -> bool {
        std::mem::take(&mut self.failed)
    }

    pub(super) fn into_link(self) -> Link {
        self.link
    }

    fn driver(&mut self) -> Result<Driver<'_>, StoreError> {
        Ok(match &mut self.link {
            Link::SqliteWriter(link) => Driver::Sqlite(link),
            Link::SqliteReader(reading) => Driver::Sqlite(reading.link()?),
            Link::Postgres(link) => Driver::Postgres(link),
        })
    }

    fn sound(&self) -> Result<(), StoreError> {
        if self.failed {
            Err(StoreError::bug(
                "a statement after a failed one in the same transaction",
            ))
        } else {
            Ok(())
        }
    }

    fn noted<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        self.failed |= outcome.is_err();
        outcome
    }
}

enum Driver<'a> {
    Sqlite(&'a mut SqliteLink),
    Postgres(&'a mut PgConnection),
}

fn bound<'q>(sql: &'static str, args: &[Arg<'_>]) -> Query<'q, Postgres, PgArguments> {
    args.iter().fold(sqlx::query(sql), |query, arg| match arg {
        Arg::Text(text) => query.bind(*text),
        Arg::OptText(text) => query.bind(*text),
        Arg::Owned(text) => query.bind(text.as_str()),
        Arg::Int(number) => query.bind(*number),
        Arg::OptInt(number) => query.bind(*number),
    })
}
