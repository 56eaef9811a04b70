//! How fast the file tools are, without a server around them: `cargo bench
//! --bench tools`. Prints one line for each; where `rg` is installed the same
//! search by it stands beside ours.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark stops where something is not as it should be, and prints"
)]

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermes_server::base::Clock;
use hermes_server::config::{Config, Sources};
use hermes_server::live::hub::Hub;
use hermes_server::model::id::{CallId, SessionId, TenantId, TurnId};
use hermes_server::tool::registry::Registry;
use hermes_server::tool::{Call, Host, HostSettings};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 7;
const FILES: usize = 20_000;

#[tokio::main]
async fn main() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::system();
    let config = Config::load(&Sources::default()).unwrap();
    let host = Host::open(HostSettings {
        known: hermes_server::guard::redact::Known::default(),
        deny: Vec::new(),
        policy: Default::default(),
        container_guard: hermes_server::guard::standing::ContainerGuard::Skip,
        scanner: Default::default(),
        exec_program: "/nonexistent".into(),
        data_dir: directory.path().to_owned(),
        terminal: config.terminal,
        variables: Vec::new(),
        files: config.files,
        skills: Vec::new(),
        code: config.code_execution,
        home: "/home/nobody".into(),
        agent_home: "/home/nobody/.hermes".into(),
    });
    let bench = Bench {
        host: Arc::new(host.await.unwrap()),
        registry: Registry::collect(),
        tenant: TenantId::new(&clock),
        session: SessionId::new(&clock),
        clock,
    };
    let root = bench
        .host
        .workspace(bench.tenant, bench.session)
        .await
        .unwrap()
        .root()
        .to_owned();
    fill(&root);
    let page = bench.best("read_file", json!({"path": "large.txt"})).await;
    println!("read_file, page 1 of 1 GB: {page:?} (aim: 5 ms)");
    let ours = bench
        .best(
            "search_files",
            json!({"pattern": "needle_[0-9]+", "path": "tree", "output_mode": "count"}),
        )
        .await;
    println!(
        "search_files, {FILES} files: {ours:?}{}",
        beside(&root, &["-c", "needle_[0-9]+", "tree"], ours)
    );
    let ours = bench
        .best(
            "search_files",
            json!({"pattern": "*.rs", "path": "tree", "target": "files"}),
        )
        .await;
    println!(
        "search_files by name, {FILES} files: {ours:?}{}",
        beside(&root, &["--files", "-g", "*.rs", "tree"], ours)
    );
}

struct Bench {
    host: Arc<Host>,
    registry: Registry,
    tenant: TenantId,
    session: SessionId,
    clock: Clock,
}

impl Bench {
    /// The best of several runs; the first warms up.
    async fn best(&self, tool: &str, arguments: Value) -> Duration {
        let mut best = Duration::MAX;
        for _ in 0..=ROUNDS {
            let call = self.call(arguments.clone());
            let began = Instant::now();
            let done = self.registry.get(tool).unwrap().run(call).await;
            best = best.min(began.elapsed());
            assert!(!done.failed, "{}", done.result);
        }
        best
    }

    fn call(&self, arguments: Value) -> Call {
        Call {
            tenant_id: self.tenant,
            session_id: self.session,
            call_id: CallId::new(&self.clock),
            arguments,
            cwd: self.host.workspace_path(self.tenant, self.session),
            todo: "[]".to_owned(),
            seen_files: String::new(),
            records: None,
            tools: Arc::default(),
            pen: Hub::default().write(self.session, TurnId::new(&self.clock), 0).pen(),
            nest: None,
            cancel: CancellationToken::new(),
            clock: self.clock.clone(),
            host: Arc::clone(&self.host),
        }
    }
}

fn fill(root: &Path) {
    let mut large = std::io::BufWriter::new(std::fs::File::create(root.join("large.txt")).unwrap());
    let block = "a line of some length that is read and counted\n".repeat(1_000);
    for _ in 0..(1_usize << 30).div_ceil(block.len()) {
        large.write_all(block.as_bytes()).unwrap();
    }
    let text = "fn hay() { let straw = 1; }\n".repeat(100);
    for number in 0..FILES {
        let directory = root.join(format!("tree/{}", number / 200));
        std::fs::create_dir_all(&directory).unwrap();
        let needle = if number % 100 == 0 {
            format!("needle_{number}\n")
        } else {
            String::new()
        };
        std::fs::write(directory.join(format!("{number}.rs")), format!("{text}{needle}")).unwrap();
    }
}

/// The same by ripgrep, where it is installed.
fn beside(root: &Path, arguments: &[&str], ours: Duration) -> String {
    let run = || {
        let began = Instant::now();
        let done = Command::new("rg").args(arguments).current_dir(root).output().ok()?;
        done.status.success().then(|| began.elapsed())
    };
    let best = (0..=ROUNDS).filter_map(|_| run()).min();
    best.map_or(", rg is not installed".to_owned(), |theirs| {
        let share = ours.as_secs_f64() / theirs.as_secs_f64();
        format!(", rg {theirs:?}: {share:.2} times (aim: 1.2)")
    })
}
