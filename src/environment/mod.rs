//! Where commands and files live: running a command in a session's workspace,
//! and reading and writing its files without leaving it.
//!
//! One file per backend; today there is `local`, which runs commands on this
//! machine inside a sandbox. Nothing here judges a command (that is `guard`)
//! and nothing here knows what a tool or a turn is.

pub mod beneath;
mod bubblewrap;
mod change;
mod command;
pub mod contained;
pub mod cosign;
mod directory;
mod exec;
mod files;
mod identity;
pub mod line;
mod local;
mod place;
mod probe;
mod remove;
mod replace;
mod row;
mod run;
mod scanner;
pub mod snapshot;
mod spare;
mod terminal;
pub mod unpack;
mod visible;
mod workspace;

use tokio_util::sync::CancellationToken;

pub use command::{Attendance, Chunk, Command, EnvironmentError, Finished, Isolation, IsolationChoice, Mechanism};
pub use directory::{Directory, Named};
pub use exec::run_exec;
pub use files::{Entry, EntryKind, FileError, Metadata, Parents};
pub use local::{Limits, Local, LocalSettings};
pub use row::Row;
pub use scanner::{PROGRAM as PROGRAM_OF_SCANNER, Scanner, ScannerSettings};
pub use workspace::Workspace;

/// The place a session's commands run in.
#[derive(Clone, Debug)]
pub enum Environment {
    Local(Local),
}

impl Environment {
    /// The same place, whose commands can also read a directory.
    pub fn reading(&self, directory: std::path::PathBuf) -> Self {
        match self {
            Self::Local(local) => Self::Local(local.reading(directory)),
        }
    }

    /// Where programs of the operator's own run: on the server's machine, without
    /// walls, and never longer than the server.
    pub fn trusted(&self) -> Self {
        match self {
            Self::Local(local) => Self::Local(local.trusted()),
        }
    }

    /// The session's own directories, made on first use.
    pub async fn workspace(&self, tenant: &str, session: &str) -> Result<Workspace, EnvironmentError> {
        match self {
            Self::Local(local) => local.workspace(tenant, session).await,
        }
    }

    /// Removes the session's directories; nothing of it runs any more.
    pub async fn remove(&self, tenant: &str, session: &str) -> Result<(), EnvironmentError> {
        match self {
            Self::Local(local) => local.remove(tenant, session).await,
        }
    }

    /// What protects the host from this environment's commands.
    pub fn isolation(&self) -> &Isolation {
        match self {
            Self::Local(local) => local.isolation(),
        }
    }

    /// Runs one command to its end; see [`Local::execute`].
    pub async fn execute(
        &self,
        workspace: &Workspace,
        command: Command,
        output: impl FnMut(Chunk) + Send,
        cancel: CancellationToken,
    ) -> Result<Finished, EnvironmentError> {
        match self {
            Self::Local(local) => local.execute(workspace, command, output, cancel).await,
        }
    }

    /// As [`Environment::execute`], for one of several commands of an answer.
    pub async fn execute_in_row(
        &self,
        workspace: &Workspace,
        command: Command,
        row: &Row,
        output: impl FnMut(Chunk) + Send,
        cancel: CancellationToken,
    ) -> Result<Finished, EnvironmentError> {
        match self {
            Self::Local(local) => local.execute_in_row(workspace, command, row, output, cancel).await,
        }
    }

    /// As [`Environment::execute`], for a command that somebody looks after.
    pub async fn attend(
        &self,
        workspace: &Workspace,
        command: Command,
        attendance: Attendance,
        output: impl FnMut(Chunk) + Send,
        cancel: CancellationToken,
    ) -> Result<Finished, EnvironmentError> {
        match self {
            Self::Local(local) => local.attend(workspace, command, attendance, output, cancel).await,
        }
    }

    /// Whether commands find a program of this name; see [`Local::has_program`].
    pub fn has_program(&self, name: &str) -> bool {
        match self {
            Self::Local(local) => local.has_program(name),
        }
    }

    /// The backend's name, as the configuration and the guard spell it.
    pub fn backend(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
        }
    }
}

#[cfg(test)]
mod tests;
