//! A look at a database from outside: is it there, whole, and of this version?
//! Nothing is made, migrated or kept open, and a server may be using it.

use std::path::Path;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Row as _};

use super::{StoreError, Target, lock, postgres, sqlite};
use crate::base::Secret;

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// No server has used it yet; the first start sets it up.
    New,
    /// A server has it open; its process, if it says so.
    InUse(Option<u32>),
    Ready {
        /// The server's version.
        version: String,
        /// Migrations that the next start carries out.
        pending: usize,
    },
    /// SQLite's own check found damage; its first finding.
    Damaged(String),
}

/// Looks, without changing anything.
pub async fn reach(target: &Target) -> Result<Reached, StoreError> {
    match target {
        Target::Sqlite { path } => in_file(path).await,
        Target::Postgres { url, .. } => at_server(url).await,
    }
}

async fn in_file(path: &Path) -> Result<Reached, StoreError> {
    if !path.try_exists().map_err(|error| StoreError::file(path, error))? {
        return Ok(Reached::New);
    }
    match lock::take(&lock::beside(path)) {
        Ok(_free) => {}
        Err(StoreError::Locked { holder, .. }) => return Ok(Reached::InUse(holder)),
        Err(error) => return Err(error),
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .disable_statement_logging();
    let mut link = options.connect().await?;
    let looked = look(&mut link).await;
    // A connection that will not close is closed by being dropped.
    let _closed = link.close().await;
    looked
}

async fn look(link: &mut SqliteConnection) -> Result<Reached, StoreError> {
    let found: String = sqlx::query("pragma quick_check(1)")
        .fetch_one(&mut *link)
        .await?
        .try_get(0)?;
    if found != "ok" {
        return Ok(Reached::Damaged(found));
    }
    let version: String = sqlx::query("select sqlite_version()")
        .fetch_one(&mut *link)
        .await?
        .try_get(0)?;
    let table = "select 1 from sqlite_master where name = '_sqlx_migrations'";
    if sqlx::query(table).fetch_optional(&mut *link).await?.is_none() {
        return Ok(Reached::New);
    }
    let done: i64 = sqlx::query(DONE).fetch_one(link).await?.try_get(0)?;
    Ok(Reached::Ready {
        version: format!("SQLite {version}"),
        pending: pending(&sqlite::MIGRATIONS, done),
    })
}

async fn at_server(url: &Secret) -> Result<Reached, StoreError> {
    let mut link = postgres::connected(&postgres::parsed(url)?).await?;
    let version: String = sqlx::query("select current_setting('server_version')")
        .fetch_one(&mut link)
        .await?
        .try_get(0)?;
    let table = "select 1 where to_regclass('_sqlx_migrations') is not null";
    if sqlx::query(table).fetch_optional(&mut link).await?.is_none() {
        return Ok(Reached::New);
    }
    let done: i64 = sqlx::query(DONE).fetch_one(&mut link).await?.try_get(0)?;
    let _closed = link.close().await;
    Ok(Reached::Ready {
        version: format!("PostgreSQL {version}"),
        pending: pending(&postgres::MIGRATIONS, done),
    })
}

const DONE: &str = "select count(*) from _sqlx_migrations where success";

fn pending(all: &Migrator, done: i64) -> usize {
    all.iter().count().saturating_sub(usize::try_from(done).unwrap_or(0))
}
