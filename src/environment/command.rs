//! What every environment understands: a command, its output, its end, and how
//! well the host is protected from it. Data only.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// One shell command.
#[derive(Clone, Debug)]
pub struct Command {
    /// The text given to the shell.
    pub script: String,
    /// Absolute; when it is gone the nearest ancestor that exists is used.
    pub cwd: PathBuf,
    /// After this long the whole process tree is killed.
    pub timeout: Duration,
    /// What the command reads; nothing when `None`.
    pub stdin: Option<Vec<u8>>,
    /// Added to the environment's own allow-list, winning over it.
    pub environment: Vec<(String, String)>,
}

/// Somebody who looks after a command while it runs.
#[derive(Debug)]
pub struct Attendance {
    /// Told the number of the command's first process once it runs, where that
    /// can be known.
    pub started: oneshot::Sender<Option<u32>>,
    /// What is typed: the command has a terminal then, and no pipes.
    pub typed: Option<mpsc::Receiver<Bytes>>,
    /// Between the request to end and the order.
    pub grace: Duration,
}

/// A piece of output, as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    Stdout(Bytes),
    Stderr(Bytes),
}

impl Chunk {
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Stdout(bytes) | Self::Stderr(bytes) => bytes,
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The shell's own code; 128 + n when signal n ended it, 124 after the
    /// time-out, 130 after a cancel.
    pub exit_code: i32,
    pub timed_out: bool,
    pub interrupted: bool,
    /// The shell ended by itself, and what it had left running was ended after it.
    pub left_over: bool,
    /// A process of the command resisted every signal and may still run.
    pub survived: bool,
    /// Where the shell stood when it ended; `None` when it did not say (it was
    /// killed, or replaced itself by `exec`).
    pub cwd: Option<PathBuf>,
    pub duration: Duration,
}

/// Which isolation the operator asked for (`terminal.isolation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationChoice {
    /// The strongest that works.
    #[default]
    Auto,
    Bubblewrap,
    Landlock,
    /// No wall at all.
    None,
}

/// A way to keep a command away from the rest of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// Own mount, process and network spaces, with the system-call filter.
    Bubblewrap,
    /// Landlock rules and the system-call filter.
    Landlock,
    None,
}

/// What a trial run showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Commands run behind this mechanism.
    Working { mechanism: Mechanism, detail: String },
    /// Commands cannot be run as asked, and why.
    Unavailable { reason: String },
}

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The sandbox could not be built; nothing ran.
    #[error("the sandbox is not available: {reason}")]
    Unavailable { reason: String },
    /// The supervising process could not be started; nothing ran.
    #[error("the command could not be started")]
    Spawn(#[source] std::io::Error),
    /// The supervising process vanished; the command's effects are unknown.
    #[error("the command's supervisor ended without a report")]
    Lost,
    #[error("`{name}` is not a usable workspace name")]
    Name { name: String },
    #[error("the workspace `{path}` could not be prepared")]
    Workspace { path: PathBuf, source: std::io::Error },
}
