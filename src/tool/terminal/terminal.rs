//! `terminal`: one shell command, in the session's workspace, behind the walls of
//! the environment. In the foreground it is waited for; `background` starts it.
//!
//! The command is judged by the guard before it starts. Its output streams to
//! viewers as it arrives; the model reads it bounded, plain and with secrets
//! masked. Where the shell ends is where the session stands from then on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::background;
use super::output::Collected;
use super::request::{Refused, Request};
use crate::base::aside;
use crate::environment::{Chunk, Command, EntryKind, EnvironmentError, Finished, Workspace};
use crate::guard::redact::Stream;
use crate::guard::{Finding, Judgement, Verdict};
use crate::live::drafts::Item;
use crate::model::call::{Effect, Footprint};
use crate::model::event::OutputStream;
use crate::tool::budget::ResultLimit;
use crate::tool::command_line::{exit_code_meaning, paths};
use crate::tool::decoder::Decoder;
use crate::tool::processes::StartError;
use crate::tool::readings::{self, Text};
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Host, Judged, Place, Spec, Tool, ToolWrites, made};

inventory::submit!(Registered(&Terminal));

/// Waits before another try when the machine has no room for a process (the
/// original's figures).
const SPAWN_WAITS: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];

/// Said where something was still running when the shell had ended.
const LEFT_OVER: &str = "what the command left running was ended with it: what is to go on needs `background: true`";

struct Terminal;

impl Tool for Terminal {
    fn spec(&self) -> Spec {
        Spec {
            name: "terminal",
            toolset: "terminal",
            emoji: "💻",
            description: "Runs a shell command and returns its output and exit code. Files and the working directory \
                stay from call to call, variables do not. The command runs in a sandbox: it may write in the \
                workspace and in $TMPDIR only. It gets no input and no terminal, so use options that do not ask \
                (-y, --no-pager), and no rights from sudo. In the foreground it must end by itself; servers and watchers run with \
                background: true, and `process` looks after them. Use read_file and write_file for files rather than \
                cat, echo or sed. Dangerous commands wait for a person's approval.",
            requires_env: &[],
            result_limit: ResultLimit::Chars(100_000),
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command, as for bash."},
                "timeout": {
                    "type": "integer",
                    "description": "Seconds until the command is stopped. The server has a default (usually 180) and \
                        an upper limit (usually 600).",
                    "minimum": 1,
                },
                "workdir": {
                    "type": "string",
                    "description": "The directory to run in, inside the workspace. Left out: where the last command \
                        ended.",
                },
                "background": {
                    "type": "boolean",
                    "description": "true: the call returns at once with a session_id for `process`; the command goes \
                        on until it and all that it started have ended or are ended, at the latest with the server.",
                    "default": false,
                },
                "pty": {
                    "type": "boolean",
                    "description": "With background: a terminal, so that `process` can type to it.",
                    "default": false,
                },
                "notify_on_complete": {
                    "type": "boolean",
                    "description": "With background: you are told when it ends, in a turn of its own.",
                    "default": false,
                },
                "watch_patterns": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "With background: you are told when a line of the output holds one of these texts. \
                        Not together with notify_on_complete.",
                },
            },
            "required": ["command"],
        })
    }

    fn example(&self) -> Value {
        json!({"command": "echo hello"})
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Write
    }

    fn footprint(&self, _arguments: &Value, _place: &Place<'_>) -> Footprint {
        Footprint::Alone
    }

    fn unavailable(&self, host: &Host) -> Option<String> {
        host.no_commands()
    }

    fn paths(&self, arguments: &Value, place: &Place<'_>, host: &Host) -> Option<Vec<PathBuf>> {
        let request = Request::read(arguments, place.workspace, place.cwd, host).ok()?;
        let cwd = request.workdir.as_deref().unwrap_or(place.cwd);
        let place = Place {
            policies: &[],
            ..*place
        };
        paths::named(request.command, &judged(request.command, cwd, host, &place), cwd)
    }

    fn judge(&self, arguments: &Value, place: &Place<'_>, host: &Host) -> Judged {
        // What will be refused before it starts needs nobody's consent.
        let Ok(request) = Request::read(arguments, place.workspace, place.cwd, host) else {
            return Judged::Allow;
        };
        let cwd = request.workdir.as_deref().unwrap_or(place.cwd);
        let judgement = judged(request.command, cwd, host, place);
        consequence(judgement, host.scanned(request.command))
    }

    fn subject(&self, arguments: &Value) -> String {
        arguments["command"].as_str().unwrap_or_default().to_owned()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async move {
            match execute(&call).await {
                Ok(done) => done,
                Err(failed) => Done {
                    // Nobody saw the end of it: what it did is not known.
                    survived: matches!(failed, Failed::Environment(EnvironmentError::Lost)),
                    ..Done::failure(failure(&failed))
                },
            }
        })
    }
}

