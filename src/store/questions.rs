//! Question rows. A question is settled by one compare-and-set on its status, as
//! an approval is.

use super::scope::Rows;
use super::sessions::named;
use super::{Arg, Row, StoreError};
use crate::model::id::{QuestionId, SessionId, TurnId};
use crate::model::question::{Question, QuestionStatus};
use crate::model::record::QuestionUpdate;

impl Rows<'_> {
    pub(super) async fn add_question(&mut self, user: &str, question: &Question) -> Result<(), StoreError> {
        const SQL: &str = "
            insert into question (tenant_id, session_id, turn_id, call_id, question_id, user_id, status, question,
                choices, asked_at, expires_at, answer)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let args = [
            self.tenant.into(),
            question.session_id.into(),
            question.turn_id.into(),
            question.tool_call_id.into(),
            question.id.into(),
            Arg::from(user),
            Arg::from(question.status.name()),
            Arg::from(&question.question),
            Arg::json(&question.choices)?,
            question.asked_at.into(),
            question.expires_at.into(),
            Arg::opt_json(question.answer.as_ref())?,
        ];
        self.conn.later(SQL, &args).await
    }

    /// Settles a pending question; `Lost` when it is not pending any more.
    pub(super) async fn settle_question(&mut self, update: &QuestionUpdate) -> Result<(), StoreError> {
        const SQL: &str = "
            update question set status = $3, answer = $4
            where tenant_id = $1 and question_id = $2 and status = 'pending'";
        let args = [
            self.tenant.into(),
            update.question_id.into(),
            Arg::from(update.status.name()),
            Arg::opt_json(update.answer.as_ref())?,
        ];
        match self.conn.execute(SQL, &args).await? {
            0 => Err(StoreError::Lost),
            _ => Ok(()),
        }
    }

    /// One question; absent and foreign ones are `None`.
    pub async fn question(&mut self, id: QuestionId) -> Result<Option<Question>, StoreError> {
        const SQL: &str = "
            select q.session_id, q.turn_id, q.call_id, q.question_id, q.status, q.question, q.choices, q.asked_at,
                q.expires_at, q.answer
            from question q join session s on s.tenant_id = q.tenant_id and s.session_id = q.session_id
            where q.tenant_id = $1 and q.question_id = $2 and q.user_id = coalesce($3, q.user_id)
                and s.deleted_at is null";
        let args = [self.tenant.into(), id.into(), Arg::from(&self.user)];
        let row = self.conn.row(SQL, &args).await?;
        row.as_ref().map(question).transpose()
    }

    /// Questions, newest first, older than `before`.
    pub async fn questions(
        &mut self,
        session: Option<SessionId>,
        status: Option<QuestionStatus>,
        before: Option<QuestionId>,
        limit: u32,
    ) -> Result<Vec<Question>, StoreError> {
        const SQL: &str = "
            select q.session_id, q.turn_id, q.call_id, q.question_id, q.status, q.question, q.choices, q.asked_at,
                q.expires_at, q.answer
            from question q join session s on s.tenant_id = q.tenant_id and s.session_id = q.session_id
            where q.tenant_id = $1 and q.user_id = coalesce($2, q.user_id) and s.deleted_at is null
                and q.session_id = coalesce($3, q.session_id) and q.status = coalesce($4, q.status)
                and q.question_id < coalesce($5, 'qst_~')
            order by q.question_id desc limit $6";
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            session.into(),
            Arg::OptText(status.map(QuestionStatus::name)),
            before.into(),
            limit.into(),
        ];
        self.conn.rows(SQL, &args).await?.iter().map(question).collect()
    }

    /// All questions of a turn, in the order they were asked.
    pub async fn questions_of_turn(&mut self, turn: TurnId) -> Result<Vec<Question>, StoreError> {
        const SQL: &str = "
            select session_id, turn_id, call_id, question_id, status, question, choices, asked_at, expires_at, answer
            from question where tenant_id = $1 and turn_id = $2 order by question_id";
        let rows = self.conn.rows(SQL, &[self.tenant.into(), turn.into()]).await?;
        rows.iter().map(question).collect()
    }

    /// Questions by id, for rendering events.
    pub(super) async fn questions_by_id(
        &mut self,
        session: SessionId,
        ids: &[QuestionId],
    ) -> Result<Vec<Question>, StoreError> {
        const SQLITE: &str = "
            select session_id, turn_id, call_id, question_id, status, question, choices, asked_at, expires_at, answer
            from question where tenant_id = $1 and +session_id = $2
                and question_id in (select value from json_each($3))";
        const POSTGRES: &str = "
            select session_id, turn_id, call_id, question_id, status, question, choices, asked_at, expires_at, answer
            from question where tenant_id = $1 and session_id = $2
                and question_id in (select json_array_elements_text($3::json))";
        let rows = self.by_ids([SQLITE, POSTGRES], session, ids).await?;
        rows.iter().map(question).collect()
    }
}

fn question(row: &Row) -> Result<Question, StoreError> {
    Ok(Question {
        id: row.id("question_id")?,
        session_id: row.id("session_id")?,
        turn_id: row.id("turn_id")?,
        tool_call_id: row.id("call_id")?,
        status: named(&row.text("status")?)?,
        question: row.text("question")?,
        choices: row.json("choices")?,
        asked_at: row.timestamp("asked_at")?,
        expires_at: row.opt_timestamp("expires_at")?,
        answer: row.opt_json("answer")?,
    })
}
