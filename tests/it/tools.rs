//! The tools run for real: commands through the built binary, files in a
//! workspace of their own.

mod checks;
mod hostile;
mod planted;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_server::base::Clock;
use hermes_server::config::{Config, Sources};
use hermes_server::environment::ScannerSettings;
use hermes_server::guard::policy::Policy;
use hermes_server::guard::redact::Known;
use hermes_server::guard::standing::ContainerGuard;
use hermes_server::live::drafts::Frame;
use hermes_server::live::hub::{Hub, Writer};
use hermes_server::model::event::EventBody;
use hermes_server::model::id::{CallId, SessionId, TenantId, TurnId};
use hermes_server::model::session::ToolsetSelection;
use hermes_server::tool::budget::Budget;
use hermes_server::tool::registry::live::Live;
use hermes_server::tool::registry::{Entry, Registry, Selection};
use hermes_server::tool::{Call, Done, Host, HostSettings, Judged, Place, dispatch, file_views};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// One session on a host of its own, its directory removed at the end.
struct Bench {
    directory: PathBuf,
    registry: Arc<Registry>,
    live: Live,
    host: Arc<Host>,
    tenant: TenantId,
    session: SessionId,
    clock: Clock,
    hub: Hub,
    writer: Writer,
    cwd: PathBuf,
    seen: RefCell<String>,
}

/// Results that a model reads.
fn model(budget: Budget) -> dispatch::Reader {
    dispatch::Reader::Model(budget)
}

impl Bench {
    async fn new() -> Self {
        let clock = Clock::system();
        let (tenant, session) = (TenantId::new(&clock), SessionId::new(&clock));
        let live = Live::new(clock.clone(), BTreeMap::new());
        let directory = std::env::temp_dir().join(format!("hermes-tools-{session}"));
        let host = Host::open(HostSettings {
            known: Known::default(),
            deny: vec!["*forbidden-word*".to_owned()],
            policy: Policy::default(),
            container_guard: ContainerGuard::Skip,
            scanner: ScannerSettings::default(),
            exec_program: env!("CARGO_BIN_EXE_hermes-server").into(),
            data_dir: directory.clone(),
            terminal: Config::load(&Sources::default()).unwrap().terminal,
            variables: vec![("OPENAI_API_KEY".to_owned(), "not-for-commands".to_owned())],
            files: Config::load(&Sources::default()).unwrap().files,
            skills: Config::load(&Sources::default()).unwrap().skills,
            memory_approval: false,
            checkpoints: Config::load(&Sources::default()).unwrap().checkpoints,
            code: Config::load(&Sources::default()).unwrap().code_execution,
            home: "/home/alice".into(),
            agent_home: "/home/alice/.hermes".into(),
        });
        let host = host.await.unwrap();
        assert_eq!(host.no_commands(), None);
        let workspace = host.workspace(tenant, session).await.unwrap();
        std::fs::write(workspace.root().join("notes.txt"), "one\ntwo\n").unwrap();
        let hub = Hub::default();
        let writer = hub.write(session, TurnId::new(&clock), 0);
        Self {
            directory,
            registry: live.shared(),
            live,
            cwd: workspace.root().to_path_buf(),
            host: Arc::new(host),
            tenant,
            session,
            clock,
            seen: RefCell::default(),
            hub,
            writer,
        }
    }

    fn root(&self) -> PathBuf {
        self.host.workspace_path(self.tenant, self.session)
    }

    fn call(&self, arguments: Value) -> Call {
        Call {
            tenant_id: self.tenant,
            session_id: self.session,
            call_id: CallId::new(&self.clock),
            arguments,
            cwd: self.cwd.clone(),
            todo: "[]".to_owned(),
            seen_files: self.seen_files(),
            records: None,
            tools: Arc::default(),
            pen: self.writer.pen(),
            allowance: None,
            nest: None,
            cancel: CancellationToken::new(),
            row: hermes_server::environment::Row::default(),
            time: None,
            clock: self.clock.clone(),
            host: Arc::clone(&self.host),
        }
    }

    fn tool(&self, name: &str) -> Arc<Entry> {
        self.registry.get(name).unwrap().clone()
    }

    async fn run(&self, tool: &str, arguments: Value) -> Done {
        let done = dispatch::run(self.tool(tool), self.call(arguments), model(Budget::default()), None).await;
        if let Some(seen) = file_views::after_call(&self.seen_files(), tool, &done.writes.files) {
            self.seen.replace(seen);
        }
        done
    }

    fn seen_files(&self) -> String {
        self.seen.borrow().clone()
    }

    /// Runs a command and goes where it ended.
    async fn terminal(&mut self, arguments: Value) -> (Done, Value) {
        let done = self.run("terminal", arguments).await;
        if let Some(cwd) = &done.writes.cwd {
            self.cwd = cwd.into();
        }
        let result = read(&done);
        (done, result)
    }

