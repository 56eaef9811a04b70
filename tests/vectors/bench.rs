//! Real tools on a host in a directory of its own. It has no binary to supervise
//! commands with, so commands cannot run on it; files and lists can.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_server::base::Clock;
use hermes_server::config::{Config, Sources, Terminal};
use hermes_server::environment::ScannerSettings;
use hermes_server::guard::policy::Policy;
use hermes_server::guard::standing::ContainerGuard;
use hermes_server::live::hub::Hub;
use hermes_server::model::id::{CallId, SessionId, TenantId, TurnId};
use hermes_server::tool::registry::Registry;
use hermes_server::tool::{Call, Host, HostSettings};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

pub struct Bench {
    _directory: tempfile::TempDir,
    runtime: Runtime,
    host: Arc<Host>,
    clock: Clock,
    tenant: TenantId,
    session: SessionId,
}

impl Bench {
    /// With the settings of the terminal changed.
    pub fn with(change: impl FnOnce(&mut Terminal)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = Config::load(&Sources::default()).unwrap();
        let mut settings = HostSettings {
            known: hermes_server::guard::redact::Known::default(),
            exec_program: "/nonexistent/hermes-server".into(),
            data_dir: directory.path().to_path_buf(),
            terminal: config.terminal,
            files: config.files,
            deny: Vec::new(),
            policy: Policy::default(),
            container_guard: ContainerGuard::Skip,
            scanner: ScannerSettings::default(),
            variables: Vec::new(),
            skills: config.skills,
            memory_approval: false,
            checkpoints: config.checkpoints,
            code: config.code_execution,
            home: "/home/alice".into(),
            agent_home: "/home/alice/.hermes".into(),
        };
        change(&mut settings.terminal);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let host = Arc::new(runtime.block_on(Host::open(settings)).unwrap());
        let clock = Clock::system();
        Self {
            _directory: directory,
            runtime,
            host,
            tenant: TenantId::new(&clock),
            session: SessionId::new(&clock),
            clock,
        }
    }

    /// The session's workspace.
    pub fn root(&self) -> PathBuf {
        self.host.workspace_path(self.tenant, self.session)
    }

    /// The result of a call, as the model reads it.
    pub fn run(&self, tool: &str, arguments: Value) -> Value {
        let registry = Registry::collect();
        let tool = registry.get(tool).unwrap_or_else(|| panic!("no tool `{tool}`"));
        let pen = Hub::default().write(self.session, TurnId::new(&self.clock), 0).pen();
        let call = Call {
            tenant_id: self.tenant,
            session_id: self.session,
            call_id: CallId::new(&self.clock),
            arguments,
            cwd: self.root(),
            todo: "[]".to_owned(),
            seen_files: String::new(),
            records: None,
            tools: Arc::default(),
            pen,
            allowance: None,
            nest: None,
            cancel: CancellationToken::new(),
            row: hermes_server::environment::Row::default(),
            time: None,
            clock: self.clock.clone(),
            host: Arc::clone(&self.host),
        };
        let done = self.runtime.block_on(tool.run(call));
        serde_json::from_str(&done.result).unwrap_or(Value::String(done.result))
    }
}
