//! Sessions: made, changed, deleted.

use std::path::{Component, Path};

use futures::future::BoxFuture;
use serde_json::json;

use super::CreateSession;
use super::adopt::History;
use super::conditions::forbid_session;
use super::turns::{is_child, stop};
use super::{EngineError, Verdict, earlier};
use crate::base::Timestamp;
use crate::config::HookPoint;
use crate::model::audit::{AuditAction, Audited};
use crate::model::client_tool::ClientTool;
use crate::model::event::EventType;
use crate::model::id::{SessionId, TenantId};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{NewEvent, SessionRecord, Writes};
use crate::model::sampling::{Sampling, SamplingChanges};
use crate::model::session::{Session, SessionStatus};
use crate::model::turn::{CancelReason, Usage};
use crate::model::version::Part;
use crate::store::sessions::{NewSession, SessionPatch};
use crate::store::{Rows, Scope, StoreError};
use crate::tool::session_tools::SessionTools;
use crate::turn::engine::Engine;

/// The transaction that makes a session.
fn storing(row: NewSession) -> impl for<'c> FnOnce(Rows<'c>) -> BoxFuture<'c, Result<Verdict<Session>, StoreError>> {
    move |mut rows| {
        Box::pin(async move {
            match earlier(&mut rows).await? {
                Some(earlier) => Ok(Err(earlier)),
                None => stored(&mut rows, row, History::default()).await,
            }
        })
    }
}

impl Engine {
    pub async fn create_session(&self, scope: &Scope, new: CreateSession) -> Verdict<Session> {
        const LABEL: &str = "create_session";
        let row = self.new_row(scope.tenant(), SessionId::new(self.clock()), new)?;
        let session = row.record.session_id;
        let added = match row.external_id {
            None => scope.write_grouped(session, LABEL, || storing(row.clone())).await,
            // The name may be taken, and whoever shared the transaction would begin anew.
            Some(_) => scope.write(LABEL, storing(row)).await,
        };
        let added = match added {
            Err(StoreError::Unique(_)) => Err(taken()),
            added => added?,
        };
        self.begun(scope, &added);
        added
    }

    /// Tells of a session that is new.
    pub(super) fn begun(&self, scope: &Scope, added: &Verdict<Session>) {
        if let Ok(session) = added {
            self.tell_session(HookPoint::OnSessionStart, scope.tenant(), session.id);
        }
    }

    /// A session before it is stored, checked.
    pub(super) fn new_row(&self, tenant: TenantId, id: SessionId, new: CreateSession) -> Verdict<NewSession> {
        let record = self.new_record(tenant, id, &new)?;
        self.fits(&record)?;
        Ok(NewSession {
            record,
            external_id: new.external_id,
            title: new.title,
            metadata: new.metadata,
            parent: None,
            created_at: self.clock().now(),
        })
    }

    fn new_record(&self, tenant_id: TenantId, session_id: SessionId, new: &CreateSession) -> Verdict<SessionRecord> {
        let cwd = match new.environment.cwd.as_deref().filter(|cwd| !cwd.is_empty()) {
            Some(cwd) => Some(self.beginning(tenant_id, session_id, cwd)?),
            None => None,
        };
        Ok(SessionRecord {
            tenant_id,
            session_id,
            user_id: new.user_id.clone(),
            model: new.model.clone(),
            instructions: new.instructions.clone(),
            preset: new.preset.clone(),
            toolsets: new.toolsets.clone(),
            environment: new.environment.clone(),
            approvals: new.approvals.clone(),
            sampling: Box::new(new.sampling.clone()),
            tools: new.tools.clone(),
            budget: new.budget,
            status: SessionStatus::Idle,
            head_seq: 0,
            next_position: 0,
            active_turn_id: None,
            usage: Usage::default(),
            todo: "[]".to_owned(),
            seen_files: String::new(),
            memory_block: None,
            context_block: None,
            cwd,
            node_id: None,
            lineage: None,
            deleted_at: None,
        })
    }

    /// Whether the toolsets of a session are there, and the tool that its model
    /// has to call among them.
    pub(super) fn fits(&self, session: &SessionRecord) -> Verdict<()> {
        let tools = self
            .recent_tools(session)
            .map_err(|unknown| refused_toolset(&unknown.to_string()))?;
        self.are_free(session.tenant_id, &session.tools)?;
        is_choice_of(&tools, &session.sampling)
    }

    /// A tool of the client never takes the name of one of the server.
    pub(super) fn are_free(&self, tenant: TenantId, tools: &[ClientTool]) -> Verdict<()> {
        let registry = self.registry(tenant);
        let taken = |tool: &ClientTool| registry.get(tool.name()).is_some();
        let Some(place) = tools.iter().position(taken) else {
            return Ok(());
        };
        let detail = "a tool of the server has this name";
        let pointer = format!("/tools/{place}/function/name");
        let problem = Problem::new(ProblemCode::InvalidRequest, format!("`{pointer}`: {detail}"));
        Err(EngineError::Refused(problem.with_field(pointer, detail)))
    }

