//! What the operator asks or tells around calls: commands and addresses of the
//! configuration, and functions that are part of the binary.
//!
//! Who may refuse a call is asked before it is stored, and a failure refuses.
//! Who is only told never holds anything up, and a failure is logged.

pub mod around;
mod before;
mod run;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use regex::Regex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use before::Before;

use super::{Done, Host};
use crate::config::{self, HookPoint};
use crate::fetch::Documents;
use crate::model::id::{CallId, MessageId, SessionId, TenantId, TurnId};
use crate::model::trace::Trace;

/// Observers under way at once; what comes beyond is not told, and logged.
const MAX_OBSERVERS: usize = 64;
/// How long those who are told may still take when the server stops.
const CLOSING: Duration = Duration::from_secs(2);

/// A hook that is part of the binary: submitted where it is written.
pub struct CompiledHook {
    pub name: &'static str,
    pub point: HookPoint,
    pub run: fn(Value) -> BoxFuture<'static, Result<Value, String>>,
}

inventory::collect!(CompiledHook);

/// One hook.
#[derive(Clone, Debug)]
pub struct Hook {
    pub point: HookPoint,
    pub name: String,
    pub action: Action,
    pub matcher: Option<Regex>,
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub enum Action {
    Command(Vec<String>),
    Url(url::Url),
    Compiled(fn(Value) -> BoxFuture<'static, Result<Value, String>>),
    /// Runs the call itself.
    Around(around::Middleware),
}

/// Every hook of this server.
#[derive(Clone)]
pub struct Hooks(Arc<Inner>);

struct Inner {
    all: Vec<Hook>,
    host: Arc<Host>,
    documents: Documents,
    observers: Arc<Semaphore>,
    tasks: TaskTracker,
    /// Those who are still being told are left.
    stopping: CancellationToken,
}

/// Whose doing a payload is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub tenant_id: TenantId,
    pub session_id: SessionId,
    pub turn_id: Option<TurnId>,
    pub call_id: Option<CallId>,
    /// The model's answer that made the call.
    pub answer_id: Option<MessageId>,
    /// The call of the program that made this one.
    pub parent_call_id: Option<CallId>,
}

/// Those who stand around a call and behind it, with what they are told of it.
pub struct After {
    pub hooks: Hooks,
    pub subject: Subject,
    pub arguments: Value,
    pub trace: Vec<Trace>,
}

impl After {
    /// The result after the first hook that changes it.
    pub async fn changed(self, tool: &str, done: &Done) -> Option<String> {
        let status = match done {
            Done { cancelled: true, .. } => "cancelled",
            Done { failed: true, .. } => "error",
            _ => "ok",
        };
        let told = json!({"tool_name": tool, "args": self.arguments, "result": done.result, "status": status,
            "exit_code": done.exit_code, "middleware_trace": self.trace});
        self.hooks.transformed(self.subject, &told).await
    }
}

impl Hooks {
    /// Those of the configuration, and those that are part of the binary.
    pub fn new(configured: &[config::Hook], host: Arc<Host>, documents: Documents) -> Self {
        let configured = configured.iter().map(|hook| Hook {
            point: hook.point,
            name: hook.name.clone(),
            action: match &hook.action {
                config::HookAction::Command(words) => Action::Command(words.clone()),
                config::HookAction::Url(url) => Action::Url(url.clone()),
            },
            // It was read once already when the configuration was.
            matcher: hook
                .matcher
                .as_ref()
                .and_then(|text| Regex::new(&format!("^(?:{text})$")).ok()),
            timeout: hook.timeout,
        });
        let compiled = inventory::iter::<CompiledHook>().map(|hook| Hook {
            point: hook.point,
            name: hook.name.to_owned(),
            action: Action::Compiled(hook.run),
            matcher: None,
            timeout: Duration::from_secs(10),
        });
        let around = inventory::iter::<around::CompiledMiddleware>().map(|middleware| Hook {
            point: HookPoint::ToolExecution,
            name: middleware.name.to_owned(),
            action: Action::Around(middleware.run),
            matcher: None,
            timeout: Duration::from_secs(10),
        });
        Self(Arc::new(Inner {
            all: configured.chain(compiled).chain(around).collect(),
            host,
            documents,
            observers: Arc::new(Semaphore::new(MAX_OBSERVERS)),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }))
    }

    /// Whether anybody stands there.
    pub fn has(&self, point: HookPoint) -> bool {
        self.0.all.iter().any(|hook| hook.point == point)
    }

    /// Whether a call is shown to anybody before it is stored.
    pub fn ask_before(&self) -> bool {
        self.has(HookPoint::ToolRequest) || self.has(HookPoint::PreToolCall)
    }

    /// Whether anybody stands around a call, or behind it.
    pub fn attend_calls(&self) -> bool {
        self.has(HookPoint::ToolExecution) || self.has(HookPoint::TransformToolResult)
    }

    fn at(&self, point: HookPoint, tool: Option<&str>) -> Vec<Hook> {
        let fits = |hook: &&Hook| match (&hook.matcher, tool) {
            (Some(matcher), Some(tool)) => matcher.is_match(tool),
            _ => true,
        };
        let here = self.0.all.iter().filter(|hook| hook.point == point);
        here.filter(fits).cloned().collect()
    }

    /// The text of a result after those who may change it; the first change wins.
    pub async fn transformed(&self, subject: Subject, told: &Value) -> Option<String> {
        let tool = told["tool_name"].as_str();
        for hook in self.at(HookPoint::TransformToolResult, tool) {
            let payload = run::payload(&hook, subject, "hermes.observer.v1", told.clone());
            match run::asked(&self.0.host, &self.0.documents, &hook, payload).await {
                Ok(Value::Object(answer)) => {
                    if let Some(Value::String(text)) = answer.get("result") {
                        return Some(text.clone());
                    }
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(hook = hook.name, error, "a hook failed and is skipped"),
            }
        }
        None
    }

    /// Tells those who only watch; nobody waits for them.
    pub fn tell(&self, point: HookPoint, subject: Subject, told: &Value) {
        for hook in self.at(point, told["tool_name"].as_str()) {
            let Ok(place) = Arc::clone(&self.0.observers).try_acquire_owned() else {
                tracing::warn!(hook = hook.name, "too many hooks are under way: this one was not told");
                continue;
            };
            let payload = run::payload(&hook, subject, "hermes.observer.v1", told.clone());
            let hooks = self.clone();
            self.0.tasks.spawn(async move {
                let asked = run::asked(&hooks.0.host, &hooks.0.documents, &hook, payload);
                let answer = tokio::select! {
                    answer = asked => answer,
                    () = hooks.0.stopping.cancelled() => Err("the server stops".to_owned()),
                };
                if let Err(error) = answer {
                    tracing::warn!(hook = hook.name, error, "a hook failed");
                }
                drop(place);
            });
        }
    }

    /// Waits for those who are still being told, not for long.
    pub async fn close(&self) {
        self.0.tasks.close();
        if timeout(CLOSING, self.0.tasks.wait()).await.is_err() {
            self.0.stopping.cancel();
            self.0.tasks.wait().await;
        }
    }
}

#[cfg(test)]
mod tests;
