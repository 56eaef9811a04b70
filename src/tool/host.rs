//! What tools run on, built once and shared by every call: the environment of
//! commands and files, the limits of a command, the homes that the guard keeps.
//!
//! Where a session's workspace lies follows from its ids alone, so a decision
//! can name it without touching the disk; it is made when a tool first needs it.

mod variables;

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::config;
use crate::environment::{
    Environment, EnvironmentError, Isolation, IsolationChoice, Limits, Local, LocalSettings, Scanner, ScannerSettings,
    Workspace, beneath,
};
use crate::guard::file_access::{Places, normalised};
use crate::guard::flow;
use crate::guard::policy::{Compiled, Policy};
use crate::guard::redact::Known;
use crate::guard::standing::{ContainerGuard, DenyList, Standing, under};
use crate::guard::{Backend, Finding, Judgement, Setting};
use crate::model::id::{SessionId, TenantId};
use crate::tool::checkpoints::Checkpoints;
use crate::tool::file::writers::Writers;
use crate::tool::processes::Processes;
use crate::tool::readings::{Readings, Text};
use crate::tool::skill;
use crate::tool::skill::index::Index;
use crate::tool::skill::library::Library;
use variables::{passed_on, wanted_by_skills};

/// What the server tells its tools at the start.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// The server's own binary, which supervises commands as `exec`.
    pub exec_program: PathBuf,
    /// Made if it is missing; holds the workspaces.
    pub data_dir: PathBuf,
    pub terminal: config::Terminal,
    pub files: config::Files,
    /// `approvals.deny`: commands that never run.
    pub deny: Vec<String>,
    /// `approvals.policy`: rules for every tenant.
    pub policy: Policy,
    pub container_guard: ContainerGuard,
    /// The server's own secrets.
    pub known: Known,
    pub scanner: ScannerSettings,
    /// The server's variables, of which commands see those that the settings
    /// pass on.
    pub variables: Vec<(String, String)>,
    pub skills: config::Skills,
    /// Whether a person is asked before an agent remembers something.
    pub memory_approval: bool,
    /// How long programs run, and what they may.
    pub code: config::CodeExecution,
    /// Whether workspaces are kept as they were before a call.
    pub checkpoints: config::Checkpoints,
    /// The home of the user the server runs as.
    pub home: PathBuf,
    /// Where the agent's own configuration lies.
    pub agent_home: PathBuf,
}

