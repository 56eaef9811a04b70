//! Reading a session's past for a file, a few messages at a time: turns that are
//! over, with everything of them. What is over never changes, so a file that is
//! read in many steps is still one picture.

use super::scope::Rows;
use super::slice;
use super::transcript::message_record;
use super::{Arg, StoreError};
use crate::model::id::{SessionId, TurnId};
use crate::model::record::{CallRecord, MessageRecord, TurnRecord};
use crate::model::session::Session;

/// Where a file begins and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    pub session: Session,
    /// JSON of the task list.
    pub todo: String,
    /// The first place that does not belong to it.
    pub end: i64,
}

/// A message with its calls, and its turn where the turn begins with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    pub message: MessageRecord,
    pub calls: Vec<CallRecord>,
    pub turn: Option<TurnRecord>,
}

impl Rows<'_> {
    /// The past as it is now; `None` when the session does not exist for this
    /// scope.
    pub async fn past(&mut self, id: SessionId) -> Result<Option<Past>, StoreError> {
        const SQL: &str = "
            select coalesce(min(position), $4) as place from message
            where tenant_id = $1 and session_id = $2 and turn_id = $3";
        let (Some(record), Some(session)) = (self.session_record(id).await?, self.session(id).await?) else {
            return Ok(None);
        };
        let args = [
            self.tenant.into(),
            id.into(),
            record.active_turn_id.into(),
            record.next_position.into(),
        ];
        let row = self.conn.row(SQL, &args).await?;
        let end = row.map_or(Ok(record.next_position), |row| row.int("place"))?;
        Ok(Some(Past {
            session,
            todo: record.todo,
            end,
        }))
    }

    /// Some messages from `from` on and before `end`; `turn` is that of the
    /// message before them.
    pub async fn remembered(
        &mut self,
        session: SessionId,
        (from, end): (i64, i64),
        turn: Option<TurnId>,
    ) -> Result<Vec<Remembered>, StoreError> {
        const ONE: &str = "
            select position, message_id, turn_id, role, content, reasoning, finish_reason, call_id, created_at,
                steered, external_id
            from message where tenant_id = $1 and session_id = $2 and position = $3";
        const MOST: usize = 64;
        let (mut found, mut bytes, mut turn) = (Vec::new(), 0, turn);
        for position in from..end {
            if slice::BYTES / 8 < bytes || MOST <= found.len() {
                break;
            }
            let args: [Arg<'_>; 3] = [self.tenant.into(), session.into(), position.into()];
            let Some(row) = self.conn.row(ONE, &args).await? else {
                return Err(StoreError::corrupt("a place of the transcript is empty"));
            };
            let message = message_record(&row)?;
            bytes += slice::weight(&message.content) + message.reasoning.as_ref().map_or(0, String::len);
            let begun = turn != Some(message.turn_id);
            turn = Some(message.turn_id);
            found.push(Remembered {
                calls: self.calls_of_messages(session, &[message.message_id]).await?,
                turn: match begun {
                    true => self.turn(session, message.turn_id).await?,
                    false => None,
                },
                message,
            });
        }
        Ok(found)
    }
}
