//! Turns: begun or queued, cancelled, taken over.

use futures::future::BoxFuture;
use serde_json::json;

use super::conditions::forbid_turn;
use super::sessions::{is_choice_of, taken};
use super::steer::steer;
use super::supersede::supersede;
use super::whither::{Place, Whither};
use super::{CreatedTurn, NewTurn};
use super::{EngineError, Verdict, earlier};
use crate::model::approval::ApprovalStatus;
use crate::model::id::{ApprovalId, SessionId, TenantId, TurnId};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{SessionRecord, TurnRecord};
use crate::model::session::RequiredAction;
use crate::model::turn::{CancelReason, OnBusy, StopReason, Turn, TurnStatus};
use crate::store::{LongWork, Rows, Scope, StoreError};
use crate::turn::admission::{Slot, admit};
use crate::turn::commit::{self, Carried};
use crate::turn::engine::Engine;
use crate::turn::hooked::News;
use crate::turn::kin;
use crate::turn::next::Outcome;
use crate::turn::owner::Opening;
use crate::turn::state::State;

/// Turns that may wait behind the active one.
pub(super) const QUEUE_BOUND: usize = 16;

/// The transaction that makes a turn: begun, queued, or refused.
fn creating(
    engine: Engine,
    mut turn: TurnRecord,
    mut place: Place,
    on_busy: OnBusy,
) -> impl for<'c> FnOnce(Rows<'c>) -> BoxFuture<'c, Result<Verdict<Made>, StoreError>> + Clone + Send {
    move |mut rows| {
        Box::pin(async move {
            if let Some(earlier) = earlier(&mut rows).await? {
                return Ok(Err(earlier));
            }
            let kept = match admitted(&mut rows, &engine, &turn, &place).await? {
                Ok(kept) => kept,
                Err(refused) => return Ok(Err(refused)),
            };
            if let Err(refused) = Box::pin(place.made(&mut rows, &engine, &mut turn)).await? {
                return Ok(Err(refused));
            }
            let Some(session) = rows.lock_session(turn.session_id).await? else {
                return Ok(Err(EngineError::NotFound("session")));
            };
            if let Some(refused) = place.refused(session.active_turn_id) {
                return Ok(Err(refused));
            }
            if let Err(refused) = engine.suits(&session, &mut turn) {
                return Ok(Err(refused));
            }
            if let Some(active) = session.active_turn_id {
                let made = Box::pin(behind(&mut rows, &engine, session, active, turn, on_busy)).await?;
                if let Ok(made) = &made {
                    rows.remember(&made.created.turn.id).await?;
                }
                return Ok(made);
            }
            let slot = match kept {
                Some(slot) => slot,
                None => match admit(&mut rows, &engine, &turn).await? {
                    Ok(slot) => slot,
                    Err(full) => return Ok(Err(EngineError::Refused(full))),
                },
            };
            let id = turn.turn_id;
            // Behind no active turn nothing waits.
            let state = State {
                queue_is_empty: true,
                ..State::fresh(session, turn)
            };
            let carried = commit::carry_out_callless(&mut rows, &engine, state, None, |step| step.begin_new()).await?;
            rows.remember(&id).await?;
            Ok(Ok(Made {
                slot: Some(slot),
                ..Made::of(carried, true)
            }))
        })
    }
}

impl Engine {
    pub async fn create_turn(&self, scope: &Scope, session: SessionId, new: NewTurn) -> Verdict<CreatedTurn> {
        self.create_turn_in(scope, Whither::Session(session), new).await
    }

    /// As [`Engine::create_turn`], in a session that may be made on the way: both
    /// are there, or neither.
    pub async fn create_turn_in(&self, scope: &Scope, whither: Whither, new: NewTurn) -> Verdict<CreatedTurn> {
        let (engine, scope) = (self.clone(), scope.clone());
        self.whole(Box::pin(async move { engine.create(&scope, whither, new).await }))
            .await
    }