/// Why tools have nothing to run on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("the data directory `{path}` cannot be used")]
    DataDir { path: PathBuf, source: io::Error },
    #[error("`approvals.deny`: the patterns are too large")]
    Deny,
    #[error("`approvals.policy` cannot be used")]
    Policy(#[from] crate::guard::policy::Fault),
    #[error("`{key}`: the directory `{path}` cannot be used")]
    Root {
        key: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

/// A plugin's folder of skills.
#[derive(Clone, Debug)]
pub struct PluginShelf {
    /// Whose plugin it is; everybody's when absent.
    pub tenant: Option<TenantId>,
    pub plugin: String,
    pub directory: PathBuf,
}

/// Shared by every call.
#[derive(Debug)]
pub struct Host {
    environment: Environment,
    processes: Processes,
    writers: Writers,
    data_dir: PathBuf,
    /// Directories beside the workspace that tools may enter.
    further: Vec<PathBuf>,
    deny: DenyList,
    policy: Compiled,
    container_guard: ContainerGuard,
    known: Known,
    scanner: Arc<Scanner>,
    readings: Arc<Readings>,
    checkpoints: Checkpoints,
    /// How much of a file is shown.
    pub files: config::Files,
    pub code: config::CodeExecution,
    pub skills: config::Skills,
    pub memory_approval: bool,
    plugin_skills: Mutex<Vec<PluginShelf>>,
    skill_index: Index,
    /// Names of the server's variables that commands see.
    passed: BTreeSet<String>,
    /// When there are any, file tools write nowhere else.
    write_roots: Vec<PathBuf>,
    pub timeout: Duration,
    pub max_foreground_timeout: Duration,
    pub home: PathBuf,
    pub agent_home: PathBuf,
}

impl Host {
    /// Finds out by a trial command what this machine can do.
    pub async fn open(settings: HostSettings) -> Result<Self, HostError> {
        let HostSettings { terminal, .. } = &settings;
        let data_dir = data_dir(&settings.data_dir)?;
        let writable = roots("terminal.writable_paths", &terminal.writable_paths)?;
        let readable = roots("terminal.readable_paths", &terminal.readable_paths)?;
        let names = [terminal.env_passthrough.clone(), wanted_by_skills(&settings.skills)].concat();
        let passthrough = passed_on(&settings.variables, &names);
        let local = Local::open(LocalSettings {
            exec_program: settings.exec_program.clone(),
            data_dir: data_dir.clone(),
            isolation: match terminal.isolation {
                config::Isolation::Auto => IsolationChoice::Auto,
                config::Isolation::Bubblewrap => IsolationChoice::Bubblewrap,
                config::Isolation::Landlock => IsolationChoice::Landlock,
                config::Isolation::None => IsolationChoice::None,
            },
            network: terminal.network,
            writable: writable.clone(),
            readable: readable.clone(),
            passthrough: passthrough.clone(),
            limits: Limits::default(),
        });
        Ok(Self {
            environment: Environment::Local(local.await),
            processes: Processes::default(),
            writers: Writers::default(),
            checkpoints: Checkpoints::new(settings.checkpoints.clone(), &data_dir),
            data_dir,
            further: writable.into_iter().chain(readable).collect(),
            deny: DenyList::new(&settings.deny).ok_or(HostError::Deny)?,
            policy: settings.policy.compile()?,
            container_guard: settings.container_guard,
            known: settings.known.clone(),
            scanner: Arc::new(Scanner::new(settings.scanner.clone())),
            readings: Arc::default(),
            files: settings.files.clone(),
            write_roots: terminal.write_safe_root.clone(),
            timeout: terminal.timeout,
            max_foreground_timeout: terminal.max_foreground_timeout,
            code: settings.code,
            skills: settings.skills,
            memory_approval: settings.memory_approval,
            plugin_skills: Mutex::default(),
            passed: passthrough.iter().map(|(name, _)| name.clone()).collect(),
            skill_index: Index::default(),
            home: settings.home,
            agent_home: settings.agent_home,
        })
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// What runs in the background.
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Files that calls are writing.
    pub(in crate::tool) fn writers(&self) -> &Writers {
        &self.writers
    }

    /// The backend as the guard names it.
    pub fn backend(&self) -> Backend {
        match self.environment {
            Environment::Local(_) => Backend::Local,
        }
    }

    /// What the guard says of a command that would run on `backend` in `cwd`, by
    /// the built-in rules, the server's own lists and `policies`.
    pub fn judged<'p>(
        &'p self,
        command: &str,
        backend: Backend,
        cwd: Option<&str>,
        policies: impl IntoIterator<Item = &'p Compiled>,
    ) -> Judgement {
        let standing = Standing {
            deny: Some(&self.deny),
            policies: std::iter::once(&self.policy).chain(policies).collect(),
            container: self.container_guard,
            mounts_host: false,
        };
        self.within(backend, cwd, |setting| {
            under(command, self.readings.read(command, setting), setting, &standing)
        })
    }

    /// Whether judging the command in `cwd` takes no time that others would feel.
    pub fn has_read(&self, command: &str, cwd: &str) -> bool {
        self.within(self.backend(), Some(cwd), |setting| self.readings.has(command, setting))
    }

    /// Reads what calls bring, so that judging them is quick.
    pub fn read(&self, unread: &[Text]) {
        for text in unread {
            match text {
                Text::Command { command, cwd } => {
                    self.within(self.backend(), Some(cwd), |setting| {
                        self.readings.read(command, setting)
                    });
                }
                Text::Skill(arguments) => {
                    skill::dangers(arguments, &self.readings);
                }
            }
        }
    }

    pub(super) fn readings(&self) -> &Readings {
        &self.readings
    }

    fn within<T>(&self, backend: Backend, cwd: Option<&str>, look: impl FnOnce(&Setting<'_>) -> T) -> T {
        let (home, agent_home) = (self.home.to_string_lossy(), self.agent_home.to_string_lossy());
        look(&Setting {
            backend,
            home: &home,
            agent_home: &agent_home,
            cwd,
            sudo_password: false,
        })
    }

    /// The server's own secrets, to be masked in whatever is shown.
    pub fn known(&self) -> &Known {
        &self.known
    }

    pub fn scanner(&self) -> &Arc<Scanner> {
        &self.scanner
    }

    /// Workspaces as they were.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// What is asked about a program of another language than the shell's.
    pub fn judged_code(&self, code: &str) -> Option<Finding> {
        flow::of_code(code, self.backend(), false, self.container_guard)
    }

    /// Has the external scanner look at a command, before it is judged.
    pub async fn scan(&self, command: &str) {
        if self.is_guarded() {
            self.scanner.scan(command).await;
        }
    }

    /// What the scanner said of a command, where a person has to know.
    pub fn scanned(&self, command: &str) -> Option<Finding> {
        let said = self.is_guarded().then(|| self.scanner.said(command))?;
        said.finding(command)
    }

    /// Commands are asked about where they run.
    fn is_guarded(&self) -> bool {
        !self.backend().is_isolated() || self.container_guard == ContainerGuard::Full
    }

    /// Why commands cannot run here, if they cannot.
    pub fn no_commands(&self) -> Option<String> {
        match self.environment.isolation() {
            Isolation::Working { .. } => None,
            Isolation::Unavailable { reason } => Some(format!("commands cannot be isolated here: {reason}")),
        }
    }

    /// Where a session's files lie, whether they are there yet or not.
    pub fn workspace_path(&self, tenant: TenantId, session: SessionId) -> PathBuf {
        let session_dir = self.data_dir.join("workspaces").join(tenant.to_string());
        session_dir.join(session.to_string()).join("work")
    }

    /// A script of the operator's for jobs of a tenant, by its name.
    pub async fn script(&self, tenant: TenantId, name: String, most: u64) -> io::Result<String> {
        let root = self.data_dir.join("scripts").join(tenant.to_string());
        let read = tokio::task::spawn_blocking(move || beneath::read_text(&root, &name, most));
        read.await
            .unwrap_or_else(|_| Err(io::Error::other("reading it broke off")))
    }

    /// The skills that a tenant sees.
    pub fn skills(&self, tenant: TenantId) -> Library {
        Library {
            own: self.data_dir.join("skills").join(tenant.to_string()),
            system: self.skills.external_dirs.clone(),
            plugins: self.plugin_skills(tenant),
            disabled: self.skills.disabled.clone(),
        }
    }

    /// Whether anything that agents write may wait for a person.
    pub fn stages_writes(&self) -> bool {
        self.memory_approval || self.skills.write_approval
    }

    /// The tenant's plugins before everybody's.
    fn plugin_skills(&self, tenant: TenantId) -> Vec<(String, PathBuf)> {
        let all = self.plugin_skills.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |whose: Option<TenantId>| all.iter().filter(move |shelf| shelf.tenant == whose);
        let shelves = of(Some(tenant)).chain(of(None));
        shelves
            .map(|shelf| (shelf.plugin.clone(), shelf.directory.clone()))
            .collect()
    }

    /// Plugins were loaded: these bring skills.
    pub fn set_plugin_skills(&self, shelves: Vec<PluginShelf>) {
        *self.plugin_skills.lock().unwrap_or_else(PoisonError::into_inner) = shelves;
        self.skill_index.forget_all();
    }

    /// Whether commands see this variable of the server's.
    pub fn passes(&self, variable: &str) -> bool {
        self.passed.contains(variable)
    }

    /// A file of credentials that the operator put there for the tenant, by its
    /// name; text of at most 64 KiB.
    pub fn credential(&self, tenant: TenantId, name: &str) -> io::Result<String> {
        let root = self.data_dir.join("credentials").join(tenant.to_string());
        beneath::read_text(&root, name, 64 << 10)
    }

    /// What a prompt says of them.
    pub async fn skill_index(&self, tenant: TenantId) -> Arc<str> {
        self.skill_index.block(tenant, self.skills(tenant)).await
    }

    /// A tenant's skills were changed here.
    pub fn skills_changed(&self, tenant: TenantId) {
        self.skill_index.forget(tenant);
    }

    /// Removes a session's directories. What cannot be removed is reported and
    /// left.
    pub async fn remove_workspace(&self, tenant: TenantId, session: SessionId) {
        if let Err(error) = self.checkpoints.remove(tenant, session).await {
            tracing::warn!(%session, %error, "the checkpoints of a deleted session are left behind");
        }
        let (tenant, name) = (tenant.to_string(), session.to_string());
        if let Err(error) = self.environment.remove(&tenant, &name).await {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%session, %error, cause, "the workspace of a deleted session is left behind");
        }
    }

    /// The session's directories, made on first use.
    pub async fn workspace(&self, tenant: TenantId, session: SessionId) -> Result<Workspace, EnvironmentError> {
        self.environment
            .workspace(&tenant.to_string(), &session.to_string())
            .await
    }

    /// Whether text places a path inside what tools may enter; links are the
    /// environment's to judge.
    pub fn is_inside(&self, workspace: &Path, path: &Path) -> bool {
        let path = normalised(path);
        let tmp = workspace.with_file_name("tmp");
        let mut roots = self.further.iter().map(PathBuf::as_path);
        path.starts_with(workspace) || path.starts_with(&tmp) || roots.any(|root| path.starts_with(root))
    }

    /// The folders by which files are judged.
    pub fn places(&self) -> Places {
        Places {
            home: self.home.clone(),
            agent_home: self.agent_home.clone(),
            write_roots: self.write_roots.clone(),
        }
    }
}

fn data_dir(path: &Path) -> Result<PathBuf, HostError> {
    // Whoever else has an account on the machine has no business in there.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.and_then(|()| path.canonicalize())
        .map_err(|source| HostError::DataDir {
            path: path.to_path_buf(),
            source,
        })
}

fn roots(key: &'static str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, HostError> {
    let canonical = |path: &PathBuf| {
        path.canonicalize().map_err(|source| HostError::Root {
            key,
            path: path.clone(),
            source,
        })
    };
    paths.iter().map(canonical).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::testing::Bench;

    #[tokio::test]
    async fn the_path_of_a_workspace_is_where_it_is_made() {
        let bench = Bench::new().await;
        let path = bench.host.workspace_path(bench.tenant, bench.session);
        assert!(!path.exists());
        let workspace = bench.host.workspace(bench.tenant, bench.session).await.unwrap();
        assert_eq!(workspace.root(), path);
        assert!(bench.host.is_inside(&path, workspace.tmp()));
        assert!(bench.host.is_inside(&path, &path.join("a/../b")));
        assert!(!bench.host.is_inside(&path, &path.join("../../other/work")));
    }

    #[tokio::test]
    async fn a_configured_directory_that_is_missing_stops_the_start() {
        let bench = Bench::new().await;
        let mut settings = bench.settings();
        settings.terminal.writable_paths = vec!["/nowhere/at/all".into()];
        let error = Host::open(settings).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "`terminal.writable_paths`: the directory `/nowhere/at/all` cannot be used"
        );
    }
}
