//! A process in the background: a command that goes on when its call is over,
//! started by a session and seen by nobody else.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{BackgroundId, CallId, ProcessId, SessionId, TenantId, TurnId};
use crate::base::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundStatus {
    Running,
    Exited,
}

impl BackgroundStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Exited => "exited",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Running, Self::Exited]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

/// How a process came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// By itself.
    Exited,
    /// Somebody ended it.
    Killed,
    /// Its server stopped, and nobody saw the end.
    Lost,
}

impl Completion {
    pub fn name(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Killed => "killed",
            Self::Lost => "lost",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Exited, Self::Killed, Self::Lost]
            .into_iter()
            .find(|completion| completion.name() == name)
    }
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundEnd {
    pub exit_code: Option<i64>,
    pub completion: Completion,
    pub at: Timestamp,
}

/// What is told of a process beside its events: whether, and for which lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    pub on_completion: bool,
    pub patterns: Vec<String>,
}

/// One process as its row has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundRecord {
    pub id: BackgroundId,
    pub tenant_id: TenantId,
    pub session_id: SessionId,
    /// The call that started it.
    pub call_id: CallId,
    /// Set when the call's result is stored.
    pub turn_id: Option<TurnId>,
    /// The server that runs it.
    pub owner: Option<ProcessId>,
    pub command: String,
    pub cwd: String,
    pub pid: Option<i64>,
    pub terminal: bool,
    pub notices: Notices,
    pub started_at: Timestamp,
    pub end: Option<BackgroundEnd>,
}

/// A process in the background as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackgroundProcess {
    pub id: BackgroundId,
    pub tool_call_id: CallId,
    pub command: String,
    pub cwd: String,
    /// As the machine numbers it; for reading only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i64>,
    /// It has a terminal, so that one can type to it.
    pub pty: bool,
    pub status: BackgroundStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_reason: Option<Completion>,
    /// A turn is begun when it ends.
    pub notify_on_complete: bool,
    /// Texts whose lines begin a turn.
    pub watch_patterns: Vec<String>,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

impl BackgroundRecord {
    pub fn view(&self) -> BackgroundProcess {
        BackgroundProcess {
            id: self.id,
            tool_call_id: self.call_id,
            command: self.command.clone(),
            cwd: self.cwd.clone(),
            pid: self.pid,
            pty: self.terminal,
            status: match self.end {
                None => BackgroundStatus::Running,
                Some(_) => BackgroundStatus::Exited,
            },
            exit_code: self.end.and_then(|end| end.exit_code),
            completion_reason: self.end.map(|end| end.completion),
            notify_on_complete: self.notices.on_completion,
            watch_patterns: self.notices.patterns.clone(),
            started_at: self.started_at,
            finished_at: self.end.map(|end| end.at),
        }
    }
}

/// Lines that a process was watched for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Matched {
    /// The text that stands in the first of them.
    pub pattern: String,
    pub lines: Vec<String>,
    /// Lines since the last notice that were not told.
    pub dropped: u64,
}

/// What became of watching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchChange {
    /// Too many lines for too long: only the end is told from now on.
    Disabled,
    /// The session's processes match too often: nothing is told for a while.
    Tripped,
    /// That while is over.
    Released,
}
