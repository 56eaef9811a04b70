//! How fast tools are, without a server around them: `cargo bench --bench tools`.
//! What a session is offered, what stands around a call, and the file tools on
//! large trees. Prints one line for each; where `rg` is installed the same search
//! by it stands beside ours.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
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

use futures::future::BoxFuture;
use hermes_server::base::Clock;
use hermes_server::config::{Config, Sources};
use hermes_server::live::hub::Hub;
use hermes_server::model::call::{Effect, Footprint};
use hermes_server::model::id::{CallId, SessionId, TenantId, TurnId};
use hermes_server::provider;
use hermes_server::tool::budget::{Budget, ResultLimit};
use hermes_server::tool::dispatch::{self, Reader};
use hermes_server::tool::registry::live::Live;
use hermes_server::tool::registry::{Entry, Recent, Registry, Selection};
use hermes_server::tool::session_tools::SessionTools;
use hermes_server::tool::{Call, Done, Host, HostSettings, Judged, Place, Spec, Tool};
use hermes_server::turn::step;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 7;
const FILES: usize = 20_000;
/// In one directory.
const FLAT: usize = 200_000;
/// Small things are done so often, and the mean of the best round counts.
const OFTEN: u32 = 2_000;

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
        skills: config.skills,
        memory_approval: false,
        checkpoints: config.checkpoints,
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
    offers(&bench);
    dispatches(&bench).await;
    fill(&root);
    let page = bench.best("read_file", json!({"path": "large.txt"})).await;
    println!("read_file, page 1 of 1 GB: {page:?} (aim: 5 ms)");
    let files = format!("{FILES} files");
    for (what, arguments, theirs) in [
        (
            files.as_str(),
            json!({"pattern": "needle_[0-9]+", "path": "tree", "output_mode": "count"}),
            &["-c", "needle_[0-9]+", "tree"][..],
        ),
        (
            "the first 50 of many matches",
            json!({"pattern": "straw", "path": "tree"}),
            &["-n", "straw", "tree"],
        ),
        (
            "by name",
            json!({"pattern": "*.rs", "path": "tree", "target": "files"}),
            &["--files", "--sortr", "modified", "-g", "*.rs", "tree"],
        ),
        (
            "200000 files in one directory",
            json!({"pattern": "needle_[0-9]+", "path": "flat", "output_mode": "count"}),
            &["-c", "needle_[0-9]+", "flat"],
        ),
        (
            "200000 files in one directory by name",
            json!({"pattern": "*77.txt", "path": "flat", "target": "files"}),
            &["--files", "--sortr", "modified", "-g", "*77.txt", "flat"],
        ),
    ] {
        let ours = bench.best("search_files", arguments).await;
        println!("search_files, {what}: {ours:?}{}", beside(&root, theirs, ours));
    }
}

/// What every commit of a turn asks for: its tools and how the model is told of them.
fn offers(bench: &Bench) {
    let live = Live::new(bench.clock.clone(), Default::default());
    let preset = ["hermes-api-server".to_owned()];
    let selection = Selection {
        presets: &preset,
        ..Selection::default()
    };
    let registry = live.of(bench.tenant);
    let made = || registry.select(&selection, live.offers(&bench.host));
    let cold = mean(|| drop(made().unwrap().definitions()));
    let recent = Recent::default();
    let warm = mean(|| {
        let now = bench.clock.now();
        let tools = recent.of((&live.of(bench.tenant), &selection), (&[], &[]), now, made);
        assert!(tools.unwrap().definitions().is_some());
    });
    println!("tools of a session and their definitions: {warm:?} (aim: 50 µs), anew {cold:?}");
}

/// All around a tool that does nothing, but for the commits.
async fn dispatches(bench: &Bench) {
    let entry = Entry::built_in(&Nothing).unwrap();
    let tools = Arc::new(SessionTools::new(vec![entry], Vec::new()));
    let root = bench.host.workspace_path(bench.tenant, bench.session);
    let place = Place {
        workspace: &root,
        cwd: &root,
        backend: "local",
        policies: &[],
        unread: None,
    };
    let mut best = Duration::MAX;
    for _ in 0..=ROUNDS {
        let began = Instant::now();
        for _ in 0..OFTEN {
            let wrote = provider::Call {
                id: "call_1".to_owned(),
                name: "nothing".to_owned(),
                arguments: r#"{"count": "3", "names": "[\"a\"]"}"#.to_owned(),
            };
            let (name, arguments) = step::read_call(&tools, wrote).unwrap();
            let (tool, arguments) = (tools.get(&name).unwrap(), Value::Object(arguments));
            assert_eq!(tool.judge(&arguments, &place, &bench.host), Judged::Allow);
            let call = bench.call(arguments);
            let done = dispatch::run(Arc::clone(tool), call, Reader::Model(Budget::default()), None).await;
            assert_eq!(done.result, r#"{"count":3}"#);
        }
        best = best.min(began.elapsed() / OFTEN);
    }
    println!("dispatch of a tool that does nothing: {best:?} (aim: 100 µs)");
}

fn mean(mut run: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..=ROUNDS {
        let began = Instant::now();
        (0..OFTEN).for_each(|_| run());
        best = best.min(began.elapsed() / OFTEN);
    }
    best
}

/// Counts to three.
struct Nothing;

impl Tool for Nothing {
    fn spec(&self) -> Spec {
        Spec {
            name: "nothing",
            toolset: "bench",
            emoji: "",
            description: "Does nothing.",
            requires_env: &[],
            result_limit: ResultLimit::Default,
        }
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"count": {"type": "integer"},
            "names": {"type": "array", "items": {"type": "string"}}}, "required": ["count"]})
    }

    fn example(&self) -> Value {
        json!({"count": 3})
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Read
    }

    fn footprint(&self, _: &Value, _: &Place<'_>) -> Footprint {
        Footprint::Parallel
    }

    fn subject(&self, _: &Value) -> String {
        String::new()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        let result = json!({"count": call.arguments["count"]}).to_string();
        Box::pin(std::future::ready(Done {
            result,
            ..Done::default()
        }))
    }
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
            allowance: None,
            nest: None,
            cancel: CancellationToken::new(),
            row: hermes_server::environment::Row::default(),
            time: None,
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
    let flat = root.join("flat");
    std::fs::create_dir_all(&flat).unwrap();
    for number in 0..FLAT {
        let text = if number % 1_000 == 0 {
            format!("needle_{number}\n")
        } else {
            String::new()
        };
        std::fs::write(flat.join(format!("{number}.txt")), text).unwrap();
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
