//! The log of one turn. Its rows stand between its first event and its last, which
//! the turn's own row names, so that the log needs no index of turns: beside its
//! own rows only those are looked at that others wrote meanwhile. Rendering is not
//! here.

use super::scope::Rows;
use super::{Row, StoreError};
use crate::model::id::{SessionId, TurnId};

/// One lower bound, for SQLite takes the first it is given and filters by the rest.
/// A turn that is not over reaches to the end of the log.
pub(super) const OF_TURN: &str = "
    select seq, turn_id, type, at, data from event
    where tenant_id = $1 and session_id = $2 and turn_id = $3
        and seq >= (select max(bounds.seq) from (
            select $4 as seq
            union all select oldest_seq from session where tenant_id = $1 and session_id = $2
            union all select first_seq from turn where tenant_id = $1 and turn_id = $3) as bounds)
        and seq <= (select coalesce(last_seq, 9223372036854775807) from turn where tenant_id = $1 and turn_id = $3)
    order by seq limit $5";
pub(super) const LAST_WAITING: &str = "
    select seq, turn_id, type, at, data from event
    where tenant_id = $1 and session_id = $2 and turn_id = $3 and type = 'turn.waiting' and seq <= $4
        and seq >= (select first_seq from turn where tenant_id = $1 and turn_id = $3)
    order by seq desc limit 1";

impl Rows<'_> {
    /// Rows after `after` that are kept.
    pub(super) async fn turn_log(
        &mut self,
        session: SessionId,
        turn: TurnId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        let args = [
            self.tenant.into(),
            session.into(),
            turn.into(),
            after.saturating_add(1).into(),
            limit.into(),
        ];
        self.conn.rows(OF_TURN, &args).await
    }

    /// The last row up to `to` that says that the turn waits.
    pub(super) async fn waiting_row(
        &mut self,
        session: SessionId,
        turn: TurnId,
        to: i64,
    ) -> Result<Vec<Row>, StoreError> {
        let args = [self.tenant.into(), session.into(), turn.into(), to.into()];
        self.conn.rows(LAST_WAITING, &args).await
    }
}
