//! One connection inside one transaction, the same for both databases. SQL is
//! written once with `$1` placeholders. After a failed statement every further
//! one fails too, as on Postgres, and the transaction cannot commit: no work
//! goes on over a hole.

use crate::model::id::SessionId;

use super::bell::Rings;
use super::fresh::Fresh;
use super::notices::Notice;
use super::postgres_group::Seat;
use super::postgres_link::{Answer, Transaction};
use super::postgres_text::Values;
use super::sqlite_link::{Reading, SqliteLink};
use super::together::Together;
use super::{Arg, Bell, Kind, News, Row, StoreError};

/// What the work of a read or a write gets.
#[derive(Debug)]
pub struct Conn {
    link: Link,
    /// Rung after a write; a read has none.
    bell: Option<Bell>,
    rings: Rings,
    failed: bool,
    /// What waits for the next round trip.
    together: Together,
}

#[derive(Debug)]
pub(super) enum Link {
    /// The one writing connection; its owner opens and ends transactions.
    SqliteWriter(Box<SqliteLink>),
    SqliteReader(Box<Reading>),
    /// Opens with its first statement.
    Postgres(Transaction),
    /// Shares its transaction with other writes.
    Grouped(Seat),
}

impl Conn {
    pub(super) fn new(link: Link) -> Self {
        Self {
            link,
            bell: None,
            rings: Rings::default(),
            failed: false,
            together: Together::default(),
        }
    }

    /// The same for a write, after which `bell` is rung.
    pub(super) fn ringing(mut self, bell: Bell) -> Self {
        self.bell = Some(bell);
        self
    }

    /// Runs one statement; answers how many rows it changed.
    pub async fn execute(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, StoreError> {
        self.send().await?;
        let outcome = match self.driver()? {
            Driver::Sqlite(link) => link.execute(sql, args),
            Driver::Postgres(link) => answer(link, sql, args).await.map(|answer| answer.changed),
            Driver::Grouped(seat) => seat.ask(sql, args).await.map(|answer| answer.changed),
        };
        self.noted(outcome)
    }

    /// Runs one statement; answers its rows.
    pub async fn rows(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<Row>, StoreError> {
        self.send().await?;
        let outcome = match self.driver()? {
            Driver::Sqlite(link) => link
                .rows(sql, args)
                .map(|rows| rows.into_iter().map(Row::Sqlite).collect()),
            Driver::Postgres(link) => answer(link, sql, args).await.map(rows),
            Driver::Grouped(seat) => seat.ask(sql, args).await.map(rows),
        };
        self.noted(outcome)
    }

    /// As [`Conn::rows`], on Postgres, of a text that is made of statements.
    pub(super) async fn made(&mut self, sql: String, args: &[Arg<'_>]) -> Result<Vec<Row>, StoreError> {
        self.send().await?;
        let outcome = match self.driver()? {
            Driver::Postgres(link) => answer(link, &sql, args).await.map(rows),
            Driver::Grouped(seat) => seat.ask(&sql, args).await.map(rows),
            Driver::Sqlite(_) => Err(StoreError::bug("a made statement on SQLite")),
        };
        self.noted(outcome)
    }

    /// Runs one statement; answers its first row, if it has one.
    pub async fn row(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Option<Row>, StoreError> {
        // All rows are fetched: a statement that writes must run to its end.
        Ok(self.rows(sql, args).await?.into_iter().next())
    }

    /// Runs one statement whose answer does not matter, at the latest before the
    /// next one that is waited for or with the COMMIT. What follows must not
    /// build on its having run, except by `execute`, `rows` and `row`.
    pub(super) async fn later(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<(), StoreError> {
        if self.dialect() == Kind::Sqlite {
            return self.execute(sql, args).await.map(|_| ());
        }
        if !self.together.takes(sql, args) {
            self.send().await?;
        }
        self.sound()?;
        let outcome = self.together.add(sql, args);
        self.noted(outcome)
    }

    /// Carries out what was left for later.
    async fn send(&mut self) -> Result<(), StoreError> {
        self.sound()?;
        if self.together.is_empty() {
            return Ok(());
        }
        let together = std::mem::take(&mut self.together);
        let outcome = match self.driver()? {
            Driver::Postgres(link) => match together.joined() {
                Some((sql, values)) => Box::pin(link.run((&sql, &values))).await.map(|_| ()),
                None => Ok(()),
            },
            Driver::Grouped(seat) => {
                seat.write(together);
                Ok(())
            }
            Driver::Sqlite(_) => Err(StoreError::bug("statements that wait on SQLite")),
        };
        self.noted(outcome)
    }

    /// Which database this is, for the statements of `dialect`.
    pub fn dialect(&self) -> Kind {
        match self.link {
            Link::SqliteWriter(_) | Link::SqliteReader(_) => Kind::Sqlite,
            Link::Postgres(_) | Link::Grouped(_) => Kind::Postgres,
        }
    }

    /// Remembers to ring for `session` once this transaction is committed.
    pub fn ring(&mut self, session: SessionId, news: News) {
        if !self.rings.sessions.contains(&(session, news)) {
            self.rings.sessions.push((session, news));
        }
    }

    /// Whether anybody listens to the session, for whom its events may be laid out.
    pub(super) fn is_heard(&self, session: SessionId) -> bool {
        self.bell.as_ref().is_some_and(|bell| bell.is_heard(session))
    }

    /// Remembers to lay these out for who listens once this is committed.
    pub(super) fn lay_out(&mut self, session: SessionId, fresh: Fresh) {
        self.rings.fresh.push((session, fresh));
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

    /// The connection, and what still waits to be carried out on it.
    pub(super) fn into_parts(self) -> (Link, Together) {
        (self.link, self.together)
    }

    /// What a member of a group has written so far.
    #[cfg(test)]
    pub(super) fn written(&self) -> impl Iterator<Item = &super::together::Part> {
        let sent = match &self.link {
            Link::Grouped(seat) => seat.written(),
            _ => &[],
        };
        sent.iter().chain([&self.together]).flat_map(Together::parts)
    }

    fn driver(&mut self) -> Result<Driver<'_>, StoreError> {
        Ok(match &mut self.link {
            Link::SqliteWriter(link) => Driver::Sqlite(link),
            Link::SqliteReader(reading) => Driver::Sqlite(reading.link()?),
            Link::Postgres(link) => Driver::Postgres(link),
            Link::Grouped(seat) => Driver::Grouped(seat),
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
    Postgres(&'a mut Transaction),
    Grouped(&'a mut Seat),
}

async fn answer(link: &mut Transaction, sql: &str, args: &[Arg<'_>]) -> Result<Answer, StoreError> {
    let values = Values::of(args)?;
    // Beside the trip it costs nothing, and every future that holds a statement is smaller.
    Box::pin(link.run((sql, &values))).await
}

fn rows(answer: Answer) -> Vec<Row> {
    answer.rows.into_iter().map(Row::Postgres).collect()
}
