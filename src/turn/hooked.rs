//! Hooks around a turn's calls: asked before an answer is stored, since nothing
//! may wait under the session's lock; told when a call, an approval or a session
//! has come to its end.

use serde_json::{Map, Value, json};

use super::engine::{Engine, Scene};
use super::owner::Owned;
use super::state::State;
use super::step::{Hooked, read_call};
use crate::base::text::first_chars;
use crate::config::HookPoint;
use crate::model::approval::Approval;
use crate::model::call::CallStatus;
use crate::model::id::{CallId, MessageId, SessionId, TenantId};
use crate::model::message::text_of;
use crate::model::record::{CallRecord, Writes};
use crate::model::trace::{Trace, TraceAction};
use crate::provider::Answer;
use crate::tool::hook::{After, Subject};

/// Of a result that names no error of its own.
const ERROR_CHARS: usize = 500;

/// What hooks make of each call of an answer, in its order; `None` for one that
/// does not run anyway.
pub(super) async fn before(
    engine: &Engine,
    owned: &Owned,
    answer_id: MessageId,
    answer: &Answer,
) -> Vec<Option<Hooked>> {
    let hooks = engine.hooks();
    if !hooks.ask_before() {
        return Vec::new();
    }
    let scene: Scene = engine.scene(&owned.state.session, &owned.state.turn);
    let mut all = Vec::with_capacity(answer.calls.len());
    for call in &answer.calls {
        let planned = read_call(&scene.tools, call.clone());
        let Ok((name, arguments)) = planned else {
            all.push(None);
            continue;
        };
        let call_id = CallId::new(engine.clock());
        let subject = Subject {
            tenant_id: owned.tenant,
            session_id: owned.state.session.session_id,
            turn_id: Some(owned.state.turn.turn_id),
            call_id: Some(call_id),
            answer_id: Some(answer_id),
            parent_call_id: None,
        };
        let before = hooks.before_call(subject, &name, &arguments).await;
        all.push(Some(Hooked { call_id, before }));
    }
    all
}

/// Who stands around a call that runs, and behind it; `None` where nobody does.
pub(super) fn after(engine: &Engine, owned: &Owned, call: &CallRecord) -> Option<After> {
    let hooks = engine.hooks();
    hooks.attend_calls().then(|| After {
        hooks: hooks.clone(),
        subject: Subject {
            tenant_id: owned.tenant,
            session_id: owned.state.session.session_id,
            turn_id: Some(call.turn_id),
            call_id: Some(call.call_id),
            answer_id: Some(call.message_id),
            parent_call_id: call.parent(),
        },
        arguments: call.effective_arguments().clone(),
        trace: owned.state.trace_of(call.call_id).to_vec(),
    })
}

/// What a committed change tells: calls that ended, however they did, approvals
/// asked and settled, child sessions begun.
#[derive(Debug, Default)]
pub(super) struct News(Vec<(HookPoint, Subject, Value)>);

impl News {
    pub(super) fn of(engine: &Engine, state: &State, writes: &Writes) -> Self {
        let hooks = engine.hooks();
        let subject = Subject {
            tenant_id: state.session.tenant_id,
            session_id: state.session.session_id,
            turn_id: Some(state.turn.turn_id),
            call_id: None,
            answer_id: None,
            parent_call_id: None,
        };
        let mut news = Vec::new();
        if hooks.has(HookPoint::PostToolCall) {
            let calls = writes.new_calls.iter().chain(&writes.calls);
            let ended = calls.filter(|call| call.status.is_settled());
            news.extend(ended.map(|call| told_of(call, state.trace_of(call.call_id), (writes, subject))));
        }
        if hooks.has(HookPoint::PreApproval) {
            news.extend(writes.new_approvals.iter().map(|approval| {
                let told = json!({"tool_name": approval.tool, "approval": approval});
                (HookPoint::PreApproval, about(subject, approval), told)
            }));
        }
        if hooks.has(HookPoint::PostApproval) {
            news.extend(writes.approvals.iter().map(|approval| {
                let told = json!({"tool_name": approval.tool, "approval_id": approval.id,
                    "status": approval.status, "decision": approval.decision});
                (HookPoint::PostApproval, about(subject, approval), told)
            }));
        }
        news.extend(writes.new_children.iter().map(|child| {
            let subject = Subject {
                session_id: child.session_id,
                turn_id: Some(child.turn_id),
                ..subject
            };
            let told = json!({"parent_session_id": state.session.session_id});
            (HookPoint::OnSessionStart, subject, told)
        }));
        Self(news)
    }

    pub(super) fn tell(&self, engine: &Engine) {
        for (point, subject, told) in &self.0 {
            engine.hooks().tell(*point, *subject, told);
        }
    }
}

fn about(subject: Subject, approval: &Approval) -> Subject {
    Subject {
        call_id: approval.tool_call_id,
        ..subject
    }
}

/// A call that has its result now.
fn told_of(call: &CallRecord, trace: &[Trace], (writes, subject): (&Writes, Subject)) -> (HookPoint, Subject, Value) {
    let message = writes
        .messages
        .iter()
        .find(|message| message.call_id == Some(call.call_id));
    let of_program = || call.nested.as_ref()?.result.as_deref().map(str::to_owned);
    let result = message.map(|message| text_of(&message.content)).or_else(of_program);
    let status = match call.status {
        CallStatus::Succeeded => "ok",
        CallStatus::Failed => "error",
        CallStatus::Denied => "blocked",
        CallStatus::Cancelled => "cancelled",
        _ => "unknown",
    };
    let (error_type, error_message) = match call.status {
        CallStatus::Succeeded => (None, None),
        _ => error_of(trace, result.as_deref().unwrap_or_default()),
    };
    let took = call
        .started_at
        .zip(call.finished_at)
        .map(|(from, to)| to.since(from).as_millis());
    let told = json!({"tool_name": call.name, "args": call.effective_arguments(),
        "result": result, "status": status, "error_type": error_type, "error_message": error_message,
        "exit_code": call.exit_code, "middleware_trace": trace,
        "duration_ms": took.map_or(0, |took| u64::try_from(took).unwrap_or(u64::MAX))});
    let subject = Subject {
        turn_id: Some(call.turn_id),
        call_id: Some(call.call_id),
        answer_id: Some(call.message_id),
        parent_call_id: call.parent(),
        ..subject
    };
    (HookPoint::PostToolCall, subject, told)
}

/// The kind and the words of what went wrong: those that the result names, or its
/// beginning.
fn error_of(trace: &[Trace], result: &str) -> (Option<String>, Option<String>) {
    let fields: Map<String, Value> = serde_json::from_str(result).unwrap_or_default();
    let named = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let blocked = trace.iter().any(|trace| trace.action == TraceAction::Blocked);
    let kind = match blocked {
        true => Some("plugin_block".to_owned()),
        false => named("error_type"),
    };
    let beginning = || first_chars(result, ERROR_CHARS).to_owned();
    (kind, Some(named("error").unwrap_or_else(beginning)))
}

impl Engine {
    /// Tells those who watch sessions come and go.
    pub(super) fn tell_session(&self, point: HookPoint, tenant_id: TenantId, session_id: SessionId) {
        let subject = Subject {
            tenant_id,
            session_id,
            turn_id: None,
            call_id: None,
            answer_id: None,
            parent_call_id: None,
        };
        self.hooks().tell(point, subject, &json!({}));
    }
}
