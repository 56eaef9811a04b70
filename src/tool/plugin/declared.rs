//! A tool that a manifest declares. A command runs in the session's own sandbox,
//! where it can also read the plugin's folder; an address is asked by POST. Both
//! get the call as JSON and answer with JSON of one form.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::manifest::{Action, DeclaredEffect, Handled};
use super::parts;
use crate::environment::{Chunk, Command};
use crate::fetch::Documents;
use crate::guard::{Finding, Severity, Span};
use crate::model::artifact::{Kept, hex};
use crate::model::call::{Effect, Footprint};
use crate::model::guardrail;
use crate::model::message::Part;
use crate::tool::artifacts::named_file;
use crate::tool::budget::ResultLimit;
use crate::tool::{Call, Done, Host, Judged, Place, SpecOf, Tool, error_text};

/// The longest answer of a handler.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Of what a command says on its standard error.
const MAX_STDERR_BYTES: usize = 2_000;
/// Files that one call may be told to have written.
const MAX_FILES: usize = 20;

pub(super) struct Declared {
    pub plugin: String,
    pub name: String,
    pub toolset: String,
    pub description: String,
    pub emoji: String,
    pub parameters: Value,
    pub effect: DeclaredEffect,
    pub parallel: bool,
    pub approval: bool,
    pub untrusted: bool,
    pub limit: ResultLimit,
    pub handled: Handled,
    /// Asked for the whole plugin.
    pub check: Option<Arc<Check>>,
    pub folder: PathBuf,
    pub documents: Documents,
}

/// What tells whether a plugin's tools can be offered.
pub(super) struct Check {
    pub key: String,
    pub handled: Handled,
    pub folder: PathBuf,
    pub documents: Documents,
    pub host: Arc<Host>,
}

/// What a handler answers; there is no other form.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Answer {
    Text {
        text: String,
        /// Files of the workspace that it wrote.
        #[serde(default)]
        files: Vec<String>,
    },
    Json {
        value: Value,
        #[serde(default)]
        files: Vec<String>,
    },
    /// Words and images.
    Parts {
        content: Vec<Part>,
        /// What the images show, in words.
        #[serde(default)]
        text_summary: Option<String>,
        #[serde(default)]
        files: Vec<String>,
    },
    Error {
        message: String,
        #[serde(default)]
        details: Map<String, Value>,
    },
}

impl Tool for Declared {
    fn spec(&self) -> SpecOf<'_> {
        SpecOf {
            name: &self.name,
            toolset: &self.toolset,
            emoji: &self.emoji,
            description: &self.description,
            requires_env: &[],
            result_limit: self.limit,
        }
    }

    fn parameters(&self) -> Value {
        self.parameters.clone()
    }

    fn example(&self) -> Value {
        json!({})
    }

    fn effect(&self, _: &Value) -> Effect {
        match self.effect {
            DeclaredEffect::Read => Effect::Read,
            DeclaredEffect::Write => Effect::Write,
        }
    }

    fn footprint(&self, _: &Value, _: &Place<'_>) -> Footprint {
        if self.parallel {
            Footprint::Parallel
        } else {
            Footprint::Alone
        }
    }

    fn unavailable(&self, host: &Host) -> Option<String> {
        match self.handled.action {
            Action::Command(_) => host.no_commands(),
            Action::Url(_) => None,
        }
    }

    fn check_key(&self) -> Option<String> {
        self.check.as_ref().map(|check| check.key.clone())
    }

    fn probe(&self) -> Option<BoxFuture<'static, Option<String>>> {
        let check = Arc::clone(self.check.as_ref()?);
        Some(Box::pin(async move { check.ask().await }))
    }

    fn is_untrusted(&self) -> bool {
        self.untrusted || matches!(self.handled.action, Action::Url(_))
    }

    fn judge(&self, arguments: &Value, _: &Place<'_>, _: &Host) -> Judged {
        if !self.approval {
            return Judged::Allow;
        }
        let finding = Finding {
            rule: "plugin-tool".to_owned(),
            key: format!("plugin tool {}/{}", self.plugin, self.name),
            description: format!(
                "the plugin `{}` wants every call of `{}` approved",
                self.plugin, self.name
            ),
            severity: Severity::High,
            span: Span {
                start: 0,
                end: self.subject(arguments).len(),
            },
            argv: Vec::new(),
        };
        Judged::Ask {
            findings: vec![finding],
        }
    }

    fn form(&self) -> Option<String> {
        let form = format!(
            "{:?}",
            (
                &self.plugin,
                &self.handled,
                &self.folder,
                self.effect,
                self.approval,
                &self.description
            )
        );
        Some(hex(&Sha256::digest(form.as_bytes())))
    }

    fn subject(&self, arguments: &Value) -> String {
        arguments.to_string()
    }

    fn run(&self, call: Call) -> BoxFuture<'static, Done> {
        let (name, handled) = (self.name.clone(), self.handled.clone());
        let (folder, documents) = (self.folder.clone(), self.documents.clone());
        Box::pin(async move {
            let given = given(&name, &call);
            let raw = match &handled.action {
                Action::Command(words) => by_command(&call, words, &folder, handled.timeout, given).await,
                Action::Url(url) => {
                    tokio::select! {
                        answer = documents.post(url, given, MAX_ANSWER_BYTES, handled.timeout) => {
                            answer.map_err(|error| Done::failure(error_text::failed("Handler", &error.to_string())))
                        }
                        () = call.cancel.cancelled() => Err(Done {
                            cancelled: true,
                            survived: true,
                            ..Done::failure(error_text::envelope("cancelled while the handler was asked"))
                        }),
                    }
                }
            };
            match raw {
                Err(failed) => failed,
                Ok(raw) => {
                    let (mut done, files) = answered(&name, &raw);
                    done.writes.artifacts = made(&call, files).await;
                    done
                }
            }
        })
    }
}

