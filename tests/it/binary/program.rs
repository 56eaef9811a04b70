//! One process of the built binary, and requests to it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{ExitStatus, Output, Stdio};

use reqwest::{Client, Method, RequestBuilder};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, Command};

use crate::harness::http::{Answer, Events, WireFrame};
use crate::harness::{PATIENCE, Place};

pub(super) const PRESET: &str = "hermes-api-server";

/// The binary with nothing of this process's environment.
pub(super) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hermes-server"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
        .env("HOME", "/nonexistent")
        .kill_on_drop(true)
        .stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(super) async fn run(place: &Place, args: &[&str]) -> Output {
    finished(binary().current_dir(&place.directory).args(args)).await
}

pub(super) async fn finished(command: &mut Command) -> Output {
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    output.expect("an end in time").unwrap()
}

pub(super) fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

pub(super) fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// The flags that name the place's store.
pub(super) fn store_flags(place: &Place) -> Vec<String> {
    let mut flags = vec!["--data-dir".to_owned(), "data".to_owned()];
    if let Some(url) = &place.config.store.url {
        flags.extend(["--database-url".to_owned(), url.expose().to_owned()]);
    }
    flags
}

pub(super) fn data_dir(place: &Place) -> PathBuf {
    place.directory.join("data")
}

pub(super) fn log(place: &Place) -> String {
    std::fs::read_to_string(place.directory.join("server.log")).unwrap()
}

/// A server that answers.
pub(super) struct Program {
    child: Child,
    /// What it said at its start.
    pub(super) greeting: String,
    pub(super) base: String,
    pub(super) key: String,
    client: Client,
}

impl Program {
    pub(super) async fn start(place: &Place) -> Self {
        Self::start_with(place, &[]).await
    }

    pub(super) async fn start_with(place: &Place, variables: &[(&str, &str)]) -> Self {
        let mut command = binary();
        command.envs(variables.iter().copied());
        Self::start_command(place, command).await
    }

    /// `command` is the binary, or something that becomes it.
    pub(super) async fn start_command(place: &Place, mut command: Command) -> Self {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(place.directory.join("server.log"));
        let mut child = command
            .current_dir(&place.directory)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(store_flags(place))
            .stdout(Stdio::piped())
            .stderr(log.unwrap())
            .spawn()
            .unwrap();
        let greeting = greeting(&mut child, place).await;
        let base = greeting
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .unwrap()
            .to_owned();
        let configured = command.as_std().get_envs().find(|(name, _)| *name == "HERMES_API_KEY");
        let key = match configured.and_then(|(_, value)| value).and_then(OsStr::to_str) {
            Some(key) => key.to_owned(),
            None => std::fs::read_to_string(data_dir(place).join("api-key")).unwrap_or_default(),
        };
        Self {
            child,
            greeting,
            base,
            key: key.trim().to_owned(),
            // A stream of 50 MB beside other tests takes its time.
            client: Client::builder().timeout(3 * PATIENCE).build().unwrap(),
        }
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap()).unwrap()
    }

    pub(super) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(super) async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .expect("an end in time")
            .unwrap()
    }

    /// Stops as an operator would.
    pub(super) async fn stop(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.ended().await.code(), Some(0));
    }

    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.key)
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(&body).send().await.unwrap()).await
    }

    /// The id of a new session.
    pub(super) async fn session(&self) -> String {
        let made = self.post("/v1/sessions", json!({"preset": PRESET})).await;
        assert_eq!(made.status, 201, "{}", made.body);
        made.body["id"].as_str().unwrap().to_owned()
    }

    /// Posts a turn; its id.
    pub(super) async fn turn(&self, session: &str, input: &str) -> String {
        let made = self
            .post(&format!("/v1/sessions/{session}/turns"), json!({"input": input}))
            .await;
        assert_eq!(made.status, 202, "{}", made.body);
        made.body["id"].as_str().unwrap().to_owned()
    }

    /// The session's stream behind a cursor.
    pub(super) async fn follow(&self, session: &str, cursor: &str) -> Events {
        let path = format!("/v1/sessions/{session}/stream?after={cursor}");
        let response = self.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Events::of(response)
    }

    pub(super) async fn decide(&self, approval: &str, choice: &str) -> Answer {
        let path = format!("/v1/approvals/{approval}/decision");
        self.post(&path, json!({"choice": choice})).await
    }

    pub(super) async fn messages(&self, session: &str) -> Vec<Value> {
        let page = self.get(&format!("/v1/sessions/{session}/messages")).await;
        page.body["data"].as_array().unwrap().clone()
    }

    /// Durable events of the session.
    pub(super) async fn log(&self, session: &str) -> Vec<Value> {
        let page = self.get(&format!("/v1/sessions/{session}/events?limit=200")).await;
        page.body["data"].as_array().unwrap().clone()
    }
}

