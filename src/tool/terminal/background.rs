//! Starting a command that goes on when its call is over.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::request::Background;
use crate::environment::Workspace;
use crate::model::background::Notices;
use crate::tool::processes::{Start, StartError};
use crate::tool::{Call, Done, ToolWrites};

pub(super) async fn start(
    call: &Call,
    workspace: &Workspace,
    command: &str,
    cwd: PathBuf,
    how: &Background,
) -> Result<Done, StartError> {
    let start = Start {
        tenant: call.tenant_id,
        session: call.session_id,
        call: call.call_id,
        command: command.to_owned(),
        cwd,
        terminal: how.terminal,
        notices: Notices {
            on_completion: how.notify,
            patterns: how.patterns.clone(),
        },
        clock: call.clock.clone(),
    };
    let host = &call.host;
    let entry = host.processes().start(host.environment(), workspace, start).await?;
    let record = entry.snapshot().record;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("output", json!("Background process started"));
    put("session_id", json!(record.id));
    put("pid", json!(record.pid));
    put("exit_code", json!(0));
    put("error", Value::Null);
    if let Some(allowance) = &call.allowance {
        put("approval", json!(allowance));
    }
    if how.terminal {
        put(
            "pty_note",
            json!("it has a terminal of 30 lines of 120 characters; type with `process` submit"),
        );
    }
    if how.notify {
        put("notify_on_complete", json!(true));
    }
    if !how.patterns.is_empty() {
        put("watch_patterns", json!(how.patterns));
    }
    if how.ignored {
        put(
            "watch_patterns_ignored",
            json!("the end is told, so lines are not watched for"),
        );
    }
    if !how.notify && how.patterns.is_empty() {
        let hint = "nobody tells you when it ends: look with `process` poll or wait, or start it with \
            notify_on_complete or watch_patterns";
        put("hint", json!(hint));
    }
    let mut record = record;
    // Whether it has ended by now is told by an event of its own.
    record.end = None;
    Ok(Done {
        result: Value::Object(fields).to_string(),
        exit_code: Some(0),
        writes: ToolWrites {
            processes: vec![record],
            ..ToolWrites::default()
        },
        ..Done::default()
    })
}
