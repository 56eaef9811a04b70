//! A message that takes the place of the active turn: the new turn goes to the
//! queue's head, the old one ends, and what it asked of a person is closed with
//! the message as the reason. The message itself decides nothing.

use super::turns::stop;
use crate::base::text::first_chars;
use crate::model::message::text_of;
use crate::model::record::{SessionRecord, TurnRecord};
use crate::model::turn::{CancelReason, TurnStatus};
use crate::store::{Rows, StoreError};
use crate::turn::commit::{self, Carried};
use crate::turn::engine::Engine;
use crate::turn::next::Outcome;
use crate::turn::state::State;

/// So much of the message stands in the approvals that it closes; the whole is
/// the new turn's input.
const REASON_CHARS: usize = 500;

/// What the transaction left: the new turn, its first event, and the old turn.
pub(super) struct Superseded {
    pub new: TurnRecord,
    pub first_seq: i64,
    pub old: Carried,
}

/// Queues `new` before all that wait and ends the active turn: a parked one in
/// this transaction, which begins the new one too; a running one when its owner
/// has stopped it.
pub(super) async fn supersede(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    active: TurnRecord,
    new: TurnRecord,
    reason: CancelReason,
) -> Result<Superseded, StoreError> {
    let (session, turn) = release(rows, engine, session, active).await?;
    let new = TurnRecord {
        queue_place: rows.queue_front(session.session_id).await?,
        ..new
    };
    let (id, by) = (new.turn_id, new.user_id.clone());
    let message = first_chars(&text_of(&new.input), REASON_CHARS).to_owned();
    let state = State::fresh(session, new);
    let queued = commit::carry_out(rows, engine, state, None, |step| step.enqueue()).await?;
    let session = queued.state.session;
    let parked = turn.status == TurnStatus::Waiting;
    let state = commit::load(rows, session, turn).await?;
    let old = if parked {
        let outcome = Outcome::stopped(reason);
        commit::carry_out(rows, engine, state, None, |step| {
            step.supersede_pending(&by, &message);
            step.end(outcome, Vec::new(), None);
        })
        .await?
    } else {
        let asked = commit::carry_out(rows, engine, state, None, |step| {
            step.supersede_pending(&by, &message);
            step.tell_session();
        });
        let State { session, turn, .. } = asked.await?.state;
        stop(rows, engine, session, turn, reason).await?
    };
    // Begun already, where the old one ended at once.
    let begun = old.promoted.as_ref().map(|state| &state.turn);
    let new = begun.filter(|turn| turn.turn_id == id).cloned();
    Ok(Superseded {
        new: new.unwrap_or(queued.state.turn),
        first_seq: queued.first_seq,
        old,
    })
}

/// What the ending turn did not come to read waits in the queue, behind the
/// message that ends it.
async fn release(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    turn: TurnRecord,
) -> Result<(SessionRecord, TurnRecord), StoreError> {
    if turn.steers.is_empty() {
        return Ok((session, turn));
    }
    let state = State::fresh(session, turn);
    let released = commit::carry_out(rows, engine, state, None, |step| step.release_steers()).await?;
    Ok((released.state.session, released.state.turn))
}
