//! Judgement of commands by what they would do: pure, without I/O or clock.
//!
//! normalise → parse → resolve words → unwrap → judge by rules → verdict.
//! What cannot be read is `ask`, never `allow`; the floor (`deny`) holds at
//! command positions only, so text that is data stays data.

#[cfg(any(test, fuzzing))] // cargo-fuzz sets the latter
pub mod border;
mod call;
pub mod cron_prompt;
pub mod file_access;
pub mod flow;
mod foreign;
pub mod globs;
mod judge;
mod ledger;
mod normalize;
mod options;
pub mod policy;
pub mod redact;
mod resolve;
mod rules;
mod shell;
pub mod smart;
pub mod standing;
#[cfg(test)]
mod tests;
pub mod threat;
pub mod tirith;
mod trace;
mod unwrap;
pub mod url;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use judge::{check, prepare};

/// What a command is judged against.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    pub backend: Backend,
    /// The home directory of the user the command runs as: `/home/alice`.
    pub home: &'a str,
    /// Where the agent keeps its configuration: `/home/alice/.hermes`.
    pub agent_home: &'a str,
    pub cwd: Option<&'a str>,
    /// A sudo password is configured, so `sudo -S` is no guess at one.
    pub sudo_password: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    #[default]
    Local,
    Docker,
    Ssh,
    Singularity,
    Modal,
    Daytona,
    VercelSandbox,
}

impl Backend {
    /// Commands run in a container or on a machine of their own. Where directories
    /// of the host are mounted into it, that is not so: its owner knows.
    pub fn is_isolated(self) -> bool {
        match self {
            Self::Local | Self::Ssh => false,
            Self::Docker | Self::Singularity | Self::Modal | Self::Daytona | Self::VercelSandbox => true,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    #[default]
    Allow,
    Ask,
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

/// Byte offsets into the text that was judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub(crate) fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// Stable name of the rule, in kebab-case.
    pub rule: String,
    /// What grants are stored under.
    pub key: String,
    /// For a person: what the command would do.
    pub description: String,
    pub severity: Severity,
    pub span: Span,
    /// The invocation that it was found in, resolved: program and arguments.
    /// Empty where there is none, and cut where it is very long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub argv: Vec<String>,
}

impl Finding {
    /// The text could not be read, wholly or in part: its key says nothing about
    /// what the command would do.
    pub fn is_of_unread_text(&self) -> bool {
        [ledger::PARSER_LIMIT, ledger::MALFORMED_COMMAND].contains(&self.rule.as_str())
    }
}

/// One invocation, after unwrapping. Words that are decided at run time stand
/// as they were written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct ResolvedCommand {
    pub program: String,
    pub arguments: Vec<String>,
    pub span: Span,
    /// What it runs was resolved too and stands among the commands.
    #[serde(skip)]
    pub runs_others: bool,
    /// Only a program that nobody knows may run it: the words can be data.
    #[serde(skip)]
    pub guessed: bool,
    /// The invocation whose words it stands among.
    #[serde(skip)]
    pub runner: Option<Span>,
}

/// A file that a redirect names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResolvedRedirect {
    /// As it would be opened; decided at run time when not `known`.
    pub path: String,
    pub known: bool,
    pub writes: bool,
    pub span: Span,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Judgement {
    pub verdict: Verdict,
    pub findings: Vec<Finding>,
    pub commands: Vec<ResolvedCommand>,
    /// Files that redirects name; policies look at them.
    #[serde(skip)]
    pub redirects: Vec<ResolvedRedirect>,
}
