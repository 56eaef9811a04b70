//! What delegated work is held to: the approvals and the budget that its root's
//! session has now. A person who narrows them means what works for them too, also
//! what began before.

use crate::model::record::{SessionRecord, TurnRecord};
use crate::model::session::{ApprovalMode, ApprovalPolicy};
use crate::store::{Rows, StoreError};
use crate::turn::delegation::Delegation;
use crate::turn::engine::Engine;

/// The approvals of a child whose root has these.
pub(super) fn approvals(settings: &Delegation, root: &ApprovalPolicy) -> ApprovalPolicy {
    let own = settings.auto_approve.then_some(ApprovalMode::Off);
    ApprovalPolicy {
        mode: own.or(root.mode),
        ..root.clone()
    }
}

/// The session and turn that `session` works for in the end, and `session` itself
/// as it is held to them. Nothing is read of work that nobody delegated.
pub(in crate::turn) async fn held(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: &mut SessionRecord,
) -> Result<Option<(SessionRecord, TurnRecord)>, StoreError> {
    let Some(root) = session.lineage.as_ref().and_then(|lineage| lineage.root()) else {
        return Ok(None);
    };
    let record = rows.session_record_even_deleted(root.session_id).await?;
    let turn = rows.turn(root.session_id, root.turn_id).await?;
    let Some((record, turn)) = record.zip(turn) else {
        return Ok(None);
    };
    session.approvals = approvals(&engine.settings().delegation, &record.approvals);
    session.budget = record.budget;
    Ok(Some((record, turn)))
}
