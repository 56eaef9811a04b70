//! Changes that a client makes only if it has seen what it changes: checked
//! under the session's lock, after everything else that could refuse them.

use super::EngineError;
use crate::model::id::SessionId;
use crate::model::record::TurnRecord;
use crate::model::version::{Part, Version};
use crate::store::{Rows, StoreError};

/// Why a session may not be changed, if the request's condition forbids it.
pub(super) async fn forbid_session(
    rows: &mut Rows<'_>,
    id: SessionId,
    part: Part,
) -> Result<Option<EngineError>, StoreError> {
    if rows.precondition().is_empty() {
        return Ok(None);
    }
    let Some(session) = rows.session(id).await? else {
        return Ok(Some(EngineError::NotFound("session")));
    };
    let forbidden = rows.precondition().forbids(&Version::of_session(&session), part);
    Ok(forbidden.map(EngineError::Refused))
}

/// Why a turn may not be changed, if the request's condition forbids it.
pub(super) fn forbid_turn(rows: &Rows<'_>, turn: &TurnRecord) -> Option<EngineError> {
    if rows.precondition().is_empty() {
        return None;
    }
    let version = Version::of_turn(&turn.view());
    let forbidden = rows.precondition().forbids(&version, Part::Whole);
    forbidden.map(EngineError::Refused)
}
