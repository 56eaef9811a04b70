//! The processes that are measured: the server on one store, and the floor.
//! Each has a directory and a database of its own and is killed when dropped.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hermes_server::base::Clock;
use sqlx::{AssertSqlSafe, Connection, Executor};
use tokio::process::{Child, Command};

use crate::drive::Client;

/// A start that takes longer is a failure.
const START: Duration = Duration::from_secs(30);
pub(crate) const KEY: &str = "bench-key-0123456789abcdef";

pub(crate) enum Database {
    Sqlite,
    /// A superuser's URL.
    Postgres(String),
}

impl Database {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }
}

/// A data directory, and a database where the store is a server.
pub(crate) struct Place {
    pub directory: PathBuf,
    pub url: Option<String>,
}

impl Place {
    pub(crate) async fn new(database: &Database) -> Result<Self> {
        let name = format!("bench_{:032x}", Clock::system().uuid());
        let directory = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&directory)?;
        let url = match database {
            Database::Sqlite => None,
            Database::Postgres(server) => {
                let mut link = sqlx::PgConnection::connect(server).await?;
                // The name is made of hexadecimal digits.
                link.execute(AssertSqlSafe(format!("create database {name}"))).await?;
                link.close().await?;
                let mut url = url::Url::parse(server)?;
                url.set_path(&name);
                Some(url.to_string())
            }
        };
        Ok(Self { directory, url })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.directory);
    }
}

/// A running server that answers.
pub(crate) struct Server {
    child: Child,
    pub client: Client,
    pub began: Instant,
    /// From the start of the process to its first healthy answer.
    pub healthy_after: Duration,
}

impl Server {
    pub(crate) async fn start(binary: &Path, place: &Place) -> Result<Self> {
        let address = free_address()?;
        let mut command = Command::new(binary);
        command
            .args(["serve", "--listen", &address, "--data-dir"])
            .arg(place.directory.join("data"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &place.directory)
            .env("HERMES_API_KEY", KEY);
        if let Some(url) = &place.url {
            command.args(["--database-url", url]);
        }
        Self::spawn(command, &address, &place.directory).await
    }

    /// This program in its other role.
    pub(crate) async fn start_floor(place: &Place) -> Result<Self> {
        let address = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["floor", &address]);
        Self::spawn(command, &address, &place.directory).await
    }

    async fn spawn(mut command: Command, address: &str, directory: &Path) -> Result<Self> {
        let log = std::fs::File::create(directory.join("server.log"))?;
        let client = Client::new(address)?;
        let began = Instant::now();
        let mut child = command
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("the server does not start")?;
        while !client.is_healthy().await {
            if let Some(status) = child.try_wait()? {
                let said = std::fs::read_to_string(directory.join("server.log"))?;
                bail!("the server ended at its start ({status}): {said}");
            }
            if START < began.elapsed() {
                bail!("the server does not become healthy");
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(Self {
            child,
            client,
            began,
            healthy_after: began.elapsed(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.child.kill().await?;
        Ok(())
    }
}

/// Nobody else asks for ports between this and the server's start.
fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
