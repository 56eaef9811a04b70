//! The owner of a running turn: its record as last committed, its drafts, and
//! the one way it commits. The fence (epoch and step) makes sure that only the
//! owner goes on, and that an unclear COMMIT is cleared up before anything
//! starts.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::change::Change;
use super::commit::{self, Carried};
use super::engine::Engine;
use super::hooked::News;
use super::kin;
use super::next::Outcome;
use super::state::State;
use crate::live::hub::Writer;
use crate::model::approval::SMART;
use crate::model::artifact::Kept;
use crate::model::background::BackgroundRecord;
use crate::model::id::{CallId, TenantId};
use crate::model::record::{MessageRecord, TurnRecord};
use crate::model::turn::StopReason;
use crate::store::{BellReceiver, Fence, LongWork, MOST_ASIDE, Rows, Scope, StoreError};

/// Pause between two tries of a commit while the store is away.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct Owned {
    pub tenant: TenantId,
    pub scope: Scope,
    pub state: State,
    pub drafts: Writer,
    /// Fires when this process must let go of its turns.
    pub stopping: CancellationToken,
    /// How the turn must end once what still runs of it is stopped.
    pub doomed: Option<Outcome>,
    /// Until its task begins.
    pub opening: Option<Opening>,
    /// Results that the model was shown the beginning of, to be kept whole with
    /// its next answer.
    pub overflowed: Vec<(CallId, Kept)>,
}

/// What the owner of a turn that began just now need not ask for.
pub(super) struct Opening {
    /// Listens since before the turn was there.
    pub bell: BellReceiver,
    /// All that was said in the session, where the turn is its first.
    pub said: Option<Vec<MessageRecord>>,
}