    async fn create(&self, scope: &Scope, whither: Whither, new: NewTurn) -> Verdict<CreatedTurn> {
        self.takes_turns()?;
        let place = self.place(scope.tenant(), whither)?;
        let session_id = place.session();
        // Who owns the turn hears whatever comes after its beginning.
        let bell = self.store().bell().subscribe(session_id);
        let id = TurnId::new(self.clock());
        let (on_busy, now) = (new.on_busy, self.clock().now());
        let turn = TurnRecord {
            key_id: scope.key(),
            ..TurnRecord::queued(id, session_id, new.user_id, new.input, new.options, now)
        };
        let created = Box::pin(self.stored_turn(scope, turn, place, on_busy));
        let made = match created.await {
            Err(error @ StoreError::Unclear(_)) => {
                return self.after_unclear_create(scope, session_id, id, error).await;
            }
            Err(StoreError::Unique(_)) => return Err(taken()),
            created => created??,
        };
        if made.begun {
            let mut carried = made.carried;
            let said = std::mem::take(&mut carried.said);
            let is_first = said.first().is_some_and(|message| message.position == 0);
            let said = is_first.then_some(said);
            self.spawn_begun(scope.tenant(), carried, Some(Opening { bell, said }));
        } else {
            self.spawn_promoted(scope.tenant(), made.carried);
        }
        // The owner task has the place now.
        drop(made.slot);
        Ok(made.created)
    }

    async fn stored_turn(
        &self,
        scope: &Scope,
        turn: TurnRecord,
        place: Place,
        on_busy: OnBusy,
    ) -> Result<Verdict<Made>, StoreError> {
        const LABEL: &str = "create_turn";
        let there = place.is_there().then_some(turn.session_id);
        let work = creating(self.clone(), turn, place, on_busy);
        let Some(session) = there else {
            return scope.write_anew(LABEL, work).await;
        };
        let leaving = scope.clone().long_work(LongWork::Leave);
        match leaving.write_grouped(session, LABEL, || work.clone()).await {
            Err(StoreError::Aside(aside)) => {
                aside.done().await;
                scope.write_anew(LABEL, work).await
            }
            stored => stored,
        }
    }

    /// Whether a turn can be one of this session. What it leaves open about how the
    /// model answers is as in the session.
    pub(super) fn suits(&self, session: &SessionRecord, turn: &mut TurnRecord) -> Verdict<()> {
        if session.lineage.is_some() {
            return Err(is_child());
        }
        self.are_free(session.tenant_id, &turn.options.tools)?;
        *turn.options.sampling = std::mem::take(&mut *turn.options.sampling).or(&session.sampling);
        is_choice_of(&self.scene(session, turn).tools, &turn.options.sampling)
    }

    fn takes_turns(&self) -> Verdict<()> {
        let detail = "the server is shutting down; try again in a moment";
        match self.is_draining() {
            true => Err(EngineError::Refused(Problem::new(ProblemCode::Draining, detail))),
            false => Ok(()),
        }
    }

    /// A queued or parked turn ends at once; a running one is told to stop and
    /// ends a moment later. A turn that is over stays as it is.
    pub async fn cancel_turn(&self, scope: &Scope, session: SessionId, turn: TurnId) -> Verdict<Turn> {
        self.cancel_turn_for(scope, session, turn, CancelReason::CancelledByUser)
            .await
    }

    /// As [`Engine::cancel_turn`], for another reason.
    pub async fn cancel_turn_for(
        &self,
        scope: &Scope,
        session: SessionId,
        turn: TurnId,
        reason: CancelReason,
    ) -> Verdict<Turn> {
        let (engine, scope) = (self.clone(), scope.clone());
        self.whole(async move { engine.cancel(&scope, session, turn, reason).await })
            .await
    }

