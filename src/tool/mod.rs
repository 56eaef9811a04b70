//! What the model may call: the `Tool` trait, how a call is judged, and what
//! running one gives back. Each tool is one file that registers itself; there is
//! no list of tools here. A tool never writes to the store: what it wants
//! written travels back with its result and is committed together with it.

pub mod arguments;
pub mod artifacts;
pub mod budget;
pub mod checkpoints;
mod clarify;
mod code;
pub mod coerce;
pub mod command_line;
pub mod context_file;
pub mod context_hints;
mod cronjob;
mod decoder;
mod delegation;
pub mod dispatch;
pub mod edit;
pub mod error_text;
mod file;
pub mod file_views;
pub mod hook;
mod host;
pub mod job_actions;
mod made;
mod memory;
pub mod memory_entries;
pub mod name_repair;
pub mod nested;
pub mod output;
pub mod park;
pub mod plugin;
pub mod processes;
pub mod readings;
pub mod registry;
pub mod schema;
pub mod search;
mod session_search;
pub mod session_tools;
pub mod skill;
mod terminal;
#[cfg(test)]
pub(crate) mod testing;
mod todo;
pub mod todo_list;
pub mod toolset;
pub mod untrusted;

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::base::Clock;
use crate::guard::Finding;
use crate::guard::policy::Compiled;
use crate::live::hub::Pen;
use crate::model::artifact::Kept;
use crate::model::call::{Effect, Execution, Footprint};
use crate::model::id::{CallId, SessionId, TenantId};
use crate::store::Scope;

pub use host::{Host, HostError, HostSettings, PluginShelf};

use budget::ResultLimit;
use park::Park;
use readings::Unread;
use registry::Setup;
use session_tools::SessionTools;

/// A command's output without escapes of terminals, secrets masked.
pub fn terminal_text(text: &str, command: &str) -> String {
    terminal::output::plain(text, command)
}

/// A part of a process's output as `process` shows it: its lines from `offset` on
/// (from 1; 0 means the last ones), how many there are in all, and the number of
/// the first one shown.
pub fn process_output(seen: &processes::Snapshot, offset: usize, limit: usize) -> (String, usize, usize) {
    let page = terminal::process::log(seen, offset, limit);
    (page.output, page.total_lines, page.first)
}

/// What a tool is, apart from what it does.
#[derive(Clone, Copy, Debug)]
pub struct SpecOf<'a> {
    pub name: &'a str,
    pub toolset: &'a str,
    pub emoji: &'a str,
    pub description: &'a str,
    /// Environment variables it wants, for display; never gates.
    pub requires_env: &'a [&'a str],
    /// How long a result may be to reach the model whole.
    pub result_limit: ResultLimit,
}

/// That of a tool which is part of this binary.
pub type Spec = SpecOf<'static>;

/// What the model is told of a tool where that depends on the tools beside it;
/// what is `None` stands as the tool was registered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wording {
    pub description: Option<String>,
    pub parameters: Option<Value>,
}

/// What a call is judged by: the same when it is proposed and when it starts.
pub struct Place<'a> {
    /// The session's workspace.
    pub workspace: &'a Path,
    /// Where the session stands, absolute.
    pub cwd: &'a Path,
    pub backend: &'a str,
    /// What the tenant adds to the guard's rules.
    pub policies: &'a [Arc<Compiled>],
    /// Where long commands are noted that nobody has read, in place of reading them;
    /// the judgement does not count then.
    pub unread: Option<&'a Unread>,
}

/// What the guard says of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Judged {
    Allow,
    /// A person has to decide.
    Ask {
        findings: Vec<Finding>,
    },
    /// Never, whoever would allow it; the text goes to the model.
    Deny {
        message: String,
    },
}

/// Something the model can call.
pub trait Tool: Send + Sync {
    fn spec(&self) -> SpecOf<'_>;

    /// JSON Schema of the arguments.
    fn parameters(&self) -> Value;

    /// Arguments of a call that works in a workspace that holds `notes.txt`; a
    /// test runs it.
    fn example(&self) -> Value;

    fn effect(&self, arguments: &Value) -> Effect;

    fn footprint(&self, arguments: &Value, place: &Place<'_>) -> Footprint;

    /// The paths that the call names, absolute and normalised; `None` when they
    /// cannot be told.
    fn paths(&self, arguments: &Value, place: &Place<'_>, _host: &Host) -> Option<Vec<std::path::PathBuf>> {
        match self.footprint(arguments, place) {
            Footprint::Reads(paths) | Footprint::Writes(paths) => Some(paths),
            Footprint::Parallel | Footprint::Alone => None,
        }
    }

    /// Why the tool cannot be offered on this host, if it cannot.
    fn unavailable(&self, _host: &Host) -> Option<String> {
        None
    }

    /// Tools with the same key share one check; `None` has its own.
    fn check_key(&self) -> Option<String> {
        None
    }

    /// A check that takes its time, in place of [`Tool::unavailable`]; it is
    /// asked where nobody waits under a lock.
    fn probe(&self) -> Option<BoxFuture<'static, Option<String>>> {
        None
    }