    /// The directory that a session begins in, from its path in the workspace.
    fn beginning(&self, tenant: TenantId, session: SessionId, cwd: &str) -> Verdict<String> {
        let within = Path::new(cwd)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !within {
            let detail = "`environment.cwd` is a relative path inside the workspace, without `..`";
            let problem = Problem::new(ProblemCode::InvalidRequest, detail).with_field("/environment/cwd", detail);
            return Err(EngineError::Refused(problem));
        }
        Ok(self
            .workspace_path(tenant, session)
            .join(cwd)
            .to_string_lossy()
            .into_owned())
    }

    pub async fn patch_session(&self, scope: &Scope, id: SessionId, patch: SessionPatch) -> Verdict<Session> {
        let engine = self.clone();
        let now = self.clock().now();
        let patched = scope.write("patch_session", move |mut rows| {
            Box::pin(async move {
                let Some(mut record) = rows.lock_session(id).await? else {
                    return Ok(Err(EngineError::NotFound("session")));
                };
                if let Some(preset) = &patch.preset {
                    record.preset.clone_from(preset);
                }
                if let Some(toolsets) = &patch.toolsets {
                    record.toolsets.clone_from(toolsets);
                }
                if let Some(tools) = &patch.tools {
                    record.tools.clone_from(tools);
                }
                *record.sampling = patch.sampling.clone().applied(&record.sampling);
                if let Err(refused) = engine.fits(&record) {
                    return Ok(Err(refused));
                }
                if let Some(Some(name)) = &patch.external_id
                    && rows.external_id_is_taken(&record.user_id, name, Some(id)).await?
                {
                    return Ok(Err(taken()));
                }
                if let Some(refused) = forbid_session(&mut rows, id, Part::Settings).await? {
                    return Ok(Err(refused));
                }
                rows.patch_session(&record, &patch).await?;
                rows.audit(&policy_change(&record, &patch), now).await?;
                // What changes by itself stands in the event as it is now.
                let Some(seen) = rows.session(id).await? else {
                    return Ok(Err(EngineError::NotFound("session")));
                };
                let by_itself = visible_state(&seen, now);
                let state = json!({"title": patch.title, "external_id": patch.external_id, "model": patch.model,
                    "instructions": patch.instructions, "preset": patch.preset, "toolsets": patch.toolsets,
                    "approvals": patch.approvals, "tools": patch.tools, "budget": patch.budget,
                    "metadata": patch.metadata});
                let mut state = merged(changed_only(state), by_itself);
                if patch.sampling != SamplingChanges::default() {
                    state = merged(state, json!(record.sampling));
                }
                rows.apply(&mut record, &told(EventType::SessionUpdated, &state), now)
                    .await?;
                Ok(rows.session(id).await?.ok_or(EngineError::NotFound("session")))
            })
        });
        match patched.await {
            Ok(session) => session,
            Err(StoreError::Unique(_)) => Err(taken()),
            Err(error) => Err(error.into()),
        }
    }

    /// The session is gone for clients at once. What runs is cancelled, what
    /// waits is closed, and the rows go when nothing runs any more.
    pub async fn delete_session(&self, scope: &Scope, id: SessionId) -> Verdict<()> {
        let (engine, scope) = (self.clone(), scope.clone());
        self.whole(async move { engine.delete(&scope, id).await }).await
    }

    async fn delete(&self, scope: &Scope, id: SessionId) -> Verdict<()> {
        let engine = self.clone();
        let now = self.clock().now();
        let deleted = scope.write_anew("delete_session", move |mut rows| {
            Box::pin(async move {
                let Some(session) = rows.lock_session(id).await? else {
                    return Ok(Err(EngineError::NotFound("session")));
                };
                if session.lineage.is_some() {
                    return Ok(Err(is_child()));
                }
                // What goes with it is more than its settings.
                if let Some(refused) = forbid_session(&mut rows, id, Part::Whole).await? {
                    return Ok(Err(refused));
                }
                let deleted = Audited {
                    session_id: Some(id),
                    ..Audited::new(AuditAction::SessionDeleted, &session.user_id)
                };
                rows.audit(&[deleted], now).await?;
                let session = drop_queue(&mut rows, &engine, session).await?;
                rows.hide_session(id, now).await?;
                rows.hide_descendants(id, now).await?;
                let Some(active) = session.active_turn_id else {
                    return Ok(Ok(()));
                };
                let session = SessionRecord {
                    deleted_at: Some(now),
                    ..session
                };
                if let Some(turn) = rows.turn(id, active).await? {
                    stop(&mut rows, &engine, session, turn, CancelReason::CancelledByUser).await?;
                }
                Ok(Ok(()))
            })
        });
        let deleted = deleted.await;
        // Where nothing runs no owner will say so. Also after an unclear COMMIT.
        self.nudges().purge.notify_one();
        let deleted = deleted?;
        if deleted.is_ok() {
            self.tell_session(HookPoint::OnSessionEnd, scope.tenant(), id);
        }
        deleted
    }
}

