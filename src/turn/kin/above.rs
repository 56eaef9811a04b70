//! What a child's commit changes in the sessions above it.

use serde_json::json;

use super::report;
use crate::base::Timestamp;
use crate::model::event::EventType;
use crate::model::lineage::{Ancestor, Lineage};
use crate::model::record::{NewEvent, SessionRecord, Writes};
use crate::model::session::SessionStatus;
use crate::model::turn::Usage;
use crate::store::{Rows, StoreError};
use crate::turn::commit;
use crate::turn::engine::Engine;
use crate::turn::state::State;

/// What the child's model calls took counts for every session above it, and for
/// its turn while that lasts.
pub(super) async fn count(
    rows: &mut Rows<'_>,
    lineage: &Lineage,
    writes: &Writes,
    now: Timestamp,
) -> Result<(), StoreError> {
    if writes.usage.is_empty() {
        return Ok(());
    }
    let mut taken = Usage::default();
    for call in &writes.usage {
        taken.add(&call.spent.usage());
    }
    for ancestor in &lineage.ancestors {
        add(rows, *ancestor, &taken, now).await?;
    }
    Ok(())
}

async fn add(rows: &mut Rows<'_>, ancestor: Ancestor, taken: &Usage, now: Timestamp) -> Result<(), StoreError> {
    let Some(mut session) = rows.session_record_even_deleted(ancestor.session_id).await? else {
        return Ok(());
    };
    session.usage.add(taken);
    let mut writes = Writes::default();
    if let Some(mut turn) = rows.turn(ancestor.session_id, ancestor.turn_id).await?
        && !turn.status.is_terminal()
    {
        turn.usage.add(taken);
        writes.events.push(NewEvent {
            kind: EventType::UsageUpdated,
            turn_id: Some(turn.turn_id),
            epoch: turn.epoch,
            data: json!({"turn": turn.usage, "session": session.usage}),
        });
        writes.turns.push(turn);
    }
    rows.apply(&mut session, &writes, now).await?;
    Ok(())
}

/// What the child asks, and what becomes of it, stands in the root's log, and the
/// root's status follows from all that waits below it.
pub(super) async fn rise(
    rows: &mut Rows<'_>,
    lineage: &Lineage,
    risen: Vec<NewEvent>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Some(root) = lineage.root().filter(|_| !risen.is_empty()) else {
        return Ok(());
    };
    let Some(mut session) = rows.session_record_even_deleted(root.session_id).await? else {
        return Ok(());
    };
    // The last event of a turn stays its last.
    let turn_id = session.active_turn_id.filter(|active| *active == root.turn_id);
    let events = risen.into_iter().map(|event| NewEvent {
        turn_id,
        epoch: 0,
        ..event
    });
    let mut writes = Writes {
        events: events.collect(),
        ..Writes::default()
    };
    writes.events.extend(status(rows, &mut session, now).await?);
    rows.apply(&mut session, &writes, now).await?;
    Ok(())
}

/// The event that tells the root's status, if that is another now.
async fn status(
    rows: &mut Rows<'_>,
    session: &mut SessionRecord,
    now: Timestamp,
) -> Result<Option<NewEvent>, StoreError> {
    let waits = rows.required_actions(session.session_id, session.session_id).await?;
    let status = match (session.active_turn_id, waits.is_empty()) {
        (None, _) => SessionStatus::Idle,
        (Some(_), true) => SessionStatus::Running,
        (Some(_), false) => SessionStatus::RequiresAction,
    };
    if status == session.status {
        return Ok(None);
    }
    session.status = status;
    let actions: Vec<_> = waits.into_iter().map(|(_, action)| action).collect();
    let state = json!({"status": status, "required_actions": actions, "active_turn_id": session.active_turn_id,
        "usage": session.usage, "updated_at": now});
    Ok(Some(NewEvent {
        kind: EventType::SessionStatus,
        turn_id: None,
        epoch: 0,
        data: json!({"state": state}),
    }))
}

/// A child's turn is over. When it was the last of its call, the call has its
/// result and the parent goes on.
pub(super) async fn wake(
    rows: &mut Rows<'_>,
    engine: &Engine,
    lineage: &Lineage,
    child: &State,
    moved: &mut Vec<State>,
) -> Result<(), StoreError> {
    let Some(parent) = lineage.parent() else { return Ok(()) };
    let Some(session) = rows.session_record_even_deleted(parent.session_id).await? else {
        return Ok(());
    };
    let Some(turn) = rows.turn(parent.session_id, parent.turn_id).await? else {
        return Ok(());
    };
    if turn.status.is_terminal() || turn.cancel_reason.is_some() {
        return Ok(());
    }
    let call = lineage.tool_call_id;
    let state = commit::load(rows, session, turn).await?;
    if !state.call(call).is_some_and(|call| call.is_handed_over()) {
        return Ok(());
    }
    let ended = report::of_child(child, lineage);
    let report = report::of_call(rows, engine, &state, call).await?;
    let carried = Box::pin(commit::carry_out(rows, engine, state, None, move |step| {
        step.child_ended(&ended, report.map(|report| (report.text, report.kept)));
    }))
    .await?;
    moved.push(carried.state);
    moved.extend(carried.promoted);
    moved.extend(carried.kin);
    Ok(())
}