/// The call as handlers get it.
fn given(name: &str, call: &Call) -> Vec<u8> {
    let given = json!({"schema_version": "hermes.tool.v1", "tool": name, "arguments": call.arguments,
        "tenant_id": call.tenant_id, "session_id": call.session_id, "tool_call_id": call.call_id,
        "workspace": call.host.workspace_path(call.tenant_id, call.session_id), "cwd": call.cwd});
    given.to_string().into_bytes()
}

async fn by_command(
    call: &Call,
    words: &[String],
    folder: &std::path::Path,
    timeout: Duration,
    stdin: Vec<u8>,
) -> Result<String, Done> {
    let failed = |text: String| Done::failure(error_text::failed("Handler", &text));
    let workspace = call.host.workspace(call.tenant_id, call.session_id).await;
    let workspace = workspace.map_err(|error| failed(error.to_string()))?;
    let command = Command {
        script: script(words, folder),
        cwd: call.cwd.clone(),
        timeout,
        stdin: Some(stdin),
        environment: Vec::new(),
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let take = |chunk: Chunk| match chunk {
        Chunk::Stdout(bytes) if out.len() <= MAX_ANSWER_BYTES => out.extend_from_slice(&bytes),
        Chunk::Stderr(bytes) if err.len() <= MAX_STDERR_BYTES => err.extend_from_slice(&bytes),
        Chunk::Stdout(_) | Chunk::Stderr(_) => {}
    };
    let environment = call.host.environment().reading(folder.to_path_buf());
    let ended = environment
        .execute(&workspace, command, take, call.cancel.clone())
        .await;
    let ended = ended.map_err(|error| Done {
        survived: matches!(error, crate::environment::EnvironmentError::Lost),
        ..failed(error.to_string())
    })?;
    if ended.interrupted || ended.timed_out || ended.exit_code != 0 {
        let said = String::from_utf8_lossy(&err);
        let why = match (ended.interrupted, ended.timed_out) {
            (true, _) => "cancelled".to_owned(),
            (_, true) => format!("not done within {} seconds", timeout.as_secs()),
            _ => format!("exit code {}: {}", ended.exit_code, said.trim()),
        };
        return Err(Done {
            exit_code: Some(i64::from(ended.exit_code)),
            cancelled: ended.interrupted,
            survived: ended.survived,
            ..failed(why)
        });
    }
    if MAX_ANSWER_BYTES < out.len() {
        return Err(failed(format!("more than {MAX_ANSWER_BYTES} bytes of answer")));
    }
    String::from_utf8(out).map_err(|_| failed("the answer is no text".to_owned()))
}

/// The words as one line for the shell; a program named with a path is one of
/// the plugin's folder.
fn script(words: &[String], folder: &std::path::Path) -> String {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let placed = |(place, word): (usize, &String)| match place {
        0 if word.contains('/') => quoted(&folder.join(word).to_string_lossy()),
        _ => quoted(word),
    };
    let words: Vec<String> = words.iter().enumerate().map(placed).collect();
    format!("exec {}", words.join(" "))
}

/// The files that a handler says it wrote; what is not there is left out.
async fn made(call: &Call, files: Vec<String>) -> Vec<Kept> {
    let mut made = Vec::new();
    if files.is_empty() {
        return made;
    }
    let Ok(workspace) = call.host.workspace(call.tenant_id, call.session_id).await else {
        return made;
    };
    for path in files.iter().take(MAX_FILES) {
        made.extend(named_file(&workspace, path).await);
    }
    made
}

/// The answer of a handler as a result, and the files that it names.
fn answered(tool: &str, raw: &str) -> (Done, Vec<String>) {
    match serde_json::from_str(raw.trim()) {
        Ok(Answer::Text { text, files }) => {
            let done = Done {
                failed: guardrail::says_failed(tool, &text),
                result: text,
                ..Done::default()
            };
            (done, files)
        }
        Ok(Answer::Json { value, files }) => {
            let done = Done {
                result: value.to_string(),
                ..Done::default()
            };
            (done, files)
        }
        Ok(Answer::Parts {
            content,
            text_summary,
            files,
        }) => match parts::shown(content, text_summary) {
            Ok(done) => (done, files),
            Err(error) => (of_contract(tool, &error, "parts"), Vec::new()),
        },
        Ok(Answer::Error { message, details }) => {
            let mut fields = Map::from_iter([("error".to_owned(), json!(message))]);
            fields.extend(details.into_iter().filter(|(name, _)| name != "error"));
            (Done::failure(Value::Object(fields).to_string()), Vec::new())
        }
        Err(_) => {
            let kind = match serde_json::from_str::<Value>(raw.trim()) {
                Ok(Value::Object(_)) => "object",
                Ok(Value::Array(_)) => "array",
                Ok(Value::String(_)) => "string",
                Ok(_) => "scalar",
                Err(_) => "no JSON",
            };
            let error = "the handler answered with an unsupported result type; expected an object with `type` `text`, \
                `json`, `parts` or `error`";
            (of_contract(tool, error, kind), Vec::new())
        }
    }
}

fn of_contract(tool: &str, error: &str, kind: &str) -> Done {
    let told = json!({"error": error, "error_type": "tool_result_contract", "tool": tool, "result_type": kind});
    Done::failure(told.to_string())
}

impl Check {
    /// Why the plugin's tools cannot be offered, if they cannot.
    async fn ask(&self) -> Option<String> {
        let answer = match &self.handled.action {
            Action::Url(url) => {
                self.documents
                    .post(url, b"{}".to_vec(), 4_096, self.handled.timeout)
                    .await
            }
            Action::Command(words) => return self.by_command(words).await,
        };
        answer.err().map(|error| format!("its check failed: {error}"))
    }

    async fn by_command(&self, words: &[String]) -> Option<String> {
        if let Some(reason) = self.host.no_commands() {
            return Some(reason);
        }
        let workspace = match self.host.environment().workspace("plugins", "checks").await {
            Ok(workspace) => workspace,
            Err(error) => return Some(format!("its check failed: {error}")),
        };
        let command = Command {
            script: script(words, &self.folder),
            cwd: workspace.root().to_path_buf(),
            timeout: self.handled.timeout,
            stdin: None,
            environment: Vec::new(),
        };
        let environment = self.host.environment().reading(self.folder.clone());
        let mut said = Vec::new();
        let take = |chunk: Chunk| {
            if said.len() < MAX_STDERR_BYTES {
                said.extend_from_slice(chunk.bytes());
            }
        };
        let cancel = tokio_util::sync::CancellationToken::new();
        match environment.execute(&workspace, command, take, cancel).await {
            Ok(ended) if ended.exit_code == 0 => None,
            Ok(ended) => {
                let said = String::from_utf8_lossy(&said);
                let said = crate::base::text::first_chars(said.trim(), 200).to_owned();
                Some(format!("its check failed with exit code {}: {said}", ended.exit_code))
            }
            Err(error) => Some(format!("its check failed: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_one_of_four_forms() {
        let result = |raw: &str| {
            let (done, _) = answered("x", raw);
            (done.result, done.failed)
        };
        assert_eq!(
            result(r#"{"type": "text", "text": "sunny"}"#),
            ("sunny".to_owned(), false)
        );
        assert_eq!(
            result(r#"{"type":"json","value":{"t":[1]}}"#),
            (r#"{"t":[1]}"#.to_owned(), false)
        );
        let (error, failed) = result(r#"{"type":"error","message":"no","details":{"code":7,"error":"x"}}"#);
        assert_eq!((error.as_str(), failed), (r#"{"error":"no","code":7}"#, true));
        for (raw, kind) in [
            ("sunny", "no JSON"),
            ("\"sunny\"", "string"),
            ("[]", "array"),
            (r#"{"_multimodal": true, "content": []}"#, "object"),
            (r#"{"type":"text","text":"a","json":{}}"#, "object"),
        ] {
            let (told, failed) = result(raw);
            let told: Value = serde_json::from_str(&told).unwrap();
            assert_eq!(
                (&told["error_type"], &told["result_type"]),
                (&json!("tool_result_contract"), &json!(kind))
            );
            assert!(failed, "{raw}");
        }
    }

    #[test]
    fn words_reach_the_program_as_they_stand() {
        let words = ["./now".to_owned(), "it's $HOME; rm".to_owned()];
        let line = script(&words, std::path::Path::new("/p/weather"));
        assert_eq!(line, r"exec '/p/weather/./now' 'it'\''s $HOME; rm'");
        assert_eq!(script(&["jq".to_owned()], std::path::Path::new("/p")), "exec 'jq'");
    }
}
