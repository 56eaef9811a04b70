//! A message for the turn that runs: it waits on that turn until the model reads
//! it. It decides nothing, starts nothing, and stops nothing.

use super::turns::{Made, enqueue};
use super::{CreatedTurn, EngineError, Verdict};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{SessionRecord, TurnRecord};
use crate::model::turn::Steer;
use crate::store::{Rows, StoreError};
use crate::turn::commit;
use crate::turn::engine::Engine;
use crate::turn::state::State;

/// Puts `new` on the active turn, `turn`. One that is told to stop reads nothing any
/// more: behind it the message waits in the queue.
pub(super) async fn steer(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    turn: TurnRecord,
    new: TurnRecord,
) -> Result<Verdict<Made>, StoreError> {
    if turn.cancel_reason.is_some() {
        return enqueue(rows, engine, session, new).await.map(Ok);
    }
    // Or a key could have done by another's turn what it must not do itself.
    if new.options.tool_ceiling.is_some() && new.options.tool_ceiling != turn.options.tool_ceiling {
        let detail = "this key may use fewer tools than the turn that runs, so it cannot speak to it: send \
            `on_busy: enqueue`";
        return Ok(Err(EngineError::Refused(Problem::new(
            ProblemCode::SessionBusy,
            detail,
        ))));
    }
    let steer = Steer {
        turn_id: new.turn_id,
        user_id: new.user_id,
        key_id: new.key_id,
        input: new.input,
        options: new.options,
        created_at: new.created_at,
    };
    let state = State::fresh(session, turn);
    let carried = commit::carry_out(rows, engine, state, None, |step| step.steer(steer)).await?;
    let created = CreatedTurn {
        turn: carried.state.turn.view(),
        first_seq: carried.first_seq,
        steered: true,
    };
    Ok(Ok(Made {
        created,
        carried,
        begun: false,
        slot: None,
    }))
}
