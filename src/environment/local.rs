//! Commands on this machine, each behind the walls of our own `exec` process.
//!
//! Here is decided what a command sees: its directories, its variables, its
//! walls. Nothing of the server's own environment reaches it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::command::{Attendance, Chunk, Command, EnvironmentError, Finished, Isolation, IsolationChoice, Mechanism};
use super::exec::description::{Confinement, Description, frame};
use super::probe;
use super::row::Row;
use super::run::{Ended, Run};
use super::spare::Spares;
use super::visible::SYSTEM;
use super::workspace::{self, Workspace};

/// What every command may use at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Of one workspace; counts only where commands run under their own user.
    pub processes: u64,
    pub open_files: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// Address space of one process; several runtimes reserve far more than
    /// they use, so there is no limit unless asked for.
    pub memory_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes: 1024,
            open_files: 8192,
            file_bytes: 8 << 30,
            memory_bytes: None,
        }
    }
}

/// Between the request to end and the order: the original's value.
const GRACE: Duration = Duration::from_secs(1);

/// Where commands look for programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How this machine runs commands.
#[derive(Clone, Debug)]
pub struct LocalSettings {
    /// The server's own binary. `/proc/self/exe` also holds when the file was
    /// replaced by a newer one.
    pub exec_program: PathBuf,
    /// Holds the directory `workspaces`.
    pub data_dir: PathBuf,
    pub isolation: IsolationChoice,
    pub network: bool,
    /// Further directories commands and file tools may read and write.
    pub writable: Vec<PathBuf>,
    /// Further directories commands and file tools may read.
    pub readable: Vec<PathBuf>,
    /// Variables passed on to commands, with their values.
    pub passthrough: Vec<(String, String)>,
    pub limits: Limits,
}

/// The local backend; clones share one.
#[derive(Clone, Debug)]
pub struct Local {
    settings: Arc<LocalSettings>,
    isolation: Arc<Isolation>,
    spares: Arc<Spares>,
}

impl Local {
    /// Finds out by a trial command which isolation works here.
    pub async fn open(settings: LocalSettings) -> Self {
        let choice = settings.isolation;
        let untried = Arc::new(Isolation::Unavailable {
            reason: "not tried yet".into(),
        });
        let mut local = Self {
            settings: Arc::new(settings),
            isolation: untried,
            spares: Arc::default(),
        };
        local.isolation = Arc::new(probe::find(&local, choice).await);
        local
    }

    /// What the trial showed.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// The same backend, whose commands can also read a directory.
    pub fn reading(&self, directory: PathBuf) -> Self {
        let mut settings = LocalSettings::clone(&self.settings);
        settings.readable.push(directory);
        Self {
            settings: Arc::new(settings),
            isolation: Arc::clone(&self.isolation),
            spares: Arc::clone(&self.spares),
        }
    }

