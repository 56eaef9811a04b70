//! `process`: looks after what `terminal` started in the background. A session
//! sees its own processes only; another's id is as unknown as one that never was.

#![allow(
    clippy::indexing_slicing,
    reason = "keys of JSON objects: a read of a missing one is null, and what is written is an object made here"
)]

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::output::plain;
use super::terminal::{consequence, judged};
use crate::base::Timestamp;
use crate::base::text::{first_chars, last_chars};
use crate::model::background::Completion;
use crate::model::call::{Effect, Footprint};
use crate::model::id::BackgroundId;
use crate::tool::budget::ResultLimit;
use crate::tool::processes::{Entry, Snapshot};
use crate::tool::registry::Registered;
use crate::tool::{Call, Done, Host, Judged, Place, Spec, Tool};

inventory::submit!(Registered(&Process));

/// The original's figures.
const LONGEST_WAIT: Duration = Duration::from_secs(180);
const LISTED_COMMAND: usize = 200;
const LISTED_OUTPUT: usize = 200;
const POLLED_OUTPUT: usize = 1_000;
const WAITED_OUTPUT: usize = 2_000;
const LOG_LINES: usize = 200;
const MAX_LOG_LINES: usize = 2_000;
/// From the request to end to the last resort, as the environment bounds it.
const KILL_PATIENCE: Duration = Duration::from_secs(15);

struct Process;

impl Tool for Process {
    fn spec(&self) -> Spec {
        Spec {
            name: "process",
            toolset: "terminal",
            emoji: "⚙️",
            description: "Looks after processes that terminal started with background: true. list: all of this \
                session; poll: how one does and its last output; log: its output by lines; wait: until it ends, \
                180 s at most; kill: ends it and all it started; write, submit: types to one with a terminal \
                (submit adds Enter); close: ends its input.",
            requires_env: &[],
            result_limit: ResultLimit::Chars(100_000),
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["list", "poll", "log", "wait", "kill", "write", "submit", "close"],
                },
                "session_id": {
                    "type": "string",
                    "description": "The process, as terminal named it; for all actions but list.",
                },
                "data": {"type": "string", "description": "What to type (write, submit)."},
                "timeout": {"type": "integer", "description": "Seconds to wait (wait).", "minimum": 1},
                "offset": {"type": "integer", "description": "The first line, from 1 (log). Left out: the last ones."},
                "limit": {"type": "integer", "description": "Lines (log).", "default": 200, "minimum": 1},
            },
            "required": ["action"],
        })
    }

    fn example(&self) -> Value {
        json!({"action": "list"})
    }

    fn effect(&self, arguments: &Value) -> Effect {
        match Action::of(arguments) {
            Some(Action::List | Action::Poll | Action::Log | Action::Wait) => Effect::Read,
            _ => Effect::Write,
        }
    }

    fn footprint(&self, arguments: &Value, _place: &Place<'_>) -> Footprint {
        match self.effect(arguments) {
            Effect::Read => Footprint::Parallel,
            Effect::Internal | Effect::Write => Footprint::Alone,
        }
    }

    /// What is typed may be a command, and then it is one like another.
    fn judge(&self, arguments: &Value, place: &Place<'_>, host: &Host) -> Judged {
        let text = match Action::of(arguments) {
            Some(Action::Write | Action::Submit) => data(arguments),
            _ => return Judged::Allow,
        };
        consequence(judged(&text, place.cwd, host, place), None)
    }

    fn subject(&self, arguments: &Value) -> String {
        let action = arguments["action"].as_str().unwrap_or_default();
        let id = name(&arguments["session_id"]).unwrap_or_default();
        match Action::of(arguments) {
            Some(Action::Write | Action::Submit) => format!("{action} {id}: {}", data(arguments)),
            _ => format!("{action} {id}").trim_end().to_owned(),
        }
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        Box::pin(async move { act(&call).await })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    List,
    Poll,
    Log,
    Wait,
    Kill,
    Write,
    Submit,
    Close,
}