    async fn cancel(&self, scope: &Scope, session: SessionId, turn: TurnId, reason: CancelReason) -> Verdict<Turn> {
        let engine = self.clone();
        let cancelled = scope.write_anew("cancel", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                let Some(record) = kin::lock(&mut rows, session, false).await? else {
                    return Ok(Err(EngineError::NotFound("turn")));
                };
                let Some(turn) = rows.turn(session, turn).await? else {
                    return Ok(Err(EngineError::NotFound("turn")));
                };
                if let Some(refused) = forbid_turn(&rows, &turn) {
                    return Ok(Err(refused));
                }
                let carried = stop(&mut rows, &engine, record, turn, reason).await?;
                rows.remember(&carried.state.turn.view()).await?;
                Ok(Ok(carried))
            })
        });
        let cancelled = cancelled.await;
        if let Err(StoreError::Unclear(_)) = cancelled {
            self.adopt(scope, session).await;
        }
        let carried = cancelled??;
        let view = carried.state.turn.view();
        self.spawn_promoted(scope.tenant(), carried);
        Ok(view)
    }

    /// Takes over a turn whose owner is gone, if it is still as it was seen.
    pub async fn take_over(&self, tenant: TenantId, session: SessionId, turn: TurnId, epoch: i64) -> Verdict<bool> {
        self.claim(tenant, session, turn, epoch, Claim::GoOn).await
    }

    /// Ends a turn whose files lay in a data directory that does not come back.
    pub async fn give_up(&self, tenant: TenantId, session: SessionId, turn: TurnId, epoch: i64) -> Verdict<bool> {
        self.claim(tenant, session, turn, epoch, Claim::EnvironmentLost).await
    }

    async fn claim(
        &self,
        tenant: TenantId,
        session: SessionId,
        turn: TurnId,
        epoch: i64,
        claim: Claim,
    ) -> Verdict<bool> {
        let engine = self.clone();
        let scope = self.store().scope(tenant);
        let taken = scope.write_anew("takeover", move |mut rows| {
            Box::pin(async move {
                let Some(record) = kin::lock(&mut rows, session, true).await? else {
                    return Ok(None);
                };
                let Some(turn) = rows.turn(session, turn).await? else {
                    return Ok(None);
                };
                if turn.status != TurnStatus::Running || turn.epoch != epoch {
                    return Ok(None);
                }
                let end = match (turn.cancel_reason, claim) {
                    (Some(reason), _) => Some(Outcome::stopped(reason)),
                    (None, Claim::EnvironmentLost) => Some(environment_lost()),
                    (None, Claim::GoOn) if engine.is_elsewhere(record.node_id) => return Ok(None),
                    (None, Claim::GoOn) => None,
                };
                let mut state = commit::load(&mut rows, record, turn).await?;
                if claim == Claim::EnvironmentLost {
                    // The next turn begins with an empty workspace, anywhere.
                    (state.session.node_id, state.session.cwd) = (None, None);
                }
                let carried = commit::carry_out(&mut rows, &engine, state, None, |step| match end {
                    None => step.take_over(),
                    Some(outcome) => step.end(outcome, Vec::new(), None),
                });
                carried.await.map(Some)
            })
        });
        let Some(carried) = taken.await? else { return Ok(false) };
        self.spawn_own(tenant, carried);
        Ok(true)
    }
}

/// Admits a turn whose session is yet to be made: what is refused later would leave
/// the session behind.
async fn admitted(
    rows: &mut Rows<'_>,
    engine: &Engine,
    turn: &TurnRecord,
    place: &Place,
) -> Result<Verdict<Option<Slot>>, StoreError> {
    if place.is_there() {
        return Ok(Ok(None));
    }
    let admitted = admit(rows, engine, turn).await?;
    Ok(admitted.map(Some).map_err(EngineError::Refused))
}

/// What a transaction that made a turn left.
pub(super) struct Made {
    pub created: CreatedTurn,
    pub carried: Carried,
    /// The new turn was begun: this process runs it.
    pub begun: bool,
    /// The place that was kept for it.
    pub slot: Option<Slot>,
}

impl Made {
    pub(super) fn of(carried: Carried, begun: bool) -> Self {
        let created = CreatedTurn {
            turn: carried.state.turn.view(),
            first_seq: carried.first_seq,
            steered: false,
        };
        Self {
            created,
            carried,
            begun,
            slot: None,
        }
    }
}

/// A new turn beside the active one, as `on_busy` wants it.
async fn behind(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    active: TurnId,
    turn: TurnRecord,
    on_busy: OnBusy,
) -> Result<Verdict<Made>, StoreError> {
    if on_busy == OnBusy::Reject {
        return Ok(Err(EngineError::Refused(busy(rows, session.session_id, active).await?)));
    }
    let active = rows.turn(session.session_id, active).await?.ok_or(StoreError::Lost)?;
    if let Some(full) = full(rows, &active).await? {
        return Ok(Err(EngineError::Refused(full)));
    }
    let reason = match on_busy {
        OnBusy::Interrupt => CancelReason::Interrupted,
        OnBusy::Rollback => CancelReason::RolledBack,
        OnBusy::Steer => return Box::pin(steer(rows, engine, session, active, turn)).await,
        OnBusy::Reject | OnBusy::Enqueue => return enqueue(rows, engine, session, turn).await.map(Ok),
    };
    // What takes the place of a parked turn begins at once.
    let slot = match active.status {
        TurnStatus::Waiting => match admit(rows, engine, &turn).await? {
            Ok(slot) => Some(slot),
            Err(full) => return Ok(Err(EngineError::Refused(full))),
        },
        _ => None,
    };
    let made = Box::pin(supersede(rows, engine, session, active, turn, reason)).await?;
    let created = CreatedTurn {
        turn: made.new.view(),
        first_seq: made.first_seq,
        steered: false,
    };
    Ok(Ok(Made {
        created,
        carried: made.old,
        begun: false,
        slot,
    }))
}