    /// What viewers have been shown of the output so far.
    fn streamed(&self) -> String {
        let (_, frames) = self.hub.read(self.session).frames(None, 0, 0, None);
        frames.into_iter().map(output).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

fn output(frame: Frame) -> String {
    match frame.body {
        EventBody::ToolCallOutputDelta(data) => data.text,
        _ => String::new(),
    }
}

fn read(done: &Done) -> Value {
    serde_json::from_str(&done.result).unwrap()
}

/// Before `EOF&` a rewriter that took the quotes wrong would have put something,
/// and so made it the end of the here-document.
#[tokio::test]
async fn what_runs_is_the_judged_text_to_the_letter() {
    let mut bench = Bench::new().await;
    let script = "cat $'\\'' <<\"{ EOF& }\" \\' 2>&1\ntrue &&\nEOF&\ntouch sneaked\n{ EOF& }\ntrue";
    let (done, _) = bench.terminal(json!({"command": script})).await;
    assert!(!done.failed, "{}", done.result);
    assert!(!bench.root().join("sneaked").exists());
}

#[tokio::test]
async fn every_tool_runs_its_example() {
    let bench = Bench::new().await;
    assert!(bench.registry.all().len() >= 4);
    for tool in bench.registry.all() {
        let name = tool.name();
        let place = Place {
            workspace: &bench.root(),
            cwd: &bench.cwd,
            backend: "local",
            policies: &[],
            unread: None,
        };
        // Of a program nobody knows what stands in it.
        let asked = name == "execute_code";
        let judged = tool.judge(&tool.example(), &place, &bench.host);
        assert_eq!(judged != Judged::Allow, asked, "{name}: {judged:?}");
        let done = bench.run(name, tool.example()).await;
        // What a change of the memory or of a job comes to is known under its lock;
        // what is stored of a user, and who answers, is not on this bench.
        let elsewhere = ["memory", "session_search", "clarify", "cronjob", "delegate_task"];
        if elsewhere.contains(&name) {
            continue;
        }
        assert!(
            !done.failed && read(&done)["error"].is_null(),
            "{name}: {}",
            done.result
        );
    }
}

#[tokio::test]
async fn a_session_is_offered_every_tool_this_machine_can_run() {
    let bench = Bench::new().await;
    let presets = ["hermes-api-server".to_owned()];
    let session = ToolsetSelection::default();
    let selection = Selection {
        presets: &presets,
        session: Some(&session),
        ..Selection::default()
    };
    let tools = bench
        .registry
        .select(&selection, bench.live.offers(&bench.host))
        .unwrap();
    let all: Vec<&str> = bench.registry.all().iter().map(|tool| tool.name()).collect();
    let preset = bench.registry.catalog().resolve("hermes-api-server");
    let wanted: Vec<&str> = all.into_iter().filter(|name| preset.contains(*name)).collect();
    assert_eq!(tools.names(), wanted);
    assert!(wanted.contains(&"terminal") && wanted.contains(&"read_file"));
    assert!(
        tools
            .absent()
            .iter()
            .all(|absent| absent.reason == "not built into this server")
    );
}

/// The first half is flushed before the second exists.
#[tokio::test]
async fn viewers_see_no_secret_that_comes_in_two_pieces() {
    let mut bench = Bench::new().await;
    let token = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let (one, two) = token.split_at(20);
    let script =
        format!("printf 'a {one}'; sleep 0.3; printf '{two} b\\n'; sleep 0.1; printf '{one}' >&2; printf 'z\\n' >&2");
    let (_, result) = bench.terminal(json!({"command": script})).await;
    for text in [bench.streamed(), result["output"].as_str().unwrap().to_owned()] {
        assert!(text.contains("a ghp_01") && text.contains(" b\n"), "{text}");
        assert!(!text.contains("89abcdef") && !text.contains("ABCDEFGHIJ"), "{text}");
    }
}

#[tokio::test]
async fn a_command_streams_its_output_and_returns_it() {
    let mut bench = Bench::new().await;
    let script = r"printf 'out \033[31mred\033[0m\n'; printf 'err \377\n' >&2; exit 3";
    let (done, result) = bench.terminal(json!({"command": script})).await;
    assert_eq!((done.exit_code, done.failed, done.cancelled), (Some(3), true, false));
    assert_eq!((&result["exit_code"], &result["error"]), (&json!(3), &Value::Null));
    let output = result["output"].as_str().unwrap();
    assert!(
        output.contains("out red") && output.contains("err \u{fffd}"),
        "{output}"
    );
    assert!(bench.streamed().contains("out \u{1b}[31mred"), "{}", bench.streamed());
    let (done, result) = bench.terminal(json!({"command": "grep -q three notes.txt"})).await;
    assert!(
        done.failed
            && result["exit_code_meaning"]
                .as_str()
                .unwrap()
                .contains("no lines matched")
    );
}

#[tokio::test]
async fn the_session_stands_where_the_last_command_ended() {
    let mut bench = Bench::new().await;
    bench.terminal(json!({"command": "mkdir -p a/b && cd a/b"})).await;
    assert_eq!(bench.cwd, bench.root().join("a/b"));
    let (done, result) = bench.terminal(json!({"command": "pwd; cd /"})).await;
    assert_eq!(result["output"], json!(bench.cwd));
    assert!(done.writes.cwd.is_none() && result["note"].as_str().unwrap().contains("outside the workspace"));
    let (_, result) = bench.terminal(json!({"command": "pwd", "workdir": "~"})).await;
    assert_eq!(result["output"], json!(bench.root()));
    let (done, result) = bench.terminal(json!({"command": "pwd", "workdir": "gone"})).await;
    assert!(
        done.failed
            && result["error"]
                .as_str()
                .unwrap()
                .contains("not a directory of the workspace")
    );
    let read_there = bench.run("read_file", json!({"path": "notes.txt"})).await;
    assert_eq!(read(&read_there)["content"], "1|one\n2|two");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_stopped() {
    let mut bench = Bench::new().await;
    let (done, result) = bench
        .terminal(json!({"command": "echo begun; sleep 60", "timeout": 1}))
        .await;
    assert_eq!(
        (done.exit_code, done.failed, done.cancelled, done.survived),
        (Some(124), true, false, false)
    );
    assert_eq!(result["output"], "begun\n[Command timed out after 1s]");
}

#[tokio::test]
async fn a_cancelled_command_returns_what_it_printed() {
    let bench = Bench::new().await;
    let call = bench.call(json!({"command": "echo begun; sleep 60"}));
    let cancel = call.cancel.clone();
    let running = dispatch::run(bench.tool("terminal"), call, model(Budget::default()), None);
    let stop = async {
        let mut viewer = bench.hub.read(bench.session);
        while !bench.streamed().contains("begun") {
            viewer.changed().await;
        }
        cancel.cancel();
    };
    let (done, ()) = tokio::join!(running, stop);
    assert_eq!(
        (done.exit_code, done.cancelled, done.survived),
        (Some(130), true, false)
    );
    assert_eq!(read(&done)["output"], "begun\n[Command interrupted]");
}

#[tokio::test]
async fn commands_see_neither_the_servers_secrets_nor_other_sessions() {
    let mut bench = Bench::new().await;
    let other = bench
        .host
        .workspace(bench.tenant, SessionId::new(&bench.clock))
        .await
        .unwrap();
    let secret = other.root().join("secret.txt");
    std::fs::write(&secret, "theirs").unwrap();
    let (_, result) = bench
        .terminal(json!({"command": format!("cat {}; env", secret.display())}))
        .await;
    let output = result["output"].as_str().unwrap();
    assert!(
        !output.contains("theirs") && !output.contains("not-for-commands"),
        "{output}"
    );
    assert!(output.contains("HOME="), "{output}");
    let done = bench.run("read_file", json!({"path": secret})).await;
    assert!(read(&done)["error"].as_str().unwrap().contains("outside the workspace"));
}

#[tokio::test]
async fn what_cannot_run_here_is_refused_without_asking_anyone() {
    let mut bench = Bench::new().await;
    for arguments in [
        json!({"command": "rm -rf x", "pty": true}),
        json!({"command": "npm run dev"}),
        json!({"command": "ls", "workdir": "/etc"}),
        json!({"command": ""}),
    ] {
        let workspace = bench.root();
        let place = Place {
            workspace: &workspace,
            cwd: &bench.cwd,
            backend: "local",
            policies: &[],
            unread: None,
        };
        assert_eq!(
            bench.tool("terminal").judge(&arguments, &place, &bench.host),
            Judged::Allow
        );
        let (done, result) = bench.terminal(arguments.clone()).await;
        assert!(done.failed && done.exit_code.is_none(), "{arguments}");
        assert_eq!((&result["status"], &result["exit_code"]), (&json!("error"), &json!(-1)));
    }
}

#[tokio::test]
async fn dangerous_commands_ask_and_the_floor_refuses() {
    let bench = Bench::new().await;
    let workspace = bench.root();
    let place = Place {
        workspace: &workspace,
        cwd: &bench.cwd,
        backend: "local",
        policies: &[],
        unread: None,
    };
    let judge = |command: &str| {
        bench
            .tool("terminal")
            .judge(&json!({"command": command}), &place, &bench.host)
    };
    assert_eq!(judge("ls -la"), Judged::Allow);
    assert!(matches!(judge("rm -rf build"), Judged::Ask { findings } if !findings.is_empty()));
    assert!(matches!(judge("rm -rf /"), Judged::Deny { message } if message.contains("never allowed")));
}

#[tokio::test]
async fn a_result_too_long_for_the_model_can_be_read_in_parts() {
    let mut bench = Bench::new().await;
    let done = dispatch::run(
        bench.tool("terminal"),
        bench.call(json!({"command": "seq 1 8000"})),
        model(Budget::for_window(16_000)),
        None,
    );
    let result = read(&done.await);
    assert_eq!(result["exit_code"], 0);
    let shown = result["output"].as_str().unwrap();
    let path = shown
        .lines()
        .find_map(|line| line.strip_prefix("Full output saved to: "))
        .unwrap();
    let page = bench.run("read_file", json!({"path": path, "offset": 7999})).await;
    assert_eq!(read(&page)["content"], "7999|7999\n8000|8000");
    let (done, _) = bench.terminal(json!({"command": format!("wc -l < {path}")})).await;
    assert_eq!(read(&done)["output"], "7999");
}