/// What the guard's judgement means for a call, and what a scanner said of it.
pub(super) fn consequence(judgement: Judgement, scanned: Option<Finding>) -> Judged {
    let asks = judgement.verdict == Verdict::Ask;
    match judgement.verdict {
        Verdict::Allow | Verdict::Ask => {
            let found = judgement.findings.into_iter().filter(|_| asks);
            let findings: Vec<Finding> = scanned.into_iter().chain(found).collect();
            match findings.is_empty() {
                true => Judged::Allow,
                false => Judged::Ask { findings },
            }
        }
        Verdict::Deny => {
            let what: Vec<&str> = judgement
                .findings
                .iter()
                .map(|finding| finding.description.as_str())
                .collect();
            Judged::Deny {
                message: format!("the command is never allowed here: {}", what.join("; ")),
            }
        }
    }
}

pub(super) fn judged(command: &str, cwd: &Path, host: &Host, place: &Place<'_>) -> Judgement {
    let cwd = cwd.to_string_lossy();
    if let Some(unread) = place.unread
        && !host.has_read(command, &cwd)
    {
        unread.note(Text::Command {
            command: command.to_owned(),
            cwd: cwd.into_owned(),
        });
        return Judgement {
            verdict: Verdict::Deny,
            ..Judgement::default()
        };
    }
    let policies = place.policies.iter().map(Arc::as_ref);
    let judge = || host.judged(command, host.backend(), Some(&cwd), policies);
    aside::work(command.len() > readings::LONG, judge)
}

/// Why a call has no exit code.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Start(StartError),
    #[error("`workdir` `{0}` is not a directory of the workspace")]
    Workdir(PathBuf),
}

fn failure(failed: &Failed) -> String {
    let mut text = failed.to_string();
    let mut cause = std::error::Error::source(failed);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    json!({"output": "", "exit_code": -1, "error": text, "status": "error"}).to_string()
}

async fn execute(call: &Call) -> Result<Done, Failed> {
    let host = &call.host;
    let path = host.workspace_path(call.tenant_id, call.session_id);
    let mut request = Request::read(&call.arguments, &path, &call.cwd, host)?;
    request.timeout = call.time.unwrap_or(request.timeout);
    let workspace = host.workspace(call.tenant_id, call.session_id).await?;
    if let Some(workdir) = &request.workdir
        && !is_directory(&workspace, workdir).await
    {
        return Err(Failed::Workdir(workdir.clone()));
    }
    if let Some(background) = &request.background {
        let cwd = request.workdir.clone().unwrap_or_else(|| call.cwd.clone());
        return background::start(call, &workspace, request.command, cwd, background)
            .await
            .map_err(Failed::Start);
    }
    let mut collected = Collected::new();
    let before = match call.is_nested() {
        true => None,
        false => made::look(&workspace).await,
    };
    let finished = start(call, &workspace, &request, &mut collected).await?;
    let mut done = report(call, &workspace, &request, collected.shown(request.command), &finished).await;
    done.writes.artifacts = made::since(&workspace, before).await;
    Ok(done)
}

async fn is_directory(workspace: &Workspace, path: &Path) -> bool {
    let metadata = workspace.metadata(path).await;
    metadata.is_ok_and(|metadata| metadata.kind == EntryKind::Directory)
}

/// Runs the command; when there is no room for its process, tries again.
async fn start(
    call: &Call,
    workspace: &Workspace,
    request: &Request<'_>,
    collected: &mut Collected,
) -> Result<Finished, EnvironmentError> {
    let mut waits = SPAWN_WAITS.iter();
    loop {
        let ended = stream(call, workspace, request, collected).await;
        match (&ended, waits.next()) {
            (Err(EnvironmentError::Spawn(error)), Some(wait)) if is_transient(error) && !call.cancel.is_cancelled() => {
                tokio::select! {
                    () = call.clock.sleep(*wait) => {}
                    () = call.cancel.cancelled() => return ended,
                }
            }
            _ => return ended,
        }
    }
}

