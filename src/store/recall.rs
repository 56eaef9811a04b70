//! Reading back what was said in sessions: by people and by the model, without
//! results of calls, as far as it was not taken back. Sessions are grouped by
//! the one that their forks began with.

use super::scope::Rows;
use super::{Arg, Row, StoreError};
use crate::base::Timestamp;
use crate::model::id::{MessageId, SessionId};
use crate::model::message::{Part, Role, text_of};

/// Forks of forks that are followed to the first session.
const MAX_DEPTH: u32 = 32;

/// One message as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub position: i64,
    pub message_id: MessageId,
    pub role: Role,
    pub text: String,
    pub at: Timestamp,
}

/// Which messages are read, in the order of the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// From the first place on.
    From(i64),
    /// The last ones before a place.
    Before(i64),
}

impl Rows<'_> {
    /// At most `limit` messages of the span, oldest first.
    pub async fn said(&mut self, session: SessionId, span: Span, limit: u32) -> Result<Vec<Said>, StoreError> {
        const FORWARD: &str = "
            select m.position, m.message_id, m.role, m.content, m.created_at
            from message m join turn t on t.tenant_id = m.tenant_id and t.turn_id = m.turn_id
            where m.tenant_id = $1 and m.session_id = $2 and m.user_id = coalesce($3, m.user_id)
                and m.role in ('user', 'assistant') and t.status <> 'rolled_back' and m.position >= $4
            order by m.position limit $5";
        const BACKWARD: &str = "
            select m.position, m.message_id, m.role, m.content, m.created_at
            from message m join turn t on t.tenant_id = m.tenant_id and t.turn_id = m.turn_id
            where m.tenant_id = $1 and m.session_id = $2 and m.user_id = coalesce($3, m.user_id)
                and m.role in ('user', 'assistant') and t.status <> 'rolled_back' and m.position < $4
            order by m.position desc limit $5";
        let (sql, place) = match span {
            Span::From(place) => (FORWARD, place),
            Span::Before(place) => (BACKWARD, place),
        };
        let args = [
            self.tenant.into(),
            session.into(),
            Arg::from(&self.user),
            place.into(),
            limit.into(),
        ];
        let rows = self.conn.rows(sql, &args).await?;
        let mut said: Vec<Said> = rows.iter().map(one).collect::<Result<_, _>>()?;
        if matches!(span, Span::Before(_)) {
            said.reverse();
        }
        Ok(said)
    }

    /// How many messages stand before a place, and how many from it on.
    pub async fn said_around(&mut self, session: SessionId, place: i64) -> Result<(i64, i64), StoreError> {
        const SQL: &str = "
            select coalesce(sum(case when m.position < $4 then 1 else 0 end), 0) as before, count(*) as everything
            from message m join turn t on t.tenant_id = m.tenant_id and t.turn_id = m.turn_id
            where m.tenant_id = $1 and m.session_id = $2 and m.user_id = coalesce($3, m.user_id)
                and m.role in ('user', 'assistant') and t.status <> 'rolled_back'";
        let args = [self.tenant.into(), session.into(), Arg::from(&self.user), place.into()];
        let Some(row) = self.conn.row(SQL, &args).await? else {
            return Ok((0, 0));
        };
        let before = row.int("before")?;
        Ok((before, row.int("everything")? - before))
    }

    /// The session and place of a message.
    pub async fn place_of(&mut self, message: MessageId) -> Result<Option<(SessionId, i64)>, StoreError> {
        const SQL: &str = "
            select m.session_id, m.position
            from message m join session s on s.tenant_id = m.tenant_id and s.session_id = m.session_id
            where m.tenant_id = $1 and m.message_id = $2 and m.user_id = coalesce($3, m.user_id)
                and s.deleted_at is null";
        let args = [self.tenant.into(), message.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.map(|row| Ok((row.id("session_id")?, row.int("position")?)))
            .transpose()
    }

    /// The session that a session's forks go back to, itself where it is none.
    pub async fn first_of_line(&mut self, session: SessionId) -> Result<SessionId, StoreError> {
        const SQL: &str = "
            select parent_session_id from session
            where tenant_id = $1 and session_id = $2 and user_id = coalesce($3, user_id)";
        let mut first = session;
        for _ in 0..MAX_DEPTH {
            let args = [self.tenant.into(), first.into(), Arg::from(&self.user)];
            let Some(row) = self.conn.row(SQL, &args).await? else {
                break;
            };
            let Some(parent) = row.opt_id("parent_session_id")? else {
                break;
            };
            first = parent;
        }
        Ok(first)
    }
}

fn one(row: &Row) -> Result<Said, StoreError> {
    let content: Vec<Part> = row.json("content")?;
    Ok(Said {
        position: row.int("position")?,
        message_id: row.id("message_id")?,
        role: super::sessions::named(&row.text("role")?)?,
        text: text_of(&content),
        at: row.timestamp("created_at")?,
    })
}
