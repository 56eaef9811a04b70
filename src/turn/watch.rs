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
use crate::store::{BellReceiver, Scope, Standing, StoreError};

/// Pause before the record is looked at again while the store is away.
const AWAY_PAUSE: Duration = Duration::from_millis(200);

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
    look: Look,
    /// Something may have changed since the record was last looked at. Kept
    /// here, not in the future that waits, so that dropping it loses nothing.
    stale: bool,
    clock: Clock,
    deadline: Timestamp,
    inactivity: Duration,
    moved: Reader,
    /// A person is asked, so it may stay quiet.
    asking: bool,
    stopping: tokio_util::sync::CancellationToken,
}

/// What a look at the record needs.
#[derive(Clone)]
struct Look {
    scope: Scope,
    session: SessionId,
    turn: TurnId,
    epoch: i64,
    known_seq: i64,
}

impl Watch {
    /// Subscribes before anything is read, and begins with a look: what was
    /// committed between the claim and the subscription rang for nobody. Who
    /// listened before the claim need not look.
    pub(super) fn new(engine: &Engine, owned: &Owned, heard: Option<BellReceiver>) -> Self {
        let state = &owned.state;
        let session = state.session.session_id;
        Self {
            stale: heard.is_none(),
            bell: heard.unwrap_or_else(|| engine.store().bell().subscribe(session)),
            look: Look {
                scope: owned.scope.clone(),
                session,
                turn: state.turn.turn_id,
                epoch: state.turn.epoch,
                known_seq: state.session.head_seq,
            },
            clock: engine.clock().clone(),
            deadline: deadline(engine, state),
            inactivity: match state.turn.options.is_run_of_job() {
                true => engine.settings().job_inactivity,
                false => engine.settings().inactivity,
            },
            moved: engine.hub().read(session),
            asking: false,
            stopping: owned.stopping.clone(),
        }
    }

    /// The record up to here is known: only what comes later is a change.
    pub(super) fn knows(&mut self, seq: i64) {
        self.look.known_seq = seq;
    }

    /// Whether something that runs waits for a person.
    pub(super) fn asks(&mut self, asking: bool) {
        self.asking = asking;
    }

    /// How the turn stood when it was read, after this watch began to listen.
    pub(super) fn saw(&mut self, standing: Standing) {
        self.stale = self.look.is_news(standing);
    }

    /// Waits for the next thing that matters. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Signal {
        let mut quiet_until = self.clock.now().after(self.inactivity);
        let mut away = false;
        loop {
            let idle = self.clock.sleep_until(quiet_until);
            let late = self.clock.sleep_until(self.deadline);
            let look = self.look.clone().look(away);
            tokio::select! {
                () = self.stopping.cancelled() => return Signal::Stopping,
                () = late => return Signal::TimedOut("the turn ran longer than its limit"),
                () = idle => {
                    if !self.moved.take_changed() && !self.asking {
                        return Signal::TimedOut("neither the model nor a tool gave a sign of life");
                    }
                    quiet_until = self.clock.now().after(self.inactivity);
                }
                // A ring during the look stays in the bell.
                _ = self.bell.changed_past(self.look.known_seq), if !self.stale => self.stale = true,
                seen = look, if self.stale => match seen {
                    Ok(signal) => {
                        self.stale = false;
                        if let Some(signal) = signal {
                            return self.noted(signal);
                        }
                    }
                    // The store is away: the look is not done yet.
                    Err(_) => away = true,
                }
            }
        }
    }

    fn noted(&mut self, signal: Signal) -> Signal {
        if let Signal::Changed(state) = &signal {
            self.look.known_seq = state.session.head_seq;
        }
        signal
    }
}

impl Look {
    fn is_news(&self, standing: Standing) -> bool {
        standing.epoch != self.epoch || standing.is_cancelled || self.known_seq < standing.head_seq
    }

    /// What changed, if anything that matters did; after a pause when the last
    /// look failed.
    async fn look(self, pause: bool) -> Result<Option<Signal>, StoreError> {
        if pause {
            tokio::time::sleep(AWAY_PAUSE).await;
        }
        let (session, turn, look) = (self.session, self.turn, self.clone());
        let read = self.scope.read(move |mut rows| {
            Box::pin(async move {
                let standing = rows.standing_of_turn(session, turn).await?.ok_or(StoreError::Lost)?;
                if standing.epoch != look.epoch {
                    return Err(StoreError::Lost);
                }
                if !look.is_news(standing) {
                    return Ok(None);
                }
                let Some(record) = rows.session_record_even_deleted(session).await? else {
                    return Err(StoreError::Lost);
                };
                let Some(turn) = rows.turn(session, turn).await? else {
                    return Err(StoreError::Lost);
                };
                commit::load(&mut rows, record, turn).await.map(Some)
            })
        });
        match read.await {
            Ok(None) => Ok(None),
            Ok(Some(state)) if state.turn.cancel_reason.is_some() => Ok(Some(Signal::Cancelled)),
            Ok(Some(state)) => Ok(Some(Signal::Changed(Box::new(state)))),
            Err(StoreError::Lost) => Ok(Some(Signal::Lost)),
            Err(error) => Err(error),
        }
    }
}

/// When the turn has run as long as it may; parked time does not count.
fn deadline(engine: &Engine, state: &State) -> Timestamp {
    let options = &state.turn.options;
    let own = options.limits.timeout_seconds.map(Duration::from_secs);
    let settings = engine.settings();
    let script = options.script.as_ref().map(|_| settings.job_script_timeout);
    let most = settings.max_duration.saturating_add(script.unwrap_or_default());
    let limit = own.map_or(most, |own| own.min(most));
    let since = state.turn.active_since.unwrap_or_else(|| engine.clock().now());
    let ran = Duration::from_millis(state.turn.active_ms.unsigned_abs());
    since.after(limit.saturating_sub(ran))
}
