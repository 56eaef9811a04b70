//! A fresh store for a test, on each database that is at hand. SQLite lives in
//! a directory that goes with the test; on Postgres each test has a database of
//! its own, dropped when the test succeeds. Without `TEST_DATABASE_URL` the
//! Postgres half says by name that it was skipped.

use std::path::{Path, PathBuf};

use sqlx::{Connection, PgConnection};

use crate::base::{Clock, Secret, Timestamp};

use super::{Probe, Store, StoreOptions, Target};

/// An instant in 2026; stepped clocks begin here.
pub(crate) const START: Timestamp = Timestamp(1_769_851_800_000);

/// One open store and what is needed to open it again.
pub(crate) struct Bench {
    pub(crate) store: Store,
    pub(crate) options: StoreOptions,
    /// A private directory, gone after the test.
    pub(crate) dir: TempDir,
}

impl Bench {
    pub(crate) async fn sqlite(probe: Option<Probe>) -> Self {
        let dir = TempDir::new();
        let target = Target::Sqlite {
            path: dir.path().join("hermes.db"),
        };
        Self::opened(target, probe, dir).await
    }

    /// `None` when no server is at hand.
    pub(crate) async fn postgres(probe: Option<Probe>) -> Option<Self> {
        let url = fresh_database().await?;
        let target = Target::Postgres {
            url: Secret::new(url),
            max_connections: 4,
        };
        Some(Self::opened(target, probe, TempDir::new()).await)
    }

    async fn opened(target: Target, probe: Option<Probe>, dir: TempDir) -> Self {
        let options = StoreOptions {
            target,
            clock: Clock::stepped(START),
            probe,
        };
        Self {
            store: Store::open(options.clone()).await.unwrap(),
            options,
            dir,
        }
    }

    /// A raw connection as the user of the URL, beside the store.
    pub(crate) async fn raw_postgres(&self) -> PgConnection {
        let Target::Postgres { url, .. } = &self.options.target else {
            panic!("not Postgres")
        };
        PgConnection::connect(url.expose()).await.unwrap()
    }

    async fn finished(self) {
        self.store.close().await;
        if let Target::Postgres { url, .. } = &self.options.target {
            dropped_database(url.expose()).await;
        }
    }
}

/// Runs a test on SQLite, and on Postgres where there is one.
pub(crate) async fn on_both(test: impl AsyncFn(&Bench)) {
    on_both_probed(None, test).await;
}

pub(crate) async fn on_both_probed(probe: Option<Probe>, test: impl AsyncFn(&Bench)) {
    let bench = Bench::sqlite(probe.clone()).await;
    Box::pin(test(&bench)).await;
    bench.finished().await;
    on_postgres_probed(probe, test).await;
}

/// Runs a test that only Postgres can pass.
pub(crate) async fn on_postgres(test: impl AsyncFn(&Bench)) {
    on_postgres_probed(None, test).await;
}

async fn on_postgres_probed(probe: Option<Probe>, test: impl AsyncFn(&Bench)) {
    if let Some(bench) = Bench::postgres(probe).await {
        Box::pin(test(&bench)).await;
        bench.finished().await;
    }
}

fn server_url() -> Option<url::Url> {
    #[allow(clippy::disallowed_methods, reason = "tests are told here where their server is")]
    let text = std::env::var("TEST_DATABASE_URL");
    let Ok(text) = text else {
        let thread = std::thread::current();
        println!(
            "skipped without TEST_DATABASE_URL: the Postgres half of {}",
            thread.name().unwrap_or("a test")
        );
        return None;
    };
    Some(text.parse().unwrap())
}

async fn fresh_database() -> Option<String> {
    let mut url = server_url()?;
    let name = format!("hermes_test_{:032x}", Clock::system().uuid());
    let mut server = PgConnection::connect(url.as_str()).await.unwrap();
    let sql = sqlx::AssertSqlSafe(format!("create database {name}"));
    sqlx::raw_sql(sql).execute(&mut server).await.unwrap();
    url.set_path(&name);
    Some(url.to_string())
}

async fn dropped_database(url: &str) {
    let name = url::Url::parse(url).unwrap().path().trim_start_matches('/').to_owned();
    let mut server = PgConnection::connect(server_url().unwrap().as_str()).await.unwrap();
    let sql = sqlx::AssertSqlSafe(format!("drop database {name} with (force)"));
    sqlx::raw_sql(sql).execute(&mut server).await.unwrap();
}

/// A directory under the system's own, removed when dropped.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("hermes-test-{:032x}", Clock::system().uuid()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // What is left behind is the system's to clean.
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}
