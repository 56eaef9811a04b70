//! What a commit of one session means for the sessions above and below it: work
//! that is delegated begins, what a child takes counts for all above it, what it
//! asks is asked at the root, its end wakes its parent, and an end above it ends
//! it. All in the one transaction of the commit. Locks go from the root down, so
//! whoever commits a child has those above it already.

mod above;
mod below;
mod report;
mod root;
mod spawn;

pub(in crate::turn) use root::held;

use super::engine::Engine;
use super::state::State;
use crate::model::event::EventType;
use crate::model::id::SessionId;
use crate::model::record::{NewEvent, SessionRecord, Writes};
use crate::store::{Rows, StoreError};

/// Locks a session with all that it works for, from the root down. Whoever is
/// deleted counts for `lock` itself only if `even_deleted`.
pub(in crate::turn) async fn lock(
    rows: &mut Rows<'_>,
    id: SessionId,
    even_deleted: bool,
) -> Result<Option<SessionRecord>, StoreError> {
    let Some(seen) = rows.session_record_even_deleted(id).await? else {
        return Ok(None);
    };
    lock_above(rows, &seen).await?;
    match even_deleted {
        true => rows.lock_session_even_deleted(id).await,
        false => rows.lock_session(id).await,
    }
}

/// Locks all that a session works for; nothing where it works for itself.
pub(in crate::turn) async fn lock_above(rows: &mut Rows<'_>, session: &SessionRecord) -> Result<(), StoreError> {
    let ancestors = session.lineage.iter().flat_map(|lineage| &lineage.ancestors);
    for ancestor in ancestors {
        rows.lock_session_even_deleted(ancestor.session_id).await?;
    }
    Ok(())
}

/// The events that belong in the root's log; the child's has the rest.
pub(super) fn risen(state: &State, writes: &mut Writes) -> Vec<NewEvent> {
    if state.session.lineage.is_none() {
        return Vec::new();
    }
    let rises = |event: &mut NewEvent| {
        matches!(
            event.kind,
            EventType::ApprovalRequested
                | EventType::ApprovalResolved
                | EventType::ApprovalExpired
                | EventType::ApprovalSuperseded
                | EventType::ApprovalCancelled
        )
    };
    writes.events.extract_if(.., rises).collect()
}

/// What follows from a commit whose writes are carried out. Turns that it moved
/// come back: this process runs those that it claimed.
pub(super) async fn follow(
    rows: &mut Rows<'_>,
    engine: &Engine,
    after: &State,
    writes: &Writes,
    risen: Vec<NewEvent>,
) -> Result<Vec<State>, StoreError> {
    let mut moved = Vec::new();
    for child in &writes.new_children {
        moved.push(spawn::begin(rows, engine, after, child).await?);
    }
    for call in &writes.orphaned {
        below::stop(rows, engine, *call, &mut moved).await?;
    }
    if let Some(lineage) = &after.session.lineage {
        above::count(rows, lineage, writes, engine.clock().now()).await?;
        above::rise(rows, lineage, risen, engine.clock().now()).await?;
        if after.turn.status.is_terminal() {
            above::wake(rows, engine, lineage, after, &mut moved).await?;
        }
    }
    Ok(moved)
}

/// Whether a commit has anything to do with other sessions.
pub(super) fn concerns_others(after: &State, writes: &Writes) -> bool {
    after.session.lineage.is_some() || !writes.new_children.is_empty() || !writes.orphaned.is_empty()
}