    /// The words that depend on how the server is set up.
    fn configured(&self, _setup: &Setup) -> Option<Wording> {
        None
    }

    /// The words that depend on which tools are offered too.
    fn worded(&self, _offered: &[&str]) -> Option<Wording> {
        None
    }

    /// Its results were written by strangers.
    fn is_untrusted(&self) -> bool {
        untrusted::is_untrusted(self.spec().name)
    }

    /// Pure and quick: called under the session's lock.
    fn judge(&self, _arguments: &Value, _place: &Place<'_>, _host: &Host) -> Judged {
        Judged::Allow
    }

    /// What tells this form of a tool from another under its name, where tools may be
    /// replaced while the server runs.
    fn form(&self) -> Option<String> {
        None
    }

    /// The text that an exact grant and an approval's title name.
    fn subject(&self, arguments: &Value) -> String;

    /// Who carries a call out.
    fn execution(&self) -> Execution {
        Execution::Server
    }

    /// What a call waits for that is not run here, or the result of one that
    /// makes no sense. Pure and quick: called under the session's lock.
    fn park(&self, _arguments: &Value) -> Result<Park, String> {
        Err(park::not_here(self.spec().name))
    }

    /// Runs the call to its end. Cancelling is asked through the token; the
    /// future is awaited, never dropped half-way.
    fn run(&self, call: Call) -> BoxFuture<'static, Done>;
}

/// One call on its way.
pub struct Call {
    pub tenant_id: TenantId,
    pub session_id: SessionId,
    pub call_id: CallId,
    pub arguments: Value,
    /// Where the session stands, absolute.
    pub cwd: std::path::PathBuf,
    /// The session's todo list as JSON.
    pub todo: String,
    /// What the session has seen of files, as [`file_views`] stores it.
    pub seen_files: String,
    /// What is stored of the user; `None` where a tool is tried without a store.
    pub records: Option<Scope>,
    /// All that the session has.
    pub tools: Arc<SessionTools>,
    pub pen: Pen,
    /// Who let the call run, where it had to be asked for.
    pub allowance: Option<String>,
    /// For a tool that calls others; a call from inside one has none.
    pub nest: Option<nested::Nest>,
    pub cancel: CancellationToken,
    /// Where it stands among the commands of its answer.
    pub row: crate::environment::Row,
    /// How long a command may take, whatever the arguments say; of the script of a
    /// job.
    pub time: Option<std::time::Duration>,
    pub clock: Clock,
    pub host: Arc<Host>,
}

impl Call {
    /// A program makes it: what it leaves is the program's.
    fn is_nested(&self) -> bool {
        self.nest.is_none()
    }
}

/// What a call gives back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// Text for the model, JSON where the tool's contract says so.
    pub result: String,
    /// Addresses of images (`https:` or `data:`) that the result shows besides.
    pub images: Vec<String>,
    pub failed: bool,
    pub exit_code: Option<i64>,
    /// The call was stopped by its token before it ended by itself.
    pub cancelled: bool,
    /// Cancelled, but something it started may still be alive.
    pub survived: bool,
    pub writes: ToolWrites,
}

impl Done {
    /// A call that failed with this text.
    pub fn failure(result: String) -> Self {
        Self {
            result,
            failed: true,
            ..Self::default()
        }
    }
}

/// Rows of ours that a call changes, committed with its result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolWrites {
    /// The new todo list as JSON.
    pub todo: Option<String>,
    /// The directory the session stands in from now on.
    pub cwd: Option<String>,
    /// A change of what is remembered of the user. What comes of it, and the
    /// result, is known under the lock of the memory only.
    pub memory: Option<memory_entries::Change>,
    /// What waits for a person before it is written; the result says so.
    pub pending: Option<crate::model::pending::Staged>,
    /// What is to be done with the jobs of the user; the result is known under
    /// their lock only.
    pub jobs: Option<job_actions::Action>,
    /// What is kept whole beside the result.
    pub artifacts: Vec<Kept>,
    /// What a scan says of a result that strangers wrote, where it says anything.
    pub risk: Option<crate::guard::threat::Risk>,
    /// What the directories that it touched say of themselves.
    pub hints: Vec<context_hints::Hint>,
    /// What the call saw or changed of files.
    pub files: Vec<file_views::FileNews>,
    /// What those who stand around calls did to it.
    pub trace: Vec<crate::model::trace::Trace>,
    /// Processes that it started.
    pub processes: Vec<crate::model::background::BackgroundRecord>,
}
