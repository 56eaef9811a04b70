//! Hooks around a turn's calls: asked before an answer is stored, since nothing
//! may wait under the session's lock; told when a call, an approval or a session
//! has come to its end.

use serde_json::{Map, Value, json};

use super::engine::{Engine, Scene};
use super::owner::Owned;
use super::step::{Hooked, read_call};
use crate::base::Timestamp;
use crate::config::HookPoint;
use crate::model::id::{CallId, MessageId, SessionId, TenantId};
use crate::model::record::{CallRecord, Writes};
use crate::provider::Answer;
use crate::tool::Done;
use crate::tool::hook::{Hooks, Subject};

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
        };
        let before = hooks.before_call(subject, &name, &arguments).await;
        all.push(Some(Hooked { call_id, before }));
    }
    all
}

/// A call that runs, for those who are told of it.
pub(super) struct Watched {
    hooks: Hooks,
    subject: Subject,
    tool: String,
    arguments: Value,
    started: Timestamp,
    engine: Engine,
}

impl Watched {
    /// `None` where nobody wants to know.
    pub(super) fn new(engine: &Engine, owned: &Owned, call: &CallRecord) -> Option<Self> {
        let hooks = engine.hooks();
        let wanted = [HookPoint::PostToolCall, HookPoint::TransformToolResult];
        wanted.into_iter().any(|point| hooks.has(point)).then(|| Self {
            hooks: hooks.clone(),
            subject: Subject {
                tenant_id: owned.tenant,
                session_id: owned.state.session.session_id,
                turn_id: Some(call.turn_id),
                call_id: Some(call.call_id),
                answer_id: Some(call.message_id),
            },
            tool: call.name.clone(),
            arguments: call.effective_arguments().clone(),
            started: engine.clock().now(),
            engine: engine.clone(),
        })
    }

    /// The result, changed by those who may; the others are told.
    pub(super) async fn ended(self, mut done: Done) -> Done {
        let took = self.engine.clock().now().since(self.started);
        let status = match &done {
            Done { cancelled: true, .. } => "cancelled",
            Done { failed: true, .. } => "error",
            _ => "ok",
        };
        let mut told = Map::new();
        told.insert("tool_name".to_owned(), json!(self.tool));
        told.insert("args".to_owned(), self.arguments);
        told.insert("result".to_owned(), json!(done.result));
        told.insert("status".to_owned(), json!(status));
        told.insert("exit_code".to_owned(), json!(done.exit_code));
        told.insert(
            "duration_ms".to_owned(),
            json!(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        );
        let told = Value::Object(told);
        self.hooks.tell(HookPoint::PostToolCall, self.subject, &told);
        if let Some(text) = self.hooks.transformed(self.subject, &told).await {
            done.result = text;
        }
        done
    }
}

/// What a committed change tells of approvals.
#[derive(Debug, Default)]
pub(super) struct News(Vec<(HookPoint, Value)>);

impl News {
    pub(super) fn of(writes: &Writes) -> Self {
        let asked = writes.new_approvals.iter().map(|approval| {
            let told = json!({"tool_name": approval.tool, "approval": approval});
            (HookPoint::PreApproval, told)
        });
        let settled = writes.approvals.iter().map(|update| {
            let told = json!({"approval_id": update.approval_id, "status": update.status, "decision": update.decision});
            (HookPoint::PostApproval, told)
        });
        Self(asked.chain(settled).collect())
    }

    pub(super) fn tell(&self, engine: &Engine, state: &super::state::State) {
        let subject = Subject {
            tenant_id: state.session.tenant_id,
            session_id: state.session.session_id,
            turn_id: Some(state.turn.turn_id),
            call_id: None,
            answer_id: None,
        };
        for (point, told) in &self.0 {
            engine.hooks().tell(*point, subject, told);
        }
    }
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
        };
        self.hooks().tell(point, subject, &json!({}));
    }
}