    /// The same backend without walls, for programs of the operator's own. They
    /// are supervised like any other and end with the server.
    pub fn trusted(&self) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
            isolation: Arc::new(Isolation::Working {
                mechanism: Mechanism::None,
                detail: String::new(),
            }),
            spares: Arc::clone(&self.spares),
        }
    }

    /// Whether commands find a program of this name: in *their* folders of programs,
    /// and behind links only where their walls let them start it. Nothing is said of
    /// paths, so that no name leads elsewhere.
    pub fn has_program(&self, name: &str) -> bool {
        let settings = &self.settings;
        let is_walled = match &*self.isolation {
            Isolation::Working { mechanism, .. } => *mechanism != Mechanism::None,
            Isolation::Unavailable { .. } => return false,
        };
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return false;
        }
        let own = [&settings.readable, &settings.writable].into_iter().flatten();
        let within: Vec<&Path> = SYSTEM.iter().map(Path::new).chain(own.map(PathBuf::as_path)).collect();
        let is_program = |path: PathBuf| {
            let Ok(path) = path.canonicalize() else { return false };
            let mode = path.metadata().map_or(0, |at| if at.is_file() { at.mode() } else { 0 });
            mode & 0o111 != 0 && (!is_walled || within.iter().any(|place| path.starts_with(place)))
        };
        let passed = settings.passthrough.iter().rfind(|(name, _)| name == "PATH");
        let folders = std::env::split_paths(passed.map_or(PATH, |(_, value)| value));
        folders
            .filter(|folder| folder.is_absolute())
            .any(|folder| is_program(folder.join(name)))
    }

    /// The session's directories, made on first use.
    pub async fn workspace(&self, tenant: &str, session: &str) -> Result<Workspace, EnvironmentError> {
        Workspace::open(&self.settings, tenant, session).await
    }

    /// Removes the session's directories; nothing of it runs any more.
    pub async fn remove(&self, tenant: &str, session: &str) -> Result<(), EnvironmentError> {
        workspace::remove(&self.settings, tenant, session).await
    }

    /// Runs one command to its end. `output` is called as output arrives; a slow
    /// one slows the command down. A cancel ends the whole process tree, and so
    /// does dropping the future.
    pub async fn execute(
        &self,
        workspace: &Workspace,
        command: Command,
        output: impl FnMut(Chunk) + Send,
        cancel: CancellationToken,
    ) -> Result<Finished, EnvironmentError> {
        let mechanism = self.mechanism()?;
        self.execute_confined(mechanism, workspace, command, output, cancel)
            .await
            .map(|(finished, _)| finished)
    }

    /// As [`Local::execute`], for one of several commands of an answer: its shell
    /// may wait already, and the next one's is started while it runs.
    pub async fn execute_in_row(
        &self,
        workspace: &Workspace,
        command: Command,
        row: &Row,
        output: impl FnMut(Chunk) + Send,
        cancel: CancellationToken,
    ) -> Result<Finished, EnvironmentError> {
        let mechanism = self.mechanism()?;
        let (began, limit) = (Instant::now(), command.timeout);
        let described = self.describe(mechanism, workspace, command)?;
        let confinement = described.0.confinement.clone();
        let next = next(&described.0, row);
        let running = async {
            match row.begun((&described.0, described.1.as_deref()), &cancel).await? {
                Some(mut run) => {
                    let ended = run.follow(limit, output, &cancel).await?;
                    Ok((ended, run))
                }
                None => self.run(described, limit, output, &cancel).await,
            }
        };
        // What is in between goes first; then there is time. A row needs no more
        // processes than its own two until its end.
        let ahead = async {
            match next {
                Some(next) => row.hold((&self.spares, &self.settings.exec_program), next).await,
                None => self.refill(&confinement),
            }
        };
        let (ended, ()) = tokio::join!(running, ahead);
        let (ended, run) = ended?;
        row.rest(confinement, run, &ended);
        Ok(ended.finished(began))
    }

    /// As [`Local::execute`], for a command that somebody looks after: its start
    /// is told, it may have a terminal, and it lasts as long as anything that it
    /// started, since somebody can end that.
    pub async fn attend(
        &self,
        workspace: &Workspace,
        command: Command,
        attendance: Attendance,
        output: impl FnMut(Chunk) + Send,
        cancel: CancellationToken,
    ) -> Result<Finished, EnvironmentError> {
        let mechanism = self.mechanism()?;
        let (began, limit) = (Instant::now(), command.timeout);
        let (mut description, stdin) = self.describe(mechanism, workspace, command)?;
        description.terminal = attendance.typed.is_some();
        description.lasts = true;
        description.grace_ms = u64::try_from(attendance.grace.as_millis()).unwrap_or(u64::MAX);
        let mut run = Run::start(
            &self.settings.exec_program,
            &description.confinement,
            description.terminal,
        )?;
        run.attended_by(attendance);
        let frame = frame(&description, stdin.as_deref()).map_err(EnvironmentError::Spawn)?;
        drop((description, stdin));
        let ended = run.accompany(&frame, limit, output, &cancel).await?;
        Ok(ended.finished(began))
    }

    /// As [`Local::execute`], behind a given mechanism; also says in the
    /// process's words which walls stood.
    pub(super) async fn execute_confined(
        &self,
        mechanism: Mechanism,
        workspace: &Workspace,
        command: Command,
        output: impl FnMut(Chunk) + Send,
        cancel: CancellationToken,
    ) -> Result<(Finished, String), EnvironmentError> {
        let began = Instant::now();
        let limit = command.timeout;
        let described = self.describe(mechanism, workspace, command)?;
        let confinement = described.0.confinement.clone();
        // The order goes out first.
        let running = self.run(described, limit, output, &cancel);
        let (ended, ()) = tokio::join!(running, async { self.refill(&confinement) });
        let (ended, run) = ended?;
        Ok((ended.finished(began), run.isolation))
    }

    /// Starts what is described and stays with it to its end.
    async fn run(
        &self,
        (description, stdin): (Description, Option<Vec<u8>>),
        limit: Duration,
        output: impl FnMut(Chunk) + Send,
        cancel: &CancellationToken,
    ) -> Result<(Ended, Run), EnvironmentError> {
        let frame = frame(&description, stdin.as_deref()).map_err(EnvironmentError::Spawn)?;
        let (program, confinement) = (&self.settings.exec_program, description.confinement);
        drop((description.script, stdin));
        let mut run = self.spares.run(program, &confinement)?;
        let ended = run.accompany(&frame, limit, output, cancel).await?;
        Ok((ended, run))
    }

    /// Starts the processes of later commands. A trial comes alone; after a command
    /// there will be others.
    fn refill(&self, confinement: &Confinement) {
        if matches!(*self.isolation, Isolation::Working { .. }) {
            self.spares.refill(&self.settings.exec_program, confinement);
        }
    }
}

