//! What clients ask of the engine: sessions made and changed, turns begun and
//! cancelled, approvals answered. Each is one transaction under the session's
//! lock, checked there and nowhere before.

use serde_json::json;

use super::commit::{self, Carried};
use super::engine::Engine;
use super::next::Outcome;
use super::owner::cancel_outcome;
use super::state::State;
use super::step::DecisionIn;
use crate::model::approval::{Approval, ApprovalStatus, Choice};
use crate::model::event::EventType;
use crate::model::id::{ApprovalId, SessionId, TenantId, TurnId};
use crate::model::message::Part;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{NewEvent, Progress, SessionRecord, TurnRecord, Writes};
use crate::model::session::{ApprovalPolicy, EnvironmentSpec, Metadata, Session, SessionStatus, ToolsetSelection};
use crate::model::turn::{OnBusy, StopReason, Turn, TurnOptions, TurnStatus, Usage};
use crate::store::sessions::{NewSession, SessionPatch};
use crate::store::{Rows, Scope, StoreError};

/// Turns that may wait behind the active one (DESIGN 4.5).
const QUEUE_BOUND: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Absent, deleted, or another tenant's or user's: nobody can tell.
    #[error("no such {0}")]
    NotFound(&'static str),
    #[error("{}", .0.detail)]
    Refused(Problem),
    #[error("the store failed")]
    Store(#[from] StoreError),
}

#[derive(Clone, Debug)]
pub struct CreateSession {
    pub user_id: String,
    pub external_id: Option<String>,
    pub title: Option<String>,
    pub model: Option<String>,
    pub instructions: Option<String>,
    pub preset: String,
    pub toolsets: ToolsetSelection,
    pub environment: EnvironmentSpec,
    pub approvals: ApprovalPolicy,
    pub metadata: Metadata,
}

#[derive(Clone, Debug)]
pub struct NewTurn {
    pub user_id: String,
    pub input: Vec<Part>,
    pub on_busy: OnBusy,
    pub options: TurnOptions,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreatedTurn {
    pub turn: Turn,
    /// Number of the turn's first event.
    pub first_seq: i64,
}

/// An answer to an approval, as a client gives it.
#[derive(Clone, Debug)]
pub struct AnswerRequest {
    pub choice: Choice,
    /// What was shown; refused when it is something else by now.
    pub digest: Option<String>,
    pub reason: Option<String>,
    pub stop_turn: bool,
    pub by: String,
}

/// What a transaction came to: the error is not the store's, so nothing is
/// rolled back by it.
type Verdict<T> = Result<T, EngineError>;

impl Engine {
    pub async fn create_session(&self, scope: &Scope, new: CreateSession) -> Verdict<Session> {
        let id = SessionId::new(self.clock());
        let record = self.new_record(scope.tenant(), id, &new);
        self.session_tools(&record, None)
            .map_err(|unknown| refused_toolset(&unknown.to_string()))?;
        let now = self.clock().now();
        let row = NewSession {
            record,
            external_id: new.external_id,
            title: new.title,
            metadata: new.metadata,
            created_at: now,
        };
        let added = scope.write("create_session", move |mut rows| {
            Box::pin(async move {
                if let Some(name) = &row.external_id
                    && rows.external_id_is_taken(name, None).await?
                {
                    return Ok(None);
                }
                rows.add_session(&row).await?;
                let mut session = row.record;
                rows.apply(&mut session, &told(EventType::SessionCreated, json!({})), now)
                    .await?;
                rows.session(id).await
            })
        });
        match added.await {
            Ok(Some(session)) => Ok(session),
            Ok(None) | Err(StoreError::Unique(_)) => Err(taken()),
            Err(error) => Err(error.into()),
        }
    }

    fn new_record(&self, tenant_id: TenantId, session_id: SessionId, new: &CreateSession) -> SessionRecord {
        SessionRecord {
            tenant_id,
            session_id,
            user_id: new.user_id.clone(),
            model: new.model.clone(),
            instructions: new.instructions.clone(),
            preset: new.preset.clone(),
            toolsets: new.toolsets.clone(),
            environment: new.environment.clone(),
            approvals: new.approvals.clone(),
            status: SessionStatus::Idle,
            head_seq: 0,
            next_position: 0,
            active_turn_id: None,
            usage: Usage::default(),
            todo: "[]".to_owned(),
            cwd: None,
            deleted_at: None,
        }
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
                if let Err(unknown) = engine.session_tools(&record, None) {
                    return Ok(Err(refused_toolset(&unknown.to_string())));
                }
                if let Some(Some(name)) = &patch.external_id
                    && rows.external_id_is_taken(name, Some(id)).await?
                {
                    return Ok(Err(taken()));
                }
                rows.patch_session(id, &patch).await?;
                let state = json!({"title": patch.title, "external_id": patch.external_id, "model": patch.model,
                    "instructions": patch.instructions, "preset": patch.preset, "toolsets": patch.toolsets,
                    "approvals": patch.approvals, "metadata": patch.metadata, "updated_at": now});
                rows.apply(&mut record, &told(EventType::SessionUpdated, changed_only(state)), now)
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
        let engine = self.clone();
        let now = self.clock().now();
        let deleted = scope.write("delete_session", move |mut rows| {
            Box::pin(async move {
                let Some(session) = rows.lock_session(id).await? else {
                    return Ok(false);
                };
                let session = drop_queue(&mut rows, &engine, session).await?;
                rows.hide_session(id, now).await?;
                let Some(active) = session.active_turn_id else {
                    return Ok(true);
                };
                let session = SessionRecord {
                    deleted_at: Some(now),
                    ..session
                };
                if let Some(turn) = rows.turn(id, active).await? {
                    stop(&mut rows, &engine, session, turn, cancel_outcome()).await?;
                }
                Ok(true)
            })
        });
        if deleted.await? {
            Ok(())
        } else {
            Err(EngineError::NotFound("session"))
        }
    }

    pub async fn create_turn(&self, scope: &Scope, session: SessionId, new: NewTurn) -> Verdict<CreatedTurn> {
        if self.is_draining() {
            let problem = Problem::new(
                ProblemCode::Draining,
                "the server is shutting down; try again in a moment",
            );
            return Err(EngineError::Refused(problem));
        }
        let full = self.settings().max_executing <= self.executing();
        let engine = self.clone();
        let turn = TurnRecord {
            turn_id: TurnId::new(self.clock()),
            session_id: session,
            user_id: new.user_id,
            status: TurnStatus::Queued,
            stop_reason: None,
            input: new.input,
            options: new.options,
            owner: None,
            epoch: 0,
            step: 0,
            cancel_requested: false,
            progress: Progress::default(),
            usage: Usage::default(),
            error: None,
            active_ms: 0,
            active_since: None,
            created_at: self.clock().now(),
            started_at: None,
            finished_at: None,
            first_seq: 0,
            last_seq: None,
        };
        let on_busy = new.on_busy;
        let created = scope.write("create_turn", move |mut rows| {
            Box::pin(async move {
                let Some(session) = rows.lock_session(session).await? else {
                    return Ok(Err(EngineError::NotFound("session")));
                };
                if let Some(active) = session.active_turn_id {
                    if let Some(problem) = busy(&mut rows, &session, active, on_busy).await? {
                        return Ok(Err(EngineError::Refused(problem)));
                    }
                    let state = State {
                        session,
                        turn,
                        calls: Vec::new(),
                        approvals: Vec::new(),
                    };
                    let carried = commit::carry_out(&mut rows, &engine, state, None, |step| step.enqueue()).await?;
                    return Ok(Ok((carried, false)));
                }
                if full {
                    return Ok(Err(EngineError::Refused(too_many(&engine))));
                }
                let state = State {
                    session,
                    turn,
                    calls: Vec::new(),
                    approvals: Vec::new(),
                };
                let carried = commit::carry_out(&mut rows, &engine, state, None, |step| step.begin_new()).await?;
                Ok(Ok((carried, true)))
            })
        });
        let (carried, begun) = created.await??;
        let created = CreatedTurn {
            turn: carried.state.turn.view(),
            first_seq: carried.first_seq,
        };
        if begun {
            self.spawn_own(scope.tenant(), carried);
        }
        Ok(created)
    }

    /// A queued or parked turn ends at once; a running one is told to stop and
    /// ends a moment later. A turn that is over stays as it is.
    pub async fn cancel_turn(&self, scope: &Scope, session: SessionId, turn: TurnId) -> Verdict<Turn> {
        let engine = self.clone();
        let cancelled = scope.write("cancel", move |mut rows| {
            Box::pin(async move {
                let Some(record) = rows.lock_session(session).await? else {
                    return Ok(None);
                };
                let Some(turn) = rows.turn(session, turn).await? else {
                    return Ok(None);
                };
                stop(&mut rows, &engine, record, turn, cancel_outcome()).await.map(Some)
            })
        });
        let Some(carried) = cancelled.await? else {
            return Err(EngineError::NotFound("turn"));
        };
        let view = carried.state.turn.view();
        self.spawn_promoted(scope.tenant(), carried);
        Ok(view)
    }

    /// Answers an approval. The first answer wins; giving the same one again is
    /// no error.
    pub async fn decide(&self, scope: &Scope, id: ApprovalId, answer: AnswerRequest) -> Verdict<Approval> {
        let engine = self.clone();
        let decided = scope.write("decide", move |mut rows| {
            Box::pin(async move { answer_within(&mut rows, &engine, id, answer).await })
        });
        match decided.await? {
            Answered::Now(approval, carried) => {
                self.spawn_woken(scope.tenant(), *carried);
                Ok(*approval)
            }
            Answered::Already(approval) => Ok(*approval),
            Answered::TooLate(problem, carried) => {
                self.spawn_woken(scope.tenant(), *carried);
                Err(EngineError::Refused(problem))
            }
            Answered::Refused(problem) => Err(EngineError::Refused(problem)),
            Answered::NotFound => Err(EngineError::NotFound("approval")),
        }
    }

    /// Settles an approval whose time is over, unless somebody was faster.
    pub async fn expire_approval(&self, tenant: TenantId, session: SessionId, id: ApprovalId) -> Verdict<()> {
        let engine = self.clone();
        let scope = self.store().scope(tenant);
        let expired = scope.write("expire", move |mut rows| {
            Box::pin(async move {
                let Some(session) = rows.lock_session_even_deleted(session).await? else {
                    return Ok(None);
                };
                let Some(approval) = rows.approval(id).await? else {
                    return Ok(None);
                };
                let due = approval.expires_at.is_some_and(|at| at <= engine.clock().now());
                if approval.status != ApprovalStatus::Pending || !due {
                    return Ok(None);
                }
                expire_within(&mut rows, &engine, session, &approval).await
            })
        });
        if let Some(carried) = expired.await? {
            self.spawn_woken(tenant, carried);
        }
        Ok(())
    }

    /// Takes over a turn whose owner is gone, if it is still as it was seen.
    pub async fn take_over(&self, tenant: TenantId, session: SessionId, turn: TurnId, epoch: i64) -> Verdict<bool> {
        let engine = self.clone();
        let scope = self.store().scope(tenant);
        let taken = scope.write("takeover", move |mut rows| {
            Box::pin(async move {
                let Some(record) = rows.lock_session_even_deleted(session).await? else {
                    return Ok(None);
                };
                let Some(turn) = rows.turn(session, turn).await? else {
                    return Ok(None);
                };
                if turn.status != TurnStatus::Running || turn.epoch != epoch {
                    return Ok(None);
                }
                let cancelled = turn.cancel_requested;
                let state = commit::load(&mut rows, record, turn).await?;
                let carried = commit::carry_out(&mut rows, &engine, state, None, |step| match cancelled {
                    false => step.take_over(),
                    true => step.end(cancel_outcome(), Vec::new(), None),
                });
                carried.await.map(Some)
            })
        });
        let Some(carried) = taken.await? else { return Ok(false) };
        self.spawn_own(tenant, carried);
        Ok(true)
    }

    /// Runs what a transaction of this process has just claimed.
    fn spawn_own(&self, tenant: TenantId, mut carried: Carried) {
        if let Some(promoted) = carried.promoted.take() {
            self.spawn_if_ours(tenant, promoted);
        }
        self.spawn_if_ours(tenant, carried.state);
    }

    fn spawn_promoted(&self, tenant: TenantId, mut carried: Carried) {
        if let Some(promoted) = carried.promoted.take() {
            self.spawn_if_ours(tenant, promoted);
        }
    }

    /// After a decision: the turn may have been woken by it, or its owner is
    /// told by the bell.
    fn spawn_woken(&self, tenant: TenantId, carried: Carried) {
        let state = &carried.state;
        if self.runs(state.turn.turn_id, state.turn.epoch) {
            self.spawn_promoted(tenant, carried);
        } else {
            self.spawn_own(tenant, carried);
        }
    }

    fn spawn_if_ours(&self, tenant: TenantId, state: State) {
        if state.turn.status == TurnStatus::Running && state.turn.owner == Some(self.process()) {
            self.spawn(tenant, state);
        }
    }
}

enum Answered {
    Now(Box<Approval>, Box<Carried>),
    Already(Box<Approval>),
    TooLate(Problem, Box<Carried>),
    Refused(Problem),
    NotFound,
}

async fn answer_within(
    rows: &mut Rows<'_>,
    engine: &Engine,
    id: ApprovalId,
    answer: AnswerRequest,
) -> Result<Answered, StoreError> {
    let Some(seen) = rows.approval(id).await? else {
        return Ok(Answered::NotFound);
    };
    let Some(session) = rows.lock_session(seen.session_id).await? else {
        return Ok(Answered::NotFound);
    };
    // What counts is what stands under the lock.
    let Some(approval) = rows.approval(id).await? else {
        return Ok(Answered::NotFound);
    };
    let Some(turn) = rows.turn(approval.session_id, approval.turn_id).await? else {
        return Ok(Answered::NotFound);
    };
    if approval.status != ApprovalStatus::Pending {
        return Ok(already(approval, &answer));
    }
    if turn.cancel_requested || turn.status.is_terminal() {
        let problem = Problem::new(
            ProblemCode::TurnNotActive,
            "the turn is being cancelled; nothing of it runs any more",
        );
        return Ok(Answered::Refused(
            problem.with_context(json!({"turn_id": turn.turn_id})),
        ));
    }
    if approval.expires_at.is_some_and(|at| at <= engine.clock().now()) {
        let Some(carried) = expire_within(rows, engine, session, &approval).await? else {
            return Ok(Answered::NotFound);
        };
        let expired = Approval {
            status: ApprovalStatus::Expired,
            ..approval
        };
        return Ok(Answered::TooLate(resolved_problem(&expired), Box::new(carried)));
    }
    if let Some(problem) = unacceptable(&approval, &answer) {
        return Ok(Answered::Refused(problem));
    }
    let decision = DecisionIn {
        choice: answer.choice,
        reason: answer.reason,
        by: answer.by,
        stop_turn: answer.stop_turn,
    };
    let state = commit::load(rows, session, turn).await?;
    let carried = commit::carry_out(rows, engine, state, None, |step| step.decide(id, decision)).await?;
    let settled = carried
        .state
        .approvals
        .iter()
        .find(|approval| approval.id == id)
        .cloned();
    Ok(Answered::Now(Box::new(settled.unwrap_or(approval)), Box::new(carried)))
}

async fn expire_within(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    approval: &Approval,
) -> Result<Option<Carried>, StoreError> {
    let Some(turn) = rows.turn(approval.session_id, approval.turn_id).await? else {
        return Ok(None);
    };
    if turn.status.is_terminal() || turn.cancel_requested {
        return Ok(None);
    }
    let id = approval.id;
    let state = commit::load(rows, session, turn).await?;
    commit::carry_out(rows, engine, state, None, |step| step.expire(id))
        .await
        .map(Some)
}

/// An approval that is settled: the same answer by the same person is no error.
fn already(approval: Approval, answer: &AnswerRequest) -> Answered {
    let same = approval
        .decision
        .as_ref()
        .is_some_and(|decision| decision.choice == answer.choice && decision.by == answer.by);
    if same {
        Answered::Already(Box::new(approval))
    } else {
        Answered::Refused(resolved_problem(&approval))
    }
}

fn resolved_problem(approval: &Approval) -> Problem {
    let (code, detail) = match approval.status {
        ApprovalStatus::Expired => (
            ProblemCode::ApprovalExpired,
            "the approval expired before it was answered; nothing runs".to_owned(),
        ),
        status => (
            ProblemCode::ApprovalResolved,
            format!("the approval is settled already: {}", status.name()),
        ),
    };
    Problem::new(code, detail).with_context(json!({"approval": approval}))
}

fn unacceptable(approval: &Approval, answer: &AnswerRequest) -> Option<Problem> {
    if !approval.choices.contains(&answer.choice) {
        let offered: Vec<&str> = approval.choices.iter().map(|choice| choice.name()).collect();
        let detail = format!(
            "`{}` is not offered; choose one of: {}",
            answer.choice.name(),
            offered.join(", ")
        );
        return Some(Problem::new(ProblemCode::ChoiceNotOffered, detail.clone()).with_field("/choice", detail));
    }
    if answer.stop_turn && answer.choice.allows() {
        let detail = "`stop_turn` goes with `deny` only";
        return Some(Problem::new(ProblemCode::InvalidRequest, detail).with_field("/stop_turn", detail));
    }
    let stale = answer.digest.as_ref().is_some_and(|digest| *digest != approval.digest);
    stale.then(|| {
        let detail = "the digest is not that of the pending approval: read it again and decide on what it shows now";
        Problem::new(ProblemCode::ApprovalStale, detail).with_context(json!({"approval": approval}))
    })
}

/// Why the session cannot take another turn now, if it cannot.
async fn busy(
    rows: &mut Rows<'_>,
    session: &SessionRecord,
    active: TurnId,
    on_busy: OnBusy,
) -> Result<Option<Problem>, StoreError> {
    match on_busy {
        OnBusy::Enqueue => {
            let waiting = rows.queued_turns(session.session_id).await?.len();
            let detail = format!("{QUEUE_BOUND} turns wait already; wait for one to start or cancel one");
            Ok((QUEUE_BOUND <= waiting).then(|| Problem::new(ProblemCode::QueueFull, detail)))
        }
        OnBusy::Reject => {
            let pending = rows
                .approvals(Some(session.session_id), Some(ApprovalStatus::Pending), None, 200)
                .await?;
            let ids: Vec<ApprovalId> = pending.iter().map(|approval| approval.id).collect();
            let detail = if ids.is_empty() {
                "a turn of this session is running: wait for it, cancel it, or send `on_busy: enqueue`"
            } else {
                "a turn of this session waits for approvals: a message is no decision; answer each at \
                 POST /v1/approvals/{id}/decision, cancel the turn, or send `on_busy: enqueue`"
            };
            let context = json!({"turn_id": active, "pending_approval_ids": ids});
            Ok(Some(
                Problem::new(ProblemCode::SessionBusy, detail).with_context(context),
            ))
        }
    }
}

/// Cancels one turn under the lock, as its status allows.
async fn stop(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    turn: TurnRecord,
    outcome: Outcome,
) -> Result<Carried, StoreError> {
    let (status, id) = (turn.status, turn.turn_id);
    let head = session.head_seq;
    match status {
        TurnStatus::Queued => {
            let state = State {
                session,
                turn,
                calls: Vec::new(),
                approvals: Vec::new(),
            };
            commit::carry_out(rows, engine, state, None, |step| step.drop_queued(outcome)).await
        }
        TurnStatus::Waiting => {
            let state = commit::load(rows, session, turn).await?;
            commit::carry_out(rows, engine, state, None, |step| step.end(outcome, Vec::new(), None)).await
        }
        TurnStatus::Running => {
            rows.request_cancel(session.session_id, id).await?;
            let turn = TurnRecord {
                cancel_requested: true,
                ..turn
            };
            let state = State {
                session,
                turn,
                calls: Vec::new(),
                approvals: Vec::new(),
            };
            Ok(Carried {
                state,
                promoted: None,
                first_seq: head,
            })
        }
        _ => {
            let state = State {
                session,
                turn,
                calls: Vec::new(),
                approvals: Vec::new(),
            };
            Ok(Carried {
                state,
                promoted: None,
                first_seq: head,
            })
        }
    }
}

/// Ends every queued turn of a session that goes away.
async fn drop_queue(rows: &mut Rows<'_>, engine: &Engine, session: SessionRecord) -> Result<SessionRecord, StoreError> {
    let mut session = session;
    for turn in rows.queued_turns(session.session_id).await? {
        let outcome = Outcome::cancelled(StopReason::CancelledByUser);
        session = stop(rows, engine, session, turn, outcome).await?.state.session;
    }
    Ok(session)
}

fn too_many(engine: &Engine) -> Problem {
    let limit = engine.settings().max_executing;
    Problem::new(
        ProblemCode::TooManyTurns,
        format!("{limit} turns run on this server already (`server.max_executing_turns`); try again in a moment"),
    )
}

fn taken() -> EngineError {
    let detail = "another session of this tenant has this `external_id`; read it with GET /v1/sessions?external_id=";
    EngineError::Refused(Problem::new(ProblemCode::ExternalIdTaken, detail).with_field("/external_id", detail))
}

fn refused_toolset(detail: &str) -> EngineError {
    EngineError::Refused(Problem::new(ProblemCode::InvalidRequest, detail).with_field("/toolsets", detail))
}

fn told(kind: EventType, state: serde_json::Value) -> Writes {
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

/// Drops what a patch does not name: `null` there means "as it was".
fn changed_only(state: serde_json::Value) -> serde_json::Value {
    match state {
        serde_json::Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other => other,
    }
}
