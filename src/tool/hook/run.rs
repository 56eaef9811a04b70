//! Asking one hook: a command gets JSON on its standard input and answers on its
//! standard output, an address is asked by POST. Nothing is no answer, and fine.

use serde_json::{Value, json};

use super::{Action, Hook, Subject};
use crate::environment::{Chunk, Command};
use crate::fetch::Documents;
use crate::tool::Host;

/// The longest answer.
const MAX_ANSWER_BYTES: usize = 4 << 20;
const MAX_SAID_BYTES: usize = 1_000;

/// What a hook gets: which hook at which point, whose doing, and what of it.
pub(super) fn payload(hook: &Hook, subject: Subject, schema: &str, told: Value) -> Value {
    let mut payload = json!({
        "schema_version": schema,
        "hook_event_name": hook.point.name(),
        "hook_name": hook.name,
        "tenant_id": subject.tenant_id,
        "session_id": subject.session_id,
        "turn_id": subject.turn_id,
        "tool_call_id": subject.call_id,
        "api_request_id": subject.answer_id,
    });
    if let (Some(payload), Value::Object(told)) = (payload.as_object_mut(), told) {
        if let Some(parent) = subject.parent_call_id {
            payload.insert("parent_tool_call_id".to_owned(), json!(parent));
        }
        payload.extend(told);
    }
    payload
}

pub(super) async fn asked(host: &Host, documents: &Documents, hook: &Hook, payload: Value) -> Result<Value, String> {
    let raw = match &hook.action {
        Action::Compiled(run) => {
            let running = tokio::time::timeout(hook.timeout, run(payload));
            return running.await.unwrap_or_else(|_| Err(late(hook)));
        }
        // It is not asked: it runs the call.
        Action::Around(_) => return Ok(json!({})),
        Action::Url(url) => {
            let body = payload.to_string().into_bytes();
            let answer = documents.post(url, body, MAX_ANSWER_BYTES, hook.timeout).await;
            answer.map_err(|error| error.to_string())?
        }
        Action::Command(words) => by_command(host, hook, words, &payload).await?,
    };
    let raw = raw.trim();
    if raw.is_empty() {
        return Ok(json!({}));
    }
    let answer: Value = serde_json::from_str(raw).map_err(|_| "the answer is no JSON".to_owned())?;
    Some(answer)
        .filter(Value::is_object)
        .ok_or_else(|| "the answer is no object".to_owned())
}

pub(super) fn late(hook: &Hook) -> String {
    format!("not done within {} seconds", hook.timeout.as_secs())
}

/// The operator's own program: supervised like any command, so that it ends with
/// the server, and not confined.
async fn by_command(host: &Host, hook: &Hook, words: &[String], payload: &Value) -> Result<String, String> {
    let environment = host.environment().trusted();
    // One for all: a session's own is not made for this, and may be gone.
    let workspace = environment.workspace("hooks", "hooks").await;
    let workspace = workspace.map_err(|error| error.to_string())?;
    let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = words.iter().map(quoted).collect();
    let command = Command {
        script: format!("exec {}", words.join(" ")),
        cwd: workspace.root().to_path_buf(),
        timeout: hook.timeout,
        stdin: Some(payload.to_string().into_bytes()),
        environment: Vec::new(),
    };
    let (mut out, mut said) = (Vec::new(), Vec::new());
    let take = |chunk: Chunk| match chunk {
        Chunk::Stdout(bytes) if out.len() <= MAX_ANSWER_BYTES => out.extend_from_slice(&bytes),
        Chunk::Stderr(bytes) if said.len() <= MAX_SAID_BYTES => said.extend_from_slice(&bytes),
        Chunk::Stdout(_) | Chunk::Stderr(_) => {}
    };
    let cancel = tokio_util::sync::CancellationToken::new();
    let ended = environment.execute(&workspace, command, take, cancel).await;
    let ended = ended.map_err(|error| error.to_string())?;
    if ended.timed_out {
        return Err(late(hook));
    }
    if ended.exit_code != 0 {
        let said = String::from_utf8_lossy(&said);
        return Err(format!("exit code {}: {}", ended.exit_code, said.trim()));
    }
    if MAX_ANSWER_BYTES < out.len() {
        return Err(format!("more than {MAX_ANSWER_BYTES} bytes of answer"));
    }
    String::from_utf8(out).map_err(|_| "the answer is no text".to_owned())
}