impl Action {
    fn of(arguments: &Value) -> Option<Self> {
        Some(match arguments["action"].as_str()? {
            "list" => Self::List,
            "poll" => Self::Poll,
            "log" => Self::Log,
            "wait" => Self::Wait,
            "kill" => Self::Kill,
            "write" => Self::Write,
            "submit" => Self::Submit,
            "close" => Self::Close,
            _ => return None,
        })
    }
}

fn data(arguments: &Value) -> String {
    match &arguments["data"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Models write numbers where they mean names.
fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

async fn act(call: &Call) -> Done {
    let arguments = &call.arguments;
    let Some(action) = Action::of(arguments) else {
        return failed(&json!({
            "error": "`action` is list, poll, log, wait, kill, write, submit or close",
        }));
    };
    let now = call.clock.now();
    let processes = call.host.processes();
    if action == Action::List {
        let all = processes.of(call.tenant_id, call.session_id, now);
        let listed: Vec<Value> = all.iter().map(|entry| listed(&entry.snapshot(), now)).collect();
        return done(&json!({"processes": listed}));
    }
    let Some(name) = name(&arguments["session_id"]) else {
        return failed(&json!({"error": "`session_id` is missing: it names the process, as terminal did"}));
    };
    let id = name.parse::<BackgroundId>().ok();
    let Some(entry) = id.and_then(|id| processes.get(call.tenant_id, call.session_id, id)) else {
        let error = format!("no process `{name}` in this session; list shows those that there are");
        return failed(&json!({"status": "not_found", "error": error}));
    };
    match action {
        Action::List | Action::Poll => done(&polled(&entry.snapshot(), now)),
        Action::Log => done(&logged(&entry, arguments, now)),
        Action::Wait => wait(call, &entry).await,
        Action::Kill => kill(&entry).await,
        Action::Write => typed(&entry, data(arguments)).await,
        Action::Submit => typed(&entry, data(arguments) + "\n").await,
        // What a terminal takes for the end of the input.
        Action::Close => typed(&entry, "\u{4}".to_owned()).await,
    }
}

fn done(fields: &Value) -> Done {
    Done {
        result: fields.to_string(),
        ..Done::default()
    }
}

fn failed(fields: &Value) -> Done {
    Done::failure(fields.to_string())
}

/// The output as a model reads it.
fn text(seen: &Snapshot) -> String {
    plain(&seen.output.replace("\r\n", "\n"), &seen.record.command)
}

/// The end of the output. Secrets are masked before it is cut.
fn tail(seen: &Snapshot, chars: usize) -> String {
    last_chars(text(seen).trim_end(), chars).to_owned()
}

/// What every action says of a process.
fn state(seen: &Snapshot, now: Timestamp) -> Map<String, Value> {
    let record = &seen.record;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("session_id", json!(record.id));
    put("command", json!(first_chars(&record.command, LISTED_COMMAND)));
    put("status", json!(record.view().status));
    put("pid", json!(record.pid));
    let until = record.end.map_or(now, |end| end.at);
    put("uptime_seconds", json!(until.since(record.started_at).as_secs()));
    if let Some(end) = record.end {
        put("exit_code", json!(end.exit_code));
        put("completion_reason", json!(end.completion));
        if end.completion == Completion::Killed {
            put("termination_source", json!("kill"));
        }
        if end.completion == Completion::Lost {
            put(
                "note",
                json!("it ended with the server that ran it; what it had done by then is not known"),
            );
        }
    }
    fields
}

fn listed(seen: &Snapshot, now: Timestamp) -> Value {
    let record = &seen.record;
    let mut fields = state(seen, now);
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("cwd", json!(record.cwd));
    put("started_at", json!(record.started_at));
    put("output_preview", json!(tail(seen, LISTED_OUTPUT)));
    if record.notices.on_completion {
        put("notify_on_complete", json!(true));
    }
    if !record.notices.patterns.is_empty() || seen.was_hit {
        put("watch_patterns", json!(record.notices.patterns));
        put("watch_hit", json!(seen.was_hit));
    }
    Value::Object(fields)
}

fn polled(seen: &Snapshot, now: Timestamp) -> Value {
    let mut fields = state(seen, now);
    fields.insert("output_preview".to_owned(), json!(tail(seen, POLLED_OUTPUT)));
    Value::Object(fields)
}

/// Lines of the output: the last ones, or from `offset` on.
fn logged(entry: &Arc<Entry>, arguments: &Value, now: Timestamp) -> Value {
    let seen = entry.snapshot();
    let number = |name: &str| arguments[name].as_u64().and_then(|number| usize::try_from(number).ok());
    let limit = number("limit").unwrap_or(LOG_LINES).clamp(1, MAX_LOG_LINES);
    let page = log(&seen, number("offset").unwrap_or(0), limit);
    if page.reaches_end && seen.record.end.is_some() {
        entry.silence();
    }
    let mut fields = state(&seen, now);
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("output", json!(page.output));
    put("total_lines", json!(page.total_lines));
    put("showing", json!(page.showing));
    Value::Object(fields)
}

/// A part of an output.
pub(in crate::tool) struct LogPage {
    pub(in crate::tool) output: String,
    /// Lines that were printed, kept or not.
    pub(in crate::tool) total_lines: usize,
    pub(in crate::tool) showing: String,
    /// The number of the first line shown.
    pub(in crate::tool) first: usize,
    pub(in crate::tool) reaches_end: bool,
}

pub(in crate::tool) fn log(seen: &Snapshot, offset: usize, limit: usize) -> LogPage {
    let text = text(seen);
    let lines: Vec<&str> = text.lines().collect();
    let total = seen.dropped_lines + lines.len();
    let first = match offset {
        0 => lines.len().saturating_sub(limit),
        offset => offset
            .saturating_sub(1)
            .saturating_sub(seen.dropped_lines)
            .min(lines.len()),
    };
    let shown: Vec<&str> = lines.iter().skip(first).take(limit).copied().collect();
    let from = seen.dropped_lines + first;
    LogPage {
        total_lines: total,
        first: from + 1,
        showing: match shown.len() {
            0 => "no lines".to_owned(),
            count => format!("lines {} to {} of {total}", from + 1, from + count),
        },
        reaches_end: from + shown.len() == total,
        output: shown.join("\n"),
    }
}

async fn wait(call: &Call, entry: &Arc<Entry>) -> Done {
    let asked = call.arguments["timeout"].as_f64().filter(|seconds| 1.0 <= *seconds);
    let asked = asked.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let patience = asked.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
    let (status, chars) = tokio::select! {
        ended = timeout(patience, entry.seen_to_end()) => match ended {
            Ok(()) => ("exited", WAITED_OUTPUT),
            Err(_) => ("timeout", POLLED_OUTPUT),
        },
        () = call.cancel.cancelled() => ("interrupted", POLLED_OUTPUT),
    };
    let seen = entry.snapshot();
    if status == "exited" {
        entry.silence();
    }
    let mut fields = state(&seen, call.clock.now());
    fields.insert("status".to_owned(), json!(status));
    fields.insert("output".to_owned(), json!(tail(&seen, chars)));
    if status == "timeout" {
        let note = format!(
            "it was waited for {} s, 180 s at most at a time, and runs on",
            patience.as_secs()
        );
        fields.insert("timeout_note".to_owned(), json!(note));
    }
    Done {
        cancelled: status == "interrupted",
        ..done(&Value::Object(fields))
    }
}

async fn kill(entry: &Arc<Entry>) -> Done {
    let id = entry.id();
    if let Some(end) = entry.end() {
        return done(&json!({"status": "already_exited", "session_id": id, "exit_code": end.exit_code}));
    }
    entry.ask_to_end(Completion::Killed);
    // Whoever ends it knows that it ends.
    entry.silence();
    if timeout(KILL_PATIENCE, entry.ended()).await.is_err() {
        return Done {
            survived: true,
            ..failed(&json!({"session_id": id, "error": "the process does not end; it may still run"}))
        };
    }
    let exit_code = entry.end().and_then(|end| end.exit_code);
    done(&json!({"status": "killed", "session_id": id, "exit_code": exit_code}))
}

async fn typed(entry: &Arc<Entry>, text: String) -> Done {
    match entry.write(text).await {
        Ok(bytes) => done(&json!({"status": "ok", "session_id": entry.id(), "bytes_written": bytes})),
        Err(unread) => failed(&json!({"status": "error", "session_id": entry.id(), "error": unread.to_string()})),
    }
}