/// The turn is not this task's any more: somebody else went on with it, it is
/// gone, or the process stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// Changes of the user that wait for a person.
async fn waiting(rows: &mut Rows<'_>, state: &State) -> Result<usize, StoreError> {
    let count = rows.count_pending_writes_of(&state.session.user_id).await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// What a change builds on beside its session and its turn.
async fn changing(rows: &mut Rows<'_>, engine: &Engine, state: State, change: &Change) -> Result<State, StoreError> {
    let mut state = state;
    if change.remembers() {
        state.memories = rows.lock_memories(&state.session.user_id, engine.clock().now()).await?;
    }
    if change.stages() && engine.host().stages_writes() {
        state.waiting_writes = waiting(rows, &state).await?;
    }
    if change.schedules() {
        state.jobs = rows.lock_jobs_of(&state.session.user_id).await?;
    }
    Ok(state)
}

impl Owned {
    /// Begins the drafts of a turn that was claimed with the record `state`.
    pub(super) fn new(engine: &Engine, tenant: TenantId, state: State, opening: Option<Opening>) -> Self {
        let session = state.session.session_id;
        // Everything up to the claim is committed, so any later number serves.
        let drafts = engine.hub().write(session, state.turn.turn_id, state.session.head_seq);
        Self {
            tenant,
            scope: engine.store().scope(tenant),
            state,
            drafts,
            stopping: engine.stopping(),
            doomed: None,
            opening,
            overflowed: Vec::new(),
        }
    }

    /// Commits a change and takes over the record it leaves. Retries while the
    /// store is away; after `store_retry` the turn is failed instead, with the
    /// results that are there, as soon as the store is back.
    pub(super) async fn commit(&mut self, engine: &Engine, change: Change) -> Result<(), Gone> {
        // Boxed: everything that commits holds this one.
        Box::pin(self.committed(engine, change)).await
    }

    async fn committed(&mut self, engine: &Engine, change: Change) -> Result<(), Gone> {
        let began = tokio::time::Instant::now();
        let mut change = change;
        let (mut given_up, mut unclear, mut asides) = (false, false, 0);
        loop {
            let long_work = if asides < MOST_ASIDE {
                LongWork::Leave
            } else {
                LongWork::Inside
            };
            let error = match self.attempt(engine, change.clone(), long_work).await {
                Ok(carried) => {
                    self.tell_processes(engine, &change);
                    return self.accept(engine, carried);
                }
                Err(error) => error,
            };
            match error {
                StoreError::Unavailable(_) | StoreError::Unclear(_) => {
                    unclear |= matches!(error, StoreError::Unclear(_));
                    tracing::warn!(turn = %self.state.turn.turn_id, %error, "a commit is tried again");
                }
                StoreError::Aside(aside) => {
                    aside.done().await;
                    asides += 1;
                    continue;
                }
                // An unclear COMMIT may have come through after it was looked
                // for: then it is our own step that the fence met.
                StoreError::Lost if unclear => unclear = false,
                StoreError::Lost => return Err(Gone),
                error if !given_up => {
                    // A bug or a corrupt row: a successor would meet the same.
                    tracing::error!(turn = %self.state.turn.turn_id, %error, "a commit failed for good");
                    given_up = true;
                    change = change.ending(Outcome::broken());
                }
                error => {
                    tracing::error!(turn = %self.state.turn.turn_id, %error, "the turn cannot even be failed");
                    return Err(Gone);
                }
            }
            if !given_up && engine.settings().store_retry <= began.elapsed() {
                given_up = true;
                change = match change.leaves_running(&self.state) {
                    true => {
                        self.doomed = Some(Outcome::store_unavailable());
                        change.keeping()
                    }
                    false => change.ending(Outcome::store_unavailable()),
                };
            }
            tokio::select! {
                () = tokio::time::sleep(RETRY_PAUSE) => {}
                () = self.stopping.cancelled() => return Err(Gone),
            }
            if let Some(carried) = self.happened(engine).await? {
                self.tell_processes(engine, &change);
                engine.adopt_kin(&self.scope, &carried.state).await;
                return self.accept(engine, carried);
            }
        }
    }

    /// Processes whose rows are stored now may be told of.
    fn tell_processes(&self, engine: &Engine, change: &Change) {
        let (Change::Results(results) | Change::Kept(results) | Change::End { results, .. }) = change else {
            return;
        };
        for process in results.iter().flat_map(|(_, done)| &done.writes.processes) {
            engine.host().processes().recorded(&BackgroundRecord {
                turn_id: Some(self.state.turn.turn_id),
                owner: Some(engine.process()),
                ..process.clone()
            });
        }
    }

    async fn attempt(&self, engine: &Engine, change: Change, long_work: LongWork) -> Result<Carried, StoreError> {
        let label = change.label();
        let scope = self.scope.clone().long_work(long_work);
        // Work that was delegated moves the sessions above it as well.
        if self.state.session.lineage.is_some() {
            return scope.write(label, self.carrying(engine, change)).await;
        }
        let session = self.state.session.session_id;
        let make = || self.carrying(engine, change.clone());
        scope.write_grouped(session, label, make).await
    }

    /// The transaction of a change.
    fn carrying(
        &self,
        engine: &Engine,
        change: Change,
    ) -> impl for<'c> FnOnce(Rows<'c>) -> BoxFuture<'c, Result<Carried, StoreError>> + Send + use<> {
        let engine = engine.clone();
        let known = self.state.clone();
        let pen = self.drafts.pen();
        move |mut rows| {
            Box::pin(async move {
                kin::lock_above(&mut rows, &known.session).await?;
                let (session, turn) = (known.session.session_id, known.turn.turn_id);
                let fence = rows.fence(session, turn, (known.turn.epoch, known.turn.step)).await?;
                let fence = fence.ok_or(StoreError::Lost)?;
                let cancelled = fence.cancel_reason;
                let state = behind(&mut rows, known, fence).await?;
                let change = match cancelled {
                    // Whoever runs them sees the cancel next.
                    Some(_) if change.leaves_running(&state) => change.keeping(),
                    Some(reason) => change.ending(Outcome::stopped(reason)),
                    None => change,
                };
                let state = changing(&mut rows, &engine, state, &change).await?;
                if change.judges_calls(&state) {
                    commit::carry_out(&mut rows, &engine, state, Some(&pen), |step| change.make(step)).await
                } else {
                    commit::carry_out_callless(&mut rows, &engine, state, Some(&pen), |step| change.make(step)).await
                }
            })
        }
    }

    /// After an unclear COMMIT: whether it happened after all. The step tells.
    async fn happened(&self, engine: &Engine) -> Result<Option<Carried>, Gone> {
        let (session, turn) = (self.state.session.session_id, self.state.turn.turn_id);
        let read = self.scope.read(move |mut rows| {
            Box::pin(async move {
                let Some(record) = rows.session_record_even_deleted(session).await? else {
                    return Ok(None);
                };
                let Some(turn) = rows.turn(session, turn).await? else {
                    return Ok(None);
                };
                commit::load(&mut rows, record, turn).await.map(Some)
            })
        });
        let now = match read.await {
            Ok(Some(now)) => now,
            Ok(None) => return Err(Gone),
            // Still away: the next try will tell.
            Err(_) => return Ok(None),
        };
        let before = &self.state.turn;
        if now.turn.epoch != before.epoch {
            // Parked or ended by our own commit keeps the epoch.
            return Err(Gone);
        }
        if now.turn.step == before.step {
            return Ok(None);
        }
        let promoted = self.promoted(engine, &now).await?;
        // Whatever was asked in it was not handed on.
        let smart = now.pending().filter(|approval| approval.reviewer == SMART);
        let to_review = smart.cloned().collect();
        Ok(Some(Carried {
            kin: Vec::new(),
            first_seq: now.session.head_seq,
            said: Vec::new(),
            state: now,
            promoted,
            due: true,
            to_review,
            news: News::default(),
        }))
    }

    /// The turn that our unclear commit promoted, if it did.
    async fn promoted(&self, engine: &Engine, now: &State) -> Result<Option<State>, Gone> {
        let Some(next) = now.session.active_turn_id.filter(|id| *id != now.turn.turn_id) else {
            return Ok(None);
        };
        let session = now.session.clone();
        let read = self.scope.read(move |mut rows| {
            Box::pin(async move {
                let Some(turn) = rows.turn(session.session_id, next).await? else {
                    return Ok(None);
                };
                commit::load(&mut rows, session, turn).await.map(Some)
            })
        });
        let state = read.await.map_err(|_| Gone)?;
        let ours = |state: &State| {
            state.turn.owner == Some(engine.process()) && !engine.runs(state.turn.turn_id, state.turn.epoch)
        };
        Ok(state.filter(ours))
    }

    fn accept(&mut self, engine: &Engine, carried: Carried) -> Result<(), Gone> {
        carried.wake(engine);
        for moved in carried.kin {
            engine.spawn_if_ours(self.tenant, moved, None);
        }
        if let Some(promoted) = carried.promoted.filter(|state| state.turn.owner.is_some()) {
            engine.spawn(self.tenant, promoted, None);
        }
        self.knows(carried.state);
        Ok(())
    }

    /// Takes over a newer record of the turn.
    pub(super) fn knows(&mut self, state: State) {
        self.drafts.reached(state.session.head_seq);
        self.state = state;
    }
}

/// The record behind the fence, in the turn's next step. What others appended
/// since is applied before anything is decided: their decisions stand in the
/// rows. Where nothing was appended nothing else changed.
async fn behind(rows: &mut Rows<'_>, known: State, fence: Fence) -> Result<State, StoreError> {
    let next = known.turn.step + 1;
    if fence.head_seq == known.session.head_seq {
        let mut state = known;
        (state.session.deleted_at, state.session.usage) = (fence.deleted_at, fence.usage);
        (state.turn.step, state.turn.cancel_reason) = (next, fence.cancel_reason);
        return Ok(state);
    }
    let (id, turn) = (known.session.session_id, known.turn.turn_id);
    let session = rows.session_record_even_deleted(id).await?.ok_or(StoreError::Lost)?;
    let turn = rows.turn(id, turn).await?.ok_or(StoreError::Lost)?;
    commit::load(rows, session, TurnRecord { step: next, ..turn }).await
}

pub(super) fn cancel_outcome() -> Outcome {
    Outcome::cancelled(StopReason::CancelledByUser)
}