/// Stores a new session with its past, last in its transaction.
pub(super) async fn stored(
    rows: &mut Rows<'_>,
    row: NewSession,
    history: History,
) -> Result<Verdict<Session>, StoreError> {
    let now = row.created_at;
    if let Some(name) = &row.external_id
        && rows.external_id_is_taken(&row.record.user_id, name, None).await?
    {
        return Ok(Err(taken()));
    }
    let created = Audited {
        session_id: Some(row.record.session_id),
        ..Audited::new(AuditAction::SessionCreated, &row.record.user_id)
    };
    rows.audit(&[created], now).await?;
    let mut row = row;
    let session = &mut row.record;
    session.next_position = history.places();
    let state = json!({"status": session.status, "required_actions": [], "active_turn_id": null,
        "usage": session.usage, "updated_at": now});
    let mut writes = told(EventType::SessionCreated, &state);
    history.write(session.head_seq, &mut writes);
    let session = rows.found(row, &writes).await?;
    rows.remember(&session).await?;
    Ok(Ok(session))
}

/// What changes of a session by itself, for its event.
pub(super) fn visible_state(seen: &Session, now: Timestamp) -> serde_json::Value {
    json!({"status": seen.status, "required_actions": seen.required_actions, "active_turn_id": seen.active_turn_id,
        "usage": seen.usage, "updated_at": now})
}

/// Ends every queued turn of a session that goes away.
async fn drop_queue(rows: &mut Rows<'_>, engine: &Engine, session: SessionRecord) -> Result<SessionRecord, StoreError> {
    let mut session = session;
    for turn in rows.queued_turns(session.session_id).await? {
        session = stop(rows, engine, session, turn, CancelReason::CancelledByUser)
            .await?
            .state
            .session;
    }
    Ok(session)
}

/// What a change of the rules of a session looks like in the audit trail: names,
/// and of the approval settings their values, which are words and numbers.
fn policy_change(session: &SessionRecord, patch: &SessionPatch) -> Vec<Audited> {
    let mut fields = Vec::new();
    let settings = patch
        .approvals
        .as_ref()
        .and_then(|policy| json!(policy).as_object().cloned());
    if let Some(settings) = settings {
        fields.push("approvals".to_owned());
        fields.extend(settings.iter().map(|(name, value)| format!("approvals.{name}={value}")));
    }
    let others = [
        ("preset", patch.preset.is_some()),
        ("toolsets", patch.toolsets.is_some()),
        ("budget", patch.budget.is_some()),
    ];
    fields.extend(
        others
            .into_iter()
            .filter(|(_, set)| *set)
            .map(|(name, _)| name.to_owned()),
    );
    if fields.is_empty() {
        return Vec::new();
    }
    vec![Audited {
        session_id: Some(session.session_id),
        fields,
        ..Audited::new(AuditAction::SessionPolicyChanged, &session.user_id)
    }]
}

pub(super) fn taken() -> EngineError {
    let detail = "another session of this user has this `external_id`; read it with GET /v1/sessions?external_id=";
    EngineError::Refused(Problem::new(ProblemCode::ExternalIdTaken, detail).with_field("/external_id", detail))
}

/// Whether the tool that the model has to call is one of these.
pub(super) fn is_choice_of(tools: &SessionTools, sampling: &Sampling) -> Verdict<()> {
    match sampling.named_tool() {
        Some(name) if !tools.has(name) => {
            let detail = format!("`{name}` is not among the session's tools");
            let problem = Problem::new(
                ProblemCode::InvalidRequest,
                format!("`/tool_choice/function/name`: {detail}"),
            );
            Err(EngineError::Refused(
                problem.with_field("/tool_choice/function/name", detail),
            ))
        }
        _ => Ok(()),
    }
}

fn refused_toolset(detail: &str) -> EngineError {
    EngineError::Refused(Problem::new(ProblemCode::InvalidRequest, detail).with_field("/toolsets", detail))
}

pub(super) fn told(kind: EventType, state: &serde_json::Value) -> Writes {
    let event = NewEvent {
        kind,
        turn_id: None,
        epoch: 0,
        data: json!({"state": state}),
    };
    Writes {
        events: vec![event],
        ..Writes::default()
    }
}

pub(super) fn merged(state: serde_json::Value, more: serde_json::Value) -> serde_json::Value {
    match (state, more) {
        (serde_json::Value::Object(mut state), serde_json::Value::Object(more)) => {
            state.extend(more);
            state.into()
        }
        (state, _) => state,
    }
}

/// Drops what a patch does not name: `null` there means "as it was".
fn changed_only(state: serde_json::Value) -> serde_json::Value {
    match state {
        serde_json::Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}
