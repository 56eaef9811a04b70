//! What an owner listens for while the model writes or calls run: a cancel, a
//! decision, another owner, its limits of time, the end of the process.

use std::time::Duration;

use super::commit;
use super::engine::Engine;
use super::owner::Owned;
use super::state::State;
use crate::base::{Clock, Timestamp};
use crate::live::hub::Reader;
use crate::model::id::{SessionId, TurnId};
use crate::store::{BellReceiver, Scope, StoreError};

pub(super) enum Signal {
    /// The record changed under this owner; here it is.
    Changed(Box<State>),
    Cancelled,
    /// Another owner, or the turn is gone.
    Lost,
    /// The turn ran longer than it may, or nothing moved for too long.
    TimedOut(&'static str),
    Stopping,
}

pub(super) struct Watch {
    bell: BellReceiver,
    scope: Scope,
    session: SessionId,
    turn: TurnId,
    epoch: i64,
    known_seq: i64,
    clock: Clock,
    deadline: Timestamp,
    inactivity: Duration,
    moved: Reader,
    stopping: tokio_util::sync::CancellationToken,
}

impl Watch {
    /// Subscribes before anything is read, so that nothing is missed.
    pub(super) fn new(engine: &Engine, owned: &Owned) -> Self {
        let state = &owned.state;
        let session = state.session.session_id;
        Self {
            bell: engine.store().bell().subscribe(session),
            scope: owned.scope.clone(),
            session,
            turn: state.turn.turn_id,
            epoch: state.turn.epoch,
            known_seq: state.session.head_seq,
            clock: engine.clock().clone(),
            deadline: deadline(engine, state),
            inactivity: engine.settings().inactivity,
            moved: engine.hub().read(session),
            stopping: owned.stopping.clone(),
        }
    }

    /// The record up to here is known: only what comes later is a change.
    pub(super) fn knows(&mut self, seq: i64) {
        self.known_seq = seq;
    }

    /// Waits for the next thing that matters. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Signal {
        let mut quiet_until = self.clock.now().after(self.inactivity);
        loop {
            let idle = self.clock.sleep_until(quiet_until);
            let late = self.clock.sleep_until(self.deadline);
            tokio::select! {
                () = self.stopping.cancelled() => return Signal::Stopping,
                () = late => return Signal::TimedOut("the turn ran longer than its limit"),
                () = idle => {
                    if !self.moved.take_changed() {
                        return Signal::TimedOut("neither the model nor a tool gave a sign of life");
                    }
                    quiet_until = self.clock.now().after(self.inactivity);
                }
                () = self.bell.changed() => {
                    if let Some(signal) = self.look().await {
                        return signal;
                    }
                }
            }
        }
    }

    async fn look(&mut self) -> Option<Signal> {
        let (session, turn) = (self.session, self.turn);
        let (epoch, known) = (self.epoch, self.known_seq);
        let read = self.scope.read(move |mut rows| {
            Box::pin(async move {
                let Some(record) = rows.session_record_even_deleted(session).await? else {
                    return Err(StoreError::Lost);
                };
                let Some(turn) = rows.turn(session, turn).await? else {
                    return Err(StoreError::Lost);
                };
                if turn.epoch != epoch {
                    return Err(StoreError::Lost);
                }
                let news = turn.cancel_requested || known < record.head_seq;
                if news {
                    commit::load(&mut rows, record, turn).await.map(Some)
                } else {
                    Ok(None)
                }
            })
        });
        match read.await {
            Ok(None) => None,
            Ok(Some(state)) if state.turn.cancel_requested => Some(Signal::Cancelled),
            Ok(Some(state)) => {
                self.known_seq = state.session.head_seq;
                Some(Signal::Changed(Box::new(state)))
            }
            Err(StoreError::Lost) => Some(Signal::Lost),
            // The store is away: the commit that follows will deal with it.
            Err(_) => None,
        }
    }
}

/// When the turn has run as long as it may; parked time does not count.
fn deadline(engine: &Engine, state: &State) -> Timestamp {
    let own = state.turn.options.limits.timeout_seconds.map(Duration::from_secs);
    let limit = own.map_or(engine.settings().max_duration, |own| {
        own.min(engine.settings().max_duration)
    });
    let since = state.turn.active_since.unwrap_or_else(|| engine.clock().now());
    let ran = Duration::from_millis(state.turn.active_ms.unsigned_abs());
    since.after(limit.saturating_sub(ran))
}
