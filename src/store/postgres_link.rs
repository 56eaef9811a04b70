//! One transaction on Postgres, in as few questions as it can be: BEGIN and the
//! tenant's name travel with the first statement, COMMIT with what nobody waits
//! for. Nothing is asked before there is something to ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::TryStreamExt as _;
use sqlx::postgres::{PgConnection, PgRow};
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

/// Statements of one question, each behind commands (with their semicolons) that
/// make it its tenant's; nothing where the whole transaction is one tenant's.
pub(super) type Asked<'a> = &'a [(&'a str, Statement<'a>)];

/// What a statement answered.
#[derive(Debug, Default)]
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
        let mut answers = self.run_all(&[("", statement)]).await?;
        answers
            .pop()
            .ok_or_else(|| StoreError::bug("a question without an answer"))
    }

    /// Statements that do not build on one another, in one trip; their answers in
    /// the same order.
    pub(super) async fn run_all(&mut self, asked: Asked<'_>) -> Result<Vec<Answer>, StoreError> {
        self.opened(asked).await
    }

    /// Carries `last` out, if there is something, and commits in the same trip.
    /// The error says whether the transaction may have been committed.
    pub(super) async fn commit(mut self, last: Asked<'_>) -> Result<(), StoreError> {
        if self.opening.is_some() {
            if last.is_empty() {
                // Nothing was done, so there is nothing to commit.
                self.taken.give_back();
                return Ok(());
            }
            // A connection that died while idle is noticed before the COMMIT is on its way.
            if self.taken.idle().is_some_and(|idle| ALIVE < idle) {
                self.opened(&[]).await?;
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
    async fn opened(&mut self, asked: Asked<'_>) -> Result<Vec<Answer>, StoreError> {
        loop {
            let is_first = self.opening.is_some();
            let opening = self.opening.clone();
            match self.ask(asked, "").await {
                Err(error) if is_first && self.taken.idle().is_some() && is_dead_line(&error) => {
                    self.taken = Arc::clone(self.taken.pool()).take().await?;
                    self.opening = opening;
                }
                answers => return Ok(answers?),
            }
        }
    }

    async fn ask(&mut self, asked: Asked<'_>, ending: &str) -> Result<Vec<Answer>, sqlx::Error> {
        self.trips.fetch_add(1, Ordering::Relaxed);
        let line = self
            .taken
            .line()
            .map_err(|error| sqlx::Error::Protocol(error.to_string()))?;
        // From here on a transaction may be open, whatever comes back.
        let mut question = self.opening.take().unwrap_or_default();
        // The place of each statement among the commands of the question.
        let mut places = Vec::with_capacity(asked.len());
        let mut commands = commands_in(&question);
        for (before, (sql, values)) in asked {
            question.push_str(before);
            commands += commands_in(before) + line.plans.write(sql, values, &mut question);
            places.push(commands);
            commands += 1;
        }
        question.push_str(ending);
        let answers = answered(&mut line.link, question, &places).await;
        line.plans.answered(answers.is_ok());
        answers
    }
}

/// The answers of the commands at `places`.
async fn answered(link: &mut PgConnection, question: String, places: &[usize]) -> Result<Vec<Answer>, sqlx::Error> {
    let mut answers = Vec::with_capacity(places.len());
    let (mut command, mut answer) = (0, Answer::default());
    // Texts of this program; values are quoted where they are written.
    let mut parts = link.fetch_many(sqlx::raw_sql(AssertSqlSafe(question)));
    while let Some(part) = parts.try_next().await? {
        match part {
            Either::Right(row) => answer.rows.push(row),
            Either::Left(done) => {
                answer.changed = done.rows_affected();
                let whole = std::mem::take(&mut answer);
                if places.get(answers.len()) == Some(&command) {
                    answers.push(whole);
                }
                command += 1;
            }
        }
    }
    Ok(answers)
}

/// How many commands a text of this program has that stands around statements:
/// there is no semicolon in a value of it.
fn commands_in(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b';').count()
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