/// Frames to the first of that type, which is the last of them.
pub(super) async fn through(events: &mut Events, event: &str) -> Vec<WireFrame> {
    let mut frames = Vec::new();
    loop {
        let Some(frame) = events.next().await else {
            let seen: Vec<&str> = frames.iter().map(|frame: &WireFrame| frame.event.as_str()).collect();
            panic!("no {event} in {seen:?}");
        };
        let is_last = frame.event == event;
        frames.push(frame);
        if is_last {
            return frames;
        }
    }
}

pub(super) fn last_cursor(frames: &[WireFrame]) -> String {
    frames.iter().rev().find_map(|frame| frame.id.clone()).unwrap()
}

/// The files of a session.
pub(super) fn workspace(place: &Place, session: &str) -> PathBuf {
    let tenants = std::fs::read_dir(data_dir(place).join("workspaces")).unwrap();
    let mut found = tenants.map(|tenant| tenant.unwrap().path().join(session).join("work"));
    found.find(|path| path.is_dir()).unwrap()
}

/// Processes with `mark` on their command line. Their own idea of their number
/// means nothing here where commands have a process space of their own.
pub(super) fn marked(mark: &str) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let carries = |process: &PathBuf| {
        let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(mark)
    };
    let number = |path: PathBuf| Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?);
    processes.filter(carries).filter_map(number).collect()
}

/// Waits for the end of every such process.
pub(super) async fn all_die(mark: &str) {
    loop {
        let processes = marked(mark);
        if processes.is_empty() {
            return;
        }
        for pid in processes {
            let Ok(process) = pidfd_open(pid, PidfdFlags::NONBLOCK) else {
                continue;
            };
            #[allow(
                deprecated,
                reason = "its replacement is unsafe; an owned descriptor is all that is asked for"
            )]
            let process = AsyncFd::new(process).unwrap();
            let gone = tokio::time::timeout(PATIENCE, process.readable()).await;
            drop(gone.expect("the process dies").unwrap());
        }
    }
}

/// Part of a command: a child of the shell that lasts until its input ends.
pub(super) fn lasting(mark: &str) -> String {
    format!("mkfifo {mark}; echo begun; cat {mark}; true")
}

/// Waits, behind `begun`, until the child runs. Its input ends when the file is
/// closed.
pub(super) async fn child_runs(place: &Place, session: &str, mark: &str) -> tokio::fs::File {
    let path = workspace(place, session).join(mark);
    // Opening for writing waits for the reader.
    let opened = tokio::time::timeout(PATIENCE, tokio::fs::OpenOptions::new().write(true).open(path)).await;
    assert!(!marked(mark).is_empty());
    opened.expect("the child in time").unwrap()
}

/// A word that no other process has on its command line.
pub(super) fn mark(place: &Place) -> String {
    format!("mark-{:032x}", place.clock.uuid())
}

/// Everything the server prints at its start; it is written in one piece and
/// ends with an empty line behind the curl lines.
async fn greeting(child: &mut Child, place: &Place) -> String {
    let mut output = child.stdout.take().unwrap();
    let mut text = String::new();
    let read = async {
        while !(text.contains("/v1/sessions") && text.ends_with("\n\n")) {
            let mut buffer = vec![0; 16 << 10];
            match output.read(&mut buffer).await.unwrap() {
                0 => return false,
                count => text.push_str(std::str::from_utf8(&buffer[..count]).unwrap()),
            }
        }
        true
    };
    let came = tokio::time::timeout(PATIENCE, read).await;
    assert_eq!(came, Ok(true), "no greeting; the log says: {}", log(place));
    // Whoever printed goes on with a reader.
    child.stdout = Some(output);
    text
}
