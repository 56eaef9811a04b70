//! One run of a program: its files, its time, its output, and what it came to.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::captured::Captured;
use super::errand::{Errands, Moved};
use super::execute_code::code;
use super::library;
use crate::base::Secret;
use crate::base::random::{NoRandomness, unguessable};
use crate::config::CodeMode;
use crate::environment::{Chunk, Command, EnvironmentError, FileError, Finished, Workspace};
use crate::guard::redact::{Known, Stream};
use crate::live::drafts::Item;
use crate::model::event::OutputStream;
use crate::tool::decoder::Decoder;
use crate::tool::{Call, Done, made};

/// Bytes of the output that the model reads (Hermes, as the next).
const STDOUT_BYTES: usize = 50_000;
const STDERR_BYTES: usize = 10_000;
/// The supervisor's own limit. The program's is kept here, since it stands still
/// while a person is asked.
const AT_MOST: Duration = Duration::from_secs(7 * 86_400);

#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error("`code` is empty")]
    Empty,
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error("the program's directory cannot be made")]
    Directory(#[from] FileError),
    #[error(transparent)]
    Chance(#[from] NoRandomness),
}

/// The result of a program that was not run, or whose end nobody saw.
pub(super) fn not_run(failed: &Failed) -> Done {
    Done {
        // What it did is not known then.
        survived: matches!(failed, Failed::Environment(EnvironmentError::Lost)),
        ..Done::failure(json!({"status": "error", "output": "", "error": told(failed)}).to_string())
    }
}

fn told(failed: &Failed) -> String {
    let mut text = failed.to_string();
    let mut cause = std::error::Error::source(failed);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// How a program ended, and what it said.
struct Ended {
    finished: Finished,
    timed_out: bool,
    stdout: Captured,
    stderr: Captured,
    calls: u32,
}

pub(super) async fn execute(call: &Call) -> Result<Done, Failed> {
    let code = code(&call.arguments);
    if code.trim().is_empty() {
        return Err(Failed::Empty);
    }
    let host = &call.host;
    let workspace = host.workspace(call.tenant_id, call.session_id).await?;
    let chance = unguessable()?.map(|byte| format!("{byte:02x}")).concat();
    // 128 bits for the name, and a token of 256 of its own (Hermes).
    let name = format!("hermes-code-{}", chance.get(..32).unwrap_or_default());
    let token = Secret::new(unguessable()?.map(|byte| format!("{byte:02x}")).concat());
    let tools = call.nest.as_ref().map_or(&[][..], |nest| &nest.tools);
    let module = library::module(tools);
    let files = [("hermes_tools.py", module.as_str()), ("script.py", code), ("lock", "")];
    let line = workspace.line(&name, &files).await?;
    let command = command(call, line.directory(), &token);
    let stop = call.cancel.child_token();
    let whose = (call.call_id, call.nest.clone());
    let errands = Errands::new(line, whose, token, host.code.max_tool_calls, stop.clone());
    let before = made::look(&workspace).await;
    let ended = accompany(call, &workspace, (command, errands), stop).await?;
    let mut done = report(call, ended);
    done.writes.artifacts = made::since(&workspace, before).await;
    Ok(done)
}

fn command(call: &Call, directory: &Path, token: &Secret) -> Command {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (cwd, interpreter) = match call.host.code.mode {
        CodeMode::Project => (call.cwd.clone(), PROJECT),
        CodeMode::Strict => (directory.to_owned(), "exec python3 \"$HERMES_RPC_DIR/script.py\""),
    };
    let imports = match call.host.code.mode {
        CodeMode::Project => format!("{}:{}", text(directory), text(&call.cwd)),
        CodeMode::Strict => text(directory),
    };
    let variables = [
        ("HERMES_RPC_DIR", text(directory)),
        ("HERMES_RPC_TOKEN", token.expose().to_owned()),
        ("PYTHONPATH", imports),
        ("PYTHONUNBUFFERED", "1".to_owned()),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        ("PYTHONIOENCODING", "utf-8".to_owned()),
    ];
    Command {
        script: interpreter.to_owned(),
        cwd,
        timeout: AT_MOST,
        stdin: None,
        environment: variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    }
}

/// The workspace's own interpreter, where it has one.
const PROJECT: &str = "for own in .venv venv; do [ -x \"$own/bin/python\" ] && exec \"$own/bin/python\" \
    \"$HERMES_RPC_DIR/script.py\"; done; exec python3 \"$HERMES_RPC_DIR/script.py\"";

/// A program's time: it stands still while a person is asked.
struct Time {
    left: Duration,
    since: Option<Instant>,
}

impl Time {
    fn stand_still(&mut self) {
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
        }
    }

    fn go_on(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    async fn over(&self) {
        match self.since {
            Some(since) => tokio::time::sleep_until(since + self.left).await,
            None => std::future::pending().await,
        }
    }
}

/// From the start of the program to the end of its whole tree.
async fn accompany(
    call: &Call,
    workspace: &Workspace,
    (command, mut errands): (Command, Errands),
    stop: CancellationToken,
) -> Result<Ended, Failed> {
    let (mut stdout, mut stderr) = (Captured::new(STDOUT_BYTES), Captured::new(STDERR_BYTES));
    let known = call.host.known();
    let mut shows = [OutputStream::Stdout, OutputStream::Stderr].map(|stream| Show::new(stream, known));
    let mut timed_out = false;
    let finished = {
        let output = |chunk: Chunk| {
            let [out, err] = &mut shows;
            let (show, kept) = match &chunk {
                Chunk::Stdout(_) => (out, &mut stdout),
                Chunk::Stderr(_) => (err, &mut stderr),
            };
            kept.push(chunk.bytes());
            show.push(call, chunk.bytes());
        };
        let environment = call.host.environment();
        let running = environment.execute(workspace, command, output, stop.clone());
        tokio::pin!(running);
        let mut time = Time {
            left: call.host.code.timeout,
            since: Some(Instant::now()),
        };
        loop {
            tokio::select! {
                finished = &mut running => break finished,
                moved = errands.next() => match moved {
                    Moved::Asking => time.stand_still(),
                    Moved::Going => time.go_on(),
                },
                () = time.over(), if !timed_out => {
                    timed_out = true;
                    stop.cancel();
                }
            }
        }
    };
    shows.into_iter().for_each(|show| show.finish(call));
    let calls = errands.made;
    errands.finish(call.cancel.is_cancelled()).await;
    Ok(Ended {
        finished: finished?,
        timed_out: timed_out && !call.cancel.is_cancelled(),
        stdout,
        stderr,
        calls,
    })
}

/// One stream as viewers see it: without secrets.
struct Show {
    stream: OutputStream,
    decoder: Decoder,
    mask: Stream,
}

impl Show {
    fn new(stream: OutputStream, known: &Known) -> Self {
        Self {
            stream,
            decoder: Decoder::default(),
            mask: Stream::of_output("", known),
        }
    }

    fn push(&mut self, call: &Call, bytes: &[u8]) {
        let text = self.mask.push(&self.decoder.decode(bytes));
        put(call, self.stream, &text);
    }

    fn finish(mut self, call: &Call) {
        let text = self.mask.push(self.decoder.finish());
        put(call, self.stream, &text);
        put(call, self.stream, &self.mask.finish());
    }
}

fn put(call: &Call, stream: OutputStream, text: &str) {
    if !text.is_empty() {
        call.pen.push(Item::Output(call.call_id, stream), text);
    }
}

fn report(call: &Call, ended: Ended) -> Done {
    let Ended {
        finished,
        timed_out,
        stdout,
        stderr,
        calls,
    } = ended;
    let limit = call.host.code.timeout.as_secs();
    let (status, error) = match (timed_out, finished.interrupted, finished.exit_code) {
        (true, ..) => (
            "timeout",
            Some(format!("the program ran longer than {limit} seconds and was stopped")),
        ),
        (false, true, _) => ("interrupted", Some("the program was stopped".to_owned())),
        (false, false, 0) => ("success", None),
        (false, false, code) => ("error", Some(format!("the program ended with exit code {code}"))),
    };
    let stdout = stdout.shown();
    let mut output = stdout.text;
    if status != "success" {
        let stderr = stderr.shown();
        if !stderr.text.trim().is_empty() {
            output = format!("{output}\n--- stderr ---\n{}", stderr.text);
        }
    }
    let mut fields = Map::new();
    let mut tell = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    tell("status", json!(status));
    tell("output", json!(output));
    tell("exit_code", json!(finished.exit_code));
    tell("tool_calls_made", json!(calls));
    let seconds = (finished.duration.as_secs_f64() * 100.0).round() / 100.0;
    tell("duration_seconds", json!(seconds));
    tell("stdout_truncated", json!(0 < stdout.omitted));
    tell("stdout_bytes_captured", json!(stdout.captured));
    tell("stdout_bytes_total", json!(stdout.total));
    tell("stdout_bytes_omitted", json!(stdout.omitted));
    let warning = match (finished.survived, finished.left_over) {
        (true, _) => Some("a process of the program could not be stopped and may still run"),
        (false, true) => Some("what the program left running was ended with it"),
        (false, false) => None,
    };
    if let Some(warning) = warning {
        tell("warning", json!(warning));
    }
    if let Some(error) = error {
        tell("error", json!(error));
    }
    Done {
        result: Value::Object(fields).to_string(),
        failed: status != "success" || finished.survived,
        exit_code: Some(i64::from(finished.exit_code)),
        cancelled: status == "interrupted",
        survived: finished.survived,
        ..Done::default()
    }
}
