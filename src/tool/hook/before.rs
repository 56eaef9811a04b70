//! Hooks before a call: who may change its arguments, then who may refuse it or
//! have a person decide. A failure of the latter refuses.

use serde_json::{Map, Value, json};

use super::{Hook, Hooks, Subject, run};
use crate::config::HookPoint;
use crate::guard::{Finding, Severity, Span};
use crate::model::trace::{Trace, TraceAction};

/// What hooks made of a call before it is stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Before {
    /// In the place of what the model wrote.
    pub arguments: Option<Map<String, Value>>,
    /// Why it does not run.
    pub blocked: Option<String>,
    /// Why a person has to decide.
    pub asks: Vec<Finding>,
    /// Who did what of it, in their order.
    pub trace: Vec<Trace>,
}

impl Before {
    fn note(&mut self, hook: &Hook, action: TraceAction, reason: Option<String>) {
        self.trace.push(Trace {
            source: hook.point.name().to_owned(),
            name: hook.name.clone(),
            action,
            reason,
        });
    }
}

impl Hooks {
    /// Shows a call to those who may change or refuse it, in their order.
    pub async fn before_call(&self, subject: Subject, tool: &str, arguments: &Map<String, Value>) -> Before {
        let mut before = Before::default();
        for hook in self.at(HookPoint::ToolRequest, Some(tool)) {
            let now = before.arguments.as_ref().unwrap_or(arguments);
            let told = json!({"tool_name": tool, "args": now, "middleware_trace": before.trace});
            let payload = run::payload(&hook, subject, "hermes.middleware.v1", told);
            match run::asked(&self.0.host, &self.0.documents, &hook, payload).await {
                Ok(answer) => {
                    let replaced = answer.get("arguments").or_else(|| answer.get("args"));
                    if let Some(Value::Object(replaced)) = replaced {
                        tracing::info!(hook = hook.name, tool, "the arguments of a call are replaced");
                        let reason = answer.get("reason").and_then(Value::as_str).map(str::to_owned);
                        before.arguments = Some(replaced.clone());
                        before.note(&hook, TraceAction::Replaced, reason);
                    }
                }
                Err(error) => {
                    tracing::warn!(hook = hook.name, error, "a hook failed and is skipped");
                    before.note(&hook, TraceAction::Skipped, Some(error));
                }
            }
        }
        self.permit(subject, tool, arguments, &mut before).await;
        before
    }

    /// Those who may refuse: the first that says something wins.
    async fn permit(&self, subject: Subject, tool: &str, arguments: &Map<String, Value>, before: &mut Before) {
        for hook in self.at(HookPoint::PreToolCall, Some(tool)) {
            let now = before.arguments.as_ref().unwrap_or(arguments);
            let told = json!({"tool_name": tool, "args": now, "middleware_trace": before.trace});
            let payload = run::payload(&hook, subject, "hermes.observer.v1", told);
            let answer = run::asked(&self.0.host, &self.0.documents, &hook, payload).await;
            match directive(&hook, tool, answer) {
                Directive::None => {}
                Directive::Block(message) => {
                    before.note(&hook, TraceAction::Blocked, Some(message.clone()));
                    before.blocked = Some(message);
                    return;
                }
                Directive::Ask(finding) => {
                    before.note(&hook, TraceAction::Asked, Some(finding.description.clone()));
                    before.asks.push(finding);
                    return;
                }
            }
        }
    }
}

pub(super) enum Directive {
    None,
    Block(String),
    Ask(Finding),
}

/// What the answer of a hook that may refuse means; a failure refuses.
pub(super) fn directive(hook: &Hook, tool: &str, answer: Result<Value, String>) -> Directive {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            tracing::warn!(hook = hook.name, error, "a hook failed: the call is refused");
            return Directive::Block(format!("the hook `{}` failed, so the call was refused", hook.name));
        }
    };
    let said = ["action", "decision"]
        .iter()
        .find_map(|name| answer.get(*name)?.as_str());
    let message = ["message", "reason"]
        .iter()
        .find_map(|name| answer.get(*name)?.as_str());
    // What a lasting permission covers.
    let rule_key = answer.get("rule_key").and_then(Value::as_str);
    match said {
        None | Some("allow" | "continue") => Directive::None,
        Some("block" | "deny") => {
            let message = message.map(str::to_owned);
            Directive::Block(message.unwrap_or_else(|| format!("the hook `{}` refused the call", hook.name)))
        }
        Some("approve" | "ask") => Directive::Ask(Finding {
            rule: "hook".to_owned(),
            key: format!("plugin_rule:{}", rule_key.unwrap_or(tool)),
            description: message.map_or_else(
                || format!("the hook `{}` wants a person to decide", hook.name),
                str::to_owned,
            ),
            severity: Severity::High,
            span: Span::default(),
            argv: Vec::new(),
        }),
        Some(other) => Directive::Block(format!(
            "the hook `{}` answered `{other}`, which means nothing here",
            hook.name
        )),
    }
}
