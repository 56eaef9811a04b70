//! Questions of the model: answered by a person, or by nobody in time. The first
//! answer wins; giving the same one again is no error.

use serde_json::json;

use super::{EngineError, Verdict, earlier};
use crate::model::id::{QuestionId, SessionId, TenantId};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::question::{Question, QuestionAnswer, QuestionStatus};
use crate::store::{Rows, Scope, StoreError};
use crate::turn::commit::{self, Carried};
use crate::turn::engine::Engine;

impl Engine {
    /// Answers a question.
    pub async fn answer_question(&self, scope: &Scope, id: QuestionId, text: String, by: String) -> Verdict<Question> {
        let (engine, scope) = (self.clone(), scope.clone());
        self.whole(Box::pin(async move { engine.take_answer(&scope, id, text, by).await }))
            .await
    }

    async fn take_answer(&self, scope: &Scope, id: QuestionId, text: String, by: String) -> Verdict<Question> {
        let engine = self.clone();
        let seen = scope.read(move |mut rows| Box::pin(async move { rows.question(id).await }));
        let seen = seen.await?.ok_or(EngineError::NotFound("question"))?;
        let session = seen.session_id;
        let answered = scope.write_anew("answer_question", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                let answer = QuestionAnswer {
                    text,
                    by,
                    at: engine.clock().now(),
                };
                let answered = take(&mut rows, &engine, (session, id), answer).await?;
                if let Ok((question, _)) = &answered {
                    rows.remember(question).await?;
                }
                Ok(answered)
            })
        });
        let answered = answered.await;
        if let Err(StoreError::Unclear(_)) = answered {
            // The same answer given again is no error, should it have been taken.
            self.adopt(scope, session).await;
        }
        let (question, carried) = answered??;
        if let Some(carried) = carried {
            self.spawn_woken(scope.tenant(), *carried);
        }
        Ok(question)
    }

    /// Settles a question whose time is over, unless somebody was faster.
    pub async fn expire_question(&self, tenant: TenantId, session: SessionId, id: QuestionId) -> Verdict<()> {
        let engine = self.clone();
        let scope = self.store().scope(tenant);
        let expired = scope.write_anew("expire", move |mut rows| {
            Box::pin(async move {
                let Some(record) = rows.lock_session_even_deleted(session).await? else {
                    return Ok(None);
                };
                let Some(question) = rows.question(id).await? else {
                    return Ok(None);
                };
                let due = question.expires_at.is_some_and(|at| at <= engine.clock().now());
                if question.status != QuestionStatus::Pending || !due {
                    return Ok(None);
                }
                let Some(turn) = rows.turn(session, question.turn_id).await? else {
                    return Ok(None);
                };
                let state = commit::load(&mut rows, record, turn).await?;
                let expired = commit::carry_out(&mut rows, &engine, state, None, |step| step.expire_question(id));
                expired.await.map(Some)
            })
        });
        let expired = expired.await;
        if let Err(StoreError::Unclear(_)) = expired {
            self.adopt(&scope, session).await;
        }
        if let Some(carried) = expired? {
            self.spawn_woken(tenant, carried);
        }
        Ok(())
    }
}

async fn take(
    rows: &mut Rows<'_>,
    engine: &Engine,
    (session, id): (SessionId, QuestionId),
    answer: QuestionAnswer,
) -> Result<Verdict<(Question, Option<Box<Carried>>)>, StoreError> {
    let Some(record) = rows.lock_session(session).await? else {
        return Ok(Err(EngineError::NotFound("question")));
    };
    // What counts is what stands under the lock.
    let Some(question) = rows.question(id).await? else {
        return Ok(Err(EngineError::NotFound("question")));
    };
    if question.status != QuestionStatus::Pending {
        let given = question.answer.as_ref();
        let same = given.is_some_and(|given| (&given.text, &given.by) == (&answer.text, &answer.by));
        return Ok(match same {
            true => Ok((question, None)),
            false => Err(resolved(&question, question.status)),
        });
    }
    if question.expires_at.is_some_and(|at| at <= answer.at) {
        // It is settled by the task that waits for this instant.
        return Ok(Err(resolved(&question, QuestionStatus::Expired)));
    }
    let Some(turn) = rows.turn(session, question.turn_id).await? else {
        return Ok(Err(EngineError::NotFound("question")));
    };
    if turn.cancel_reason.is_some() || turn.status.is_terminal() {
        return Ok(Err(resolved(&question, QuestionStatus::Cancelled)));
    }
    let state = commit::load(rows, record, turn).await?;
    let given = |step: &mut crate::turn::step::Step<'_>| step.answer_question(id, answer);
    let carried = commit::carry_out(rows, engine, state, None, given).await?;
    let now = rows.question(id).await?.unwrap_or(question);
    Ok(Ok((now, Some(Box::new(carried)))))
}

fn resolved(question: &Question, status: QuestionStatus) -> EngineError {
    let detail = format!("the question is settled already: {}", status.name());
    let problem = Problem::new(ProblemCode::QuestionResolved, detail);
    EngineError::Refused(problem.with_context(json!({"question": question})))
}