impl Local {
    fn mechanism(&self) -> Result<Mechanism, EnvironmentError> {
        match &*self.isolation {
            Isolation::Working { mechanism, .. } => Ok(*mechanism),
            Isolation::Unavailable { reason } => Err(EnvironmentError::Unavailable { reason: reason.clone() }),
        }
    }

    fn describe(
        &self,
        mechanism: Mechanism,
        workspace: &Workspace,
        command: Command,
    ) -> Result<(Description, Option<Vec<u8>>), EnvironmentError> {
        // A shell would cut the text there and run something nobody judged.
        if command.script.contains('\0') {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "the script holds a NUL byte");
            return Err(EnvironmentError::Spawn(source));
        }
        let settings = &self.settings;
        let mut writable = vec![workspace.root().to_path_buf(), workspace.tmp().to_path_buf()];
        writable.extend(settings.writable.iter().cloned());
        let description = Description {
            stdin_bytes: command.stdin.as_ref().map(Vec::len),
            grace_ms: u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX),
            terminal: false,
            lasts: false,
            timeout_ms: u64::try_from(command.timeout.as_millis()).unwrap_or(u64::MAX),
            environment: variables(settings, workspace, &command),
            script: command.script,
            cwd: command.cwd,
            confinement: Confinement {
                mechanism,
                network: settings.network,
                writable,
                readable: settings.readable.clone(),
                identity: workspace.identity().filter(|_| mechanism != Mechanism::None),
                limits: settings.limits.clone(),
            },
            held: false,
        };
        Ok((description, command.stdin))
    }
}

/// The shell of the command after this one, if it can be started before its script
/// is known: behind walls that keep this one off it, not with the process's own
/// spaces, and where bash reads no file of its own before the script.
fn next(present: &Description, row: &Row) -> Option<Description> {
    let is_walled = present.confinement.mechanism == Mechanism::Landlock;
    let reads_first = present.environment.iter().any(|(name, _)| name == "BASH_ENV");
    (row.is_followed && is_walled && !reads_first).then(|| Description {
        script: String::new(),
        cwd: present.cwd.clone(),
        timeout_ms: 0,
        grace_ms: present.grace_ms,
        stdin_bytes: None,
        terminal: false,
        lasts: false,
        environment: present.environment.clone(),
        confinement: present.confinement.clone(),
        held: true,
    })
}

/// The whole environment of a command: nothing of the server's own.
fn variables(settings: &LocalSettings, workspace: &Workspace, command: &Command) -> Vec<(String, String)> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let own = [
        ("PATH", PATH.to_owned()),
        ("HOME", text(workspace.root())),
        ("TMPDIR", text(workspace.tmp())),
        ("PWD", text(&command.cwd)),
        ("USER", "hermes".to_owned()),
        ("LOGNAME", "hermes".to_owned()),
        ("SHELL", "/bin/bash".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    let added = settings.passthrough.iter().chain(&command.environment).cloned();
    own.chain(added.filter(|(name, value)| is_variable(name) && !value.contains('\0')))
        .collect()
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}