/// The machine is short of something that may be there again soon.
fn is_transient(error: &io::Error) -> bool {
    let of_files = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
    let kinds = [
        io::ErrorKind::WouldBlock,
        io::ErrorKind::OutOfMemory,
        io::ErrorKind::ExecutableFileBusy,
    ];
    kinds.contains(&error.kind()) || of_files.contains(&error.raw_os_error())
}

/// Runs the command once, its output going to viewers and to the collector.
async fn stream(
    call: &Call,
    workspace: &Workspace,
    request: &Request<'_>,
    collected: &mut Collected,
) -> Result<Finished, EnvironmentError> {
    let command = Command {
        // To the letter: this is what was judged and shown.
        script: request.command.to_owned(),
        cwd: request.workdir.clone().unwrap_or_else(|| call.cwd.clone()),
        timeout: request.timeout,
        stdin: None,
        environment: Vec::new(),
    };
    let (mut stdout, mut stderr) = (Decoder::default(), Decoder::default());
    // Viewers see what the model reads later: without secrets.
    let mask = || Stream::of_output(request.command, call.host.known());
    let mut masks = [mask(), mask()];
    let show = |stream: OutputStream, text: &str| {
        if !text.is_empty() {
            call.pen.push(Item::Output(call.call_id, stream), text);
        }
    };
    let mut take = |stream: OutputStream, text: &str| {
        let [stdout, stderr] = &mut masks;
        let mask = if stream == OutputStream::Stdout { stdout } else { stderr };
        show(stream, &mask.push(text));
        collected.push(text);
    };
    let output = |chunk: Chunk| match chunk {
        Chunk::Stdout(bytes) => take(OutputStream::Stdout, &stdout.decode(&bytes)),
        Chunk::Stderr(bytes) => take(OutputStream::Stderr, &stderr.decode(&bytes)),
    };
    let environment = call.host.environment();
    let finished = environment
        .execute_in_row(workspace, command, &call.row, output, call.cancel.clone())
        .await;
    take(OutputStream::Stdout, stdout.finish());
    take(OutputStream::Stderr, stderr.finish());
    let [stdout, stderr] = masks;
    show(OutputStream::Stdout, &stdout.finish());
    show(OutputStream::Stderr, &stderr.finish());
    finished
}

async fn report(call: &Call, workspace: &Workspace, request: &Request<'_>, output: String, end: &Finished) -> Done {
    let error = end
        .survived
        .then_some("a process of the command could not be stopped and may still run");
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("output", json!(with_ending(output, request, end)));
    put("exit_code", json!(end.exit_code));
    put("error", json!(error));
    if let Some(allowance) = &call.allowance {
        put("approval", json!(allowance));
    }
    if let Some(meaning) = exit_code_meaning(request.command, end.exit_code) {
        put("exit_code_meaning", json!(meaning));
    }
    let mut notes = Vec::new();
    let moved = end.cwd.as_deref().filter(|cwd| *cwd != call.cwd);
    let cwd = match moved {
        Some(cwd) if call.host.is_inside(workspace.root(), cwd) && is_directory(workspace, cwd).await => cwd.to_str(),
        Some(_) => {
            let back = call.cwd.display();
            notes.push(format!(
                "this directory is outside the workspace; the next command starts in {back} again"
            ));
            None
        }
        None => None,
    };
    if end.left_over {
        notes.push(LEFT_OVER.to_owned());
    }
    if !notes.is_empty() {
        put("note", json!(notes.join("; ")));
    }
    Done {
        images: Vec::new(),
        result: Value::Object(fields).to_string(),
        failed: end.exit_code != 0 || error.is_some(),
        exit_code: Some(i64::from(end.exit_code)),
        cancelled: end.interrupted,
        survived: end.survived,
        writes: ToolWrites {
            cwd: cwd.map(str::to_owned),
            ..ToolWrites::default()
        },
    }
}

/// The output and, where the command did not end by itself, why it ended.
fn with_ending(output: String, request: &Request<'_>, end: &Finished) -> String {
    let ending = match (end.timed_out, end.interrupted) {
        (true, _) => format!("[Command timed out after {}s]", request.timeout.as_secs()),
        (false, true) => "[Command interrupted]".to_owned(),
        (false, false) => return output,
    };
    let space = if output.is_empty() { "" } else { "\n" };
    format!("{output}{space}{ending}")
}
