//! One transaction on Postgres, in as few questions as it can be: BEGIN and the
//! tenant's name travel with the first statement, COMMIT with what nobody waits
//! for. Nothing is asked before there is something to ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::TryStreamExt as _;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Either, Executor as _};

use super::StoreError;
use super::postgres_pool::{Pool, Taken};
use super::postgres_text::Values;

/// A connection that was used so recently is taken to be alive even for what
/// cannot be tried again.
const ALIVE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Transaction {
    taken: Taken,
    /// What opens it, until that was sent.
    opening: Option<String>,
    trips: Arc<AtomicU64>,
}

/// A statement and its values.
pub(super) type Statement<'a> = (&'a str, &'a Values);

/// What a statement answered.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) rows: Vec<PgRow>,
    pub(super) changed: u64,
}

impl Transaction {
    /// Waits for a connection. `opening` are statements, each with its semicolon.
    pub(super) async fn new(pool: &Arc<Pool>, opening: String, trips: Arc<AtomicU64>) -> Result<Self, StoreError> {
        Ok(Self {
            taken: pool.take().await?,
            opening: Some(opening),
            trips,
        })
    }

    pub(super) async fn run(&mut self, statement: Statement<'_>) -> Result<Answer, StoreError> {
        self.opened(Some(statement)).await
    }

    /// Carries `last` out, if there is something, and commits in the same trip.
    /// The error says whether the transaction may have been committed.
    pub(super) async fn commit(mut self, last: Option<Statement<'_>>) -> Result<(), StoreError> {
        if self.opening.is_some() {
            match last {
                // Nothing was done, so there is nothing to commit.
                None => {
                    self.taken.give_back();
                    return Ok(());
                }
                // A connection that died while idle is noticed before the COMMIT is on its way.
                Some(_) if self.taken.idle().is_some_and(|idle| ALIVE < idle) => {
                    self.opened(None).await?;
                }
                Some(_) => {}
            }
        }
        self.ask(last, "commit;").await.map_err(StoreError::of_commit)?;
        self.taken.give_back();
        Ok(())
    }

    /// The answer does not matter: a transaction without a COMMIT is undone even
    /// when the line is dead.
    pub(super) async fn undo(mut self) {
        if self.opening.is_some() {
            return self.taken.give_back();
        }
        let rollback = async { Ok(self.taken.line()?.link.execute("rollback").await?) };
        if super::job::bounded(rollback).await.is_ok() {
            self.taken.give_back();
        }
    }

    /// A question without a COMMIT. A connection that died while idle fails at
    /// the first, before any work, so the next one is tried: at most all are dead.
    async fn opened(&mut self, statement: Option<Statement<'_>>) -> Result<Answer, StoreError> {
        loop {
            let is_first = self.opening.is_some();
            let opening = self.opening.clone();
            match self.ask(statement, "").await {
                Err(error) if is_first && self.taken.idle().is_some() && is_dead_line(&error) => {
                    self.taken = Arc::clone(self.taken.pool()).take().await?;
                    self.opening = opening;
                }
                answer => return Ok(answer?),
            }
        }
    }

    async fn ask(&mut self, statement: Option<Statement<'_>>, ending: &str) -> Result<Answer, sqlx::Error> {
        self.trips.fetch_add(1, Ordering::Relaxed);
        let line = self
            .taken
            .line()
            .map_err(|error| sqlx::Error::Protocol(error.to_string()))?;
        // From here on a transaction may be open, whatever comes back.
        let mut question = self.opening.take().unwrap_or_default();
        let planned = statement.map(|(sql, values)| line.plans.write(sql, values, &mut question));
        question.push_str(ending);
        let mut answer = Answer::default();
        // Texts of this program; values are quoted where they are written.
        let mut parts = line.link.fetch_many(sqlx::raw_sql(AssertSqlSafe(question)));
        while let Some(part) = parts.try_next().await? {
            match part {
                Either::Right(row) => answer.rows.push(row),
                // What is around the statement changes no row.
                Either::Left(done) => answer.changed += done.rows_affected(),
            }
        }
        drop(parts);
        if let Some(planned) = planned {
            line.plans.keep(&planned);
        }
        Ok(answer)
    }
}

/// Whether the connection was gone before it was used: the server closed it
/// (08, 57P: the reason may still be in the pipe) or the line broke.
fn is_dead_line(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(said) => said
            .code()
            .is_some_and(|code| code.starts_with("08") || code.starts_with("57P")),
        _ => false,
    }
}