pub(super) async fn enqueue(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    turn: TurnRecord,
) -> Result<Made, StoreError> {
    let state = State::fresh(session, turn);
    let carried = commit::carry_out_callless(rows, engine, state, None, |step| step.enqueue()).await?;
    Ok(Made::of(carried, false))
}

/// Delegated work takes its orders from what delegated it.
pub(super) fn is_child() -> EngineError {
    let detail = "the session does delegated work: it takes no turns of its own and goes with the session at its root, \
        which `lineage` names";
    EngineError::Refused(Problem::new(ProblemCode::SessionIsChild, detail))
}

/// What becomes of a turn without an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    GoOn,
    EnvironmentLost,
}

fn environment_lost() -> Outcome {
    let problem = Problem::new(
        ProblemCode::EnvironmentLost,
        "the data directory with the session's files belongs to a server that is gone; the next turn begins with an \
         empty workspace",
    );
    Outcome::failed(StopReason::EnvironmentLost, problem)
}

/// Why nothing is taken beside a turn.
pub(super) async fn busy(rows: &mut Rows<'_>, session: SessionId, active: TurnId) -> Result<Problem, StoreError> {
    let pending = rows
        .approvals(Some(session), Some(ApprovalStatus::Pending), None, 200)
        .await?;
    let ids: Vec<ApprovalId> = pending.iter().map(|approval| approval.id).collect();
    let waits = rows.required_actions(session, session).await?;
    let waits: Vec<RequiredAction> = waits.into_iter().map(|(_, action)| action).collect();
    let detail = if ids.is_empty() && !waits.is_empty() {
        "a turn of this session waits: give what `required_actions` in `context` names, cancel the turn, or send a \
         message with `on_busy: enqueue`"
    } else if ids.is_empty() {
        "a turn of this session is running: wait for it, cancel it, or send a message with `on_busy: enqueue`"
    } else {
        "a turn of this session waits for approvals: a message is no decision; answer each at \
         POST /v1/approvals/{id}/decision, cancel the turn, or send a message with `on_busy: enqueue`"
    };
    let context = json!({"turn_id": active, "pending_approval_ids": ids, "required_actions": waits});
    Ok(Problem::new(ProblemCode::SessionBusy, detail).with_context(context))
}

/// Why nothing more may wait behind the active turn, if so. Messages that wait
/// for the model count, since they may become turns of the queue.
async fn full(rows: &mut Rows<'_>, active: &TurnRecord) -> Result<Option<Problem>, StoreError> {
    let waiting = rows.queued_turns(active.session_id).await?.len() + active.steers.len();
    let detail = format!("{QUEUE_BOUND} turns and messages wait already; wait for one to start or cancel one");
    Ok((QUEUE_BOUND <= waiting).then(|| Problem::new(ProblemCode::QueueFull, detail)))
}

/// Cancels one turn under the lock, as its status allows.
pub(in crate::turn) async fn stop(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    turn: TurnRecord,
    reason: CancelReason,
) -> Result<Carried, StoreError> {
    let (status, id) = (turn.status, turn.turn_id);
    let head = session.head_seq;
    match status {
        TurnStatus::Queued => {
            let state = State::fresh(session, turn);
            commit::carry_out(rows, engine, state, None, |step| {
                step.drop_queued(Outcome::stopped(reason));
            })
            .await
        }
        TurnStatus::Waiting => {
            let state = commit::load(rows, session, turn).await?;
            commit::carry_out(rows, engine, state, None, |step| {
                step.end(Outcome::stopped(reason), Vec::new(), None);
            })
            .await
        }
        TurnStatus::Running => {
            // The first reason stands; only forgetting is more than stopping.
            let first = turn.cancel_reason.filter(|_| reason != CancelReason::RolledBack);
            let reason = first.unwrap_or(reason);
            rows.request_cancel(session.session_id, id, reason).await?;
            let turn = TurnRecord {
                cancel_reason: Some(reason),
                ..turn
            };
            let state = State::fresh(session, turn);
            Ok(Carried {
                state,
                promoted: None,
                kin: Vec::new(),
                first_seq: head,
                said: Vec::new(),
                due: false,
                to_review: Vec::new(),
                news: News::default(),
            })
        }
        _ => {
            let state = State::fresh(session, turn);
            Ok(Carried {
                state,
                promoted: None,
                kin: Vec::new(),
                first_seq: head,
                said: Vec::new(),
                due: false,
                to_review: Vec::new(),
                news: News::default(),
            })
        }
    }
}
