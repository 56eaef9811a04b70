//! What became of one turn, by its id alone: clients of other surfaces name a
//! turn and know nothing of its session. Read from bodies, which are kept when
//! events are folded.

use std::collections::HashMap;

use super::scope::Rows;
use super::transcript::message_record;
use super::{Arg, StoreError};
use crate::base::Timestamp;
use crate::model::approval::Approval;
use crate::model::id::{ApprovalId, CallId, MessageId, SessionId, TurnId};
use crate::model::message::{Message, Role, text_of};
use crate::model::question::Question;
use crate::model::record::{MessageRecord, TurnRecord};
use crate::model::session::Session;
use crate::model::turn::TurnStatus;

/// A turn with all that was said, done and asked in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    pub session: Session,
    pub turn: TurnRecord,
    /// In order; calls have their results.
    pub messages: Vec<Message>,
    /// In the order in which they were asked.
    pub approvals: Vec<Approval>,
    /// While the turn waits: in the order in which they were asked.
    pub questions: Vec<Question>,
    /// A client deleted the response that the turn is to it.
    pub is_deleted_response: bool,
}

impl Rows<'_> {
    /// The session of a turn; absent and foreign ones are `None`.
    pub async fn session_of_turn(&mut self, turn: TurnId) -> Result<Option<SessionId>, StoreError> {
        const SQL: &str = "
            select t.session_id
            from turn t join session s on s.tenant_id = t.tenant_id and s.session_id = t.session_id
            where t.tenant_id = $1 and t.turn_id = $2 and s.user_id = coalesce($3, s.user_id)
                and s.deleted_at is null";
        let args = [self.tenant.into(), turn.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| row.id("session_id")).transpose()
    }

    /// The session that `user` calls so, with its owner; for who may see those of
    /// others and has none, the newest of that name. Absent and foreign ones are
    /// `None`.
    pub async fn session_named(&mut self, user: &str, name: &str) -> Result<Option<(SessionId, String)>, StoreError> {
        const SQL: &str = "
            select session_id, user_id from session
            where tenant_id = $1 and external_id = $2 and user_id = coalesce($3, user_id) and deleted_at is null
            order by case when user_id = $4 then 0 else 1 end, session_id desc limit 1";
        let args = [
            self.tenant.into(),
            Arg::from(name),
            Arg::from(&self.user),
            Arg::from(user),
        ];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| Ok((row.id("session_id")?, row.text("user_id")?)))
            .transpose()
    }

    /// A turn as a whole; absent and foreign ones are `None`.
    pub async fn story(&mut self, turn: TurnId) -> Result<Option<Story>, StoreError> {
        let Some(session) = self.session_of_turn(turn).await? else {
            return Ok(None);
        };
        let (Some(seen), Some(record)) = (self.session(session).await?, self.turn(session, turn).await?) else {
            return Ok(None);
        };
        let questions = match record.status {
            TurnStatus::Waiting => self.questions_of_turn(turn).await?,
            _ => Vec::new(),
        };
        Ok(Some(Story {
            session: seen,
            turn: record,
            questions,
            messages: self.messages_of_turn(session, turn).await?,
            approvals: self.approvals_of_turn(turn).await?,
            is_deleted_response: self.is_deleted_response(turn).await?,
        }))
    }

    async fn is_deleted_response(&mut self, turn: TurnId) -> Result<bool, StoreError> {
        const SQL: &str = "
            select response_deleted_at from turn where tenant_id = $1 and turn_id = $2";
        let row = self.conn.row(SQL, &[self.tenant.into(), turn.into()]).await?;
        Ok(row
            .map(|row| row.opt_int("response_deleted_at"))
            .transpose()?
            .flatten()
            .is_some())
    }

    /// Hides a turn from those who know it as a response; call under the session's
    /// lock.
    pub async fn delete_response(&mut self, turn: TurnId, at: Timestamp) -> Result<(), StoreError> {
        const SQL: &str = "
            update turn set response_deleted_at = coalesce(response_deleted_at, $3)
            where tenant_id = $1 and turn_id = $2";
        self.conn
            .execute(SQL, &[self.tenant.into(), turn.into(), at.into()])
            .await?;
        Ok(())
    }

    /// The number of the event by which an approval was answered.
    pub async fn answered_at(&mut self, session: SessionId, approval: ApprovalId) -> Result<Option<i64>, StoreError> {
        const SQL: &str = "
            select seq from event
            where tenant_id = $1 and session_id = $2 and type = 'approval.resolved' and data like $3
            order by seq limit 1";
        let args = [
            self.tenant.into(),
            session.into(),
            Arg::from(format!("%\"{approval}\"%")),
        ];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| row.int("seq")).transpose()
    }

    /// The turn of each of these calls; absent and foreign ones are left out.
    pub async fn turns_of_calls(&mut self, calls: &[CallId]) -> Result<Vec<(CallId, TurnId)>, StoreError> {
        const SQL: &str = "
            select c.turn_id
            from tool_call c join session s on s.tenant_id = c.tenant_id and s.session_id = c.session_id
            where c.tenant_id = $1 and c.call_id = $2 and s.user_id = coalesce($3, s.user_id)
                and s.deleted_at is null";
        let mut found = Vec::new();
        for call in calls {
            let args = [self.tenant.into(), (*call).into(), Arg::from(&self.user)];
            if let Some(row) = self.conn.row(SQL, &args).await? {
                found.push((*call, row.id("turn_id")?));
            }
        }
        Ok(found)
    }

    /// The number of the event by which a call got its result.
    pub async fn settled_at(&mut self, session: SessionId, call: CallId) -> Result<Option<i64>, StoreError> {
        const SQL: &str = "
            select seq from event
            where tenant_id = $1 and session_id = $2 and type = 'tool_call.completed' and data like $3
            order by seq limit 1";
        let args = [self.tenant.into(), session.into(), Arg::from(format!("%\"{call}\"%"))];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| row.int("seq")).transpose()
    }

    /// All messages of a turn, its calls with their results.
    pub async fn messages_of_turn(&mut self, session: SessionId, turn: TurnId) -> Result<Vec<Message>, StoreError> {
        const SQL: &str = "
            select position, message_id, turn_id, role, content, reasoning, finish_reason, call_id, created_at, steered,
                external_id
            from message where tenant_id = $1 and session_id = $2 and turn_id = $3 order by position";
        let args = [self.tenant.into(), session.into(), turn.into()];
        let rows = self.conn.rows(SQL, &args).await?;
        let records: Vec<MessageRecord> = rows.iter().map(message_record).collect::<Result<_, _>>()?;
        let makers = records.iter().filter(|record| record.role == Role::Assistant);
        let makers: Vec<MessageId> = makers.map(|record| record.message_id).collect();
        let calls = self.calls_of_messages(session, &makers).await?;
        let results: HashMap<CallId, String> = records
            .iter()
            .filter_map(|record| Some((record.call_id?, text_of(&record.content))))
            .collect();
        let view = |record: MessageRecord| {
            let own = calls.iter().filter(|call| call.message_id == record.message_id);
            let own = own.map(|call| call.view(results.get(&call.call_id).cloned())).collect();
            record.view(own)
        };
        Ok(records.into_iter().map(view).collect())
    }
}
