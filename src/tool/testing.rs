//! A host in a directory of its own, for unit tests. It has no binary to
//! supervise commands with, so commands cannot run on it; files and lists can.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Call, Done, Host, HostSettings, Place, Tool, file_views};
use crate::base::Clock;
use crate::config::{Config, Sources};
use crate::environment::{ScannerSettings, Workspace};
use crate::guard::policy::Policy;
use crate::guard::redact::Known;
use crate::guard::standing::ContainerGuard;
use crate::live::hub::Hub;
use crate::model::id::{CallId, SessionId, TenantId, TurnId};

pub(crate) struct Bench {
    directory: PathBuf,
    pub(crate) host: Arc<Host>,
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    clock: Clock,
    /// What the calls so far saw of files.
    seen: RefCell<String>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let clock = Clock::system();
        let session = SessionId::new(&clock);
        let directory = std::env::temp_dir().join(format!("hermes-bench-{session}"));
        let host = Host::open(settings(&directory)).await.unwrap();
        Self {
            directory,
            host: Arc::new(host),
            tenant: TenantId::new(&clock),
            session,
            clock,
            seen: RefCell::default(),
        }
    }

    pub(crate) fn settings(&self) -> HostSettings {
        settings(&self.directory)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.host.workspace_path(self.tenant, self.session)
    }

    pub(crate) async fn workspace(&self) -> Workspace {
        self.host.workspace(self.tenant, self.session).await.unwrap()
    }

    pub(crate) async fn run(&self, tool: &dyn Tool, arguments: serde_json::Value) -> Done {
        let done = tool.run(self.call(arguments)).await;
        self.saw(tool.spec().name, &done.writes.files);
        done
    }

    /// Notes that a tool ran, as storing its result does.
    pub(crate) fn saw(&self, tool: &str, news: &[file_views::FileNews]) {
        let seen = file_views::after_call(&self.seen_files(), tool, news);
        if let Some(seen) = seen {
            self.seen.replace(seen);
        }
    }

    fn seen_files(&self) -> String {
        self.seen.borrow().clone()
    }

    pub(crate) fn call(&self, arguments: serde_json::Value) -> Call {
        let pen = Hub::default().write(self.session, TurnId::new(&self.clock), 0).pen();
        Call {
            tenant_id: self.tenant,
            session_id: self.session,
            call_id: CallId::new(&self.clock),
            arguments,
            cwd: self.root(),
            todo: "[]".to_owned(),
            seen_files: self.seen_files(),
            records: None,
            tools: Arc::default(),
            pen,
            allowance: None,
            nest: None,
            cancel: CancellationToken::new(),
            row: crate::environment::Row::default(),
            time: None,
            clock: self.clock.clone(),
            host: Arc::clone(&self.host),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

/// A place for judging, without a disk.
pub(crate) fn place(cwd: &Path) -> Place<'_> {
    Place {
        workspace: Path::new("/data/work"),
        cwd,
        backend: "local",
        policies: &[],
        unread: None,
    }
}

fn settings(directory: &Path) -> HostSettings {
    HostSettings {
        deny: Vec::new(),
        policy: Policy::default(),
        container_guard: ContainerGuard::Skip,
        known: Known::default(),
        scanner: ScannerSettings::default(),
        exec_program: "/nonexistent/hermes-server".into(),
        data_dir: directory.to_path_buf(),
        terminal: Config::load(&Sources::default()).unwrap().terminal,
        variables: Vec::new(),
        files: Config::load(&Sources::default()).unwrap().files,
        skills: Config::load(&Sources::default()).unwrap().skills,
        memory_approval: false,
        checkpoints: Config::load(&Sources::default()).unwrap().checkpoints,
        code: Config::load(&Sources::default()).unwrap().code_execution,
        home: "/home/alice".into(),
        agent_home: "/home/alice/.hermes".into(),
    }
}
