//! Approvals: answered by a person, or by nobody in time.

use serde_json::Value;

use super::AnswerRequest;
use super::answers::{accepted, inactive, is_same, resolved_problem};
use super::budgets::not_theirs;
use super::{EngineError, Verdict, earlier};
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::id::{ApprovalId, SessionId, TenantId};
use crate::model::problem::Problem;
use crate::model::record::SessionRecord;
use crate::store::{Rows, Scope, StoreError};
use crate::turn::commit::{self, Carried};
use crate::turn::engine::Engine;
use crate::turn::kin;

impl Engine {
    /// Answers an approval. The first answer wins; giving the same one again is
    /// no error.
    pub async fn decide(&self, scope: &Scope, id: ApprovalId, answer: AnswerRequest) -> Verdict<Approval> {
        let (engine, scope) = (self.clone(), scope.clone());
        self.whole(Box::pin(async move { engine.answer(&scope, id, answer).await }))
            .await
    }

    async fn answer(&self, scope: &Scope, id: ApprovalId, answer: AnswerRequest) -> Verdict<Approval> {
        self.scan_edit(&answer).await;
        let engine = self.clone();
        let given = answer.clone();
        let decided = scope.write_anew("decide", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Answered::Earlier(earlier));
                }
                let answered = Box::pin(answer_within(&mut rows, &engine, id, answer)).await?;
                if let Answered::Now(approval, _) | Answered::Already(approval) = &answered {
                    rows.remember(approval).await?;
                }
                Ok(answered)
            })
        });
        let decided = match decided.await {
            Err(error @ StoreError::Unclear(_)) => return self.after_unclear_decision(scope, id, &given, error).await,
            decided => decided?,
        };
        match decided {
            Answered::Now(approval, carried) => {
                self.spawn_woken(scope.tenant(), *carried);
                Ok(*approval)
            }
            Answered::Already(approval) => Ok(*approval),
            Answered::TooLate(problem, carried) => {
                self.spawn_woken(scope.tenant(), *carried);
                Err(EngineError::Refused(problem))
            }
            Answered::Earlier(earlier) => Err(earlier),
            Answered::Refused(problem) => Err(EngineError::Refused(problem)),
            Answered::NotFound => Err(EngineError::NotFound("approval")),
        }
    }

    /// A command that takes the place of the model's is scanned like one.
    pub(super) async fn scan_edit(&self, answer: &AnswerRequest) {
        let command = answer.arguments.as_ref().and_then(|arguments| arguments.get("command"));
        if let Some(command) = command.and_then(Value::as_str).filter(|command| !command.is_empty()) {
            self.host().scan(command).await;
        }
    }

    /// Settles an approval whose time is over, unless somebody was faster.
    pub async fn expire_approval(&self, tenant: TenantId, session: SessionId, id: ApprovalId) -> Verdict<()> {
        let engine = self.clone();
        let scope = self.store().scope(tenant);
        let expired = scope.write_anew("expire", move |mut rows| {
            Box::pin(async move {
                let Some(seen) = rows.approval(id).await? else {
                    return Ok(None);
                };
                let Some(session) = lock_asker(&mut rows, &seen, true).await? else {
                    return Ok(None);
                };
                // What counts is what stands under the lock.
                let Some(approval) = rows.approval(id).await? else {
                    return Ok(None);
                };
                let due = approval.expires_at.is_some_and(|at| at <= engine.clock().now());
                if approval.status != ApprovalStatus::Pending || !due {
                    return Ok(None);
                }
                expire_within(&mut rows, &engine, session, &approval).await
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

enum Answered {
    Now(Box<Approval>, Box<Carried>),
    Already(Box<Approval>),
    TooLate(Problem, Box<Carried>),
    /// Under the key of the request, which may have been another one.
    Earlier(EngineError),
    Refused(Problem),
    NotFound,
}

/// Locks the session that waits for the answer, with those that it works for.
pub(in crate::turn) async fn lock_asker(
    rows: &mut Rows<'_>,
    approval: &Approval,
    even_deleted: bool,
) -> Result<Option<SessionRecord>, StoreError> {
    let asker = approval.asker().session_id;
    match (approval.origin.is_some(), even_deleted) {
        (true, _) => kin::lock(rows, asker, even_deleted).await,
        (false, true) => rows.lock_session_even_deleted(asker).await,
        (false, false) => rows.lock_session(asker).await,
    }
}

async fn answer_within(
    rows: &mut Rows<'_>,
    engine: &Engine,
    id: ApprovalId,
    answer: AnswerRequest,
) -> Result<Answered, StoreError> {
    let Some(seen) = rows.approval(id).await? else {
        return Ok(Answered::NotFound);
    };
    let Some(session) = lock_asker(rows, &seen, false).await? else {
        return Ok(Answered::NotFound);
    };
    // What counts is what stands under the lock.
    let asker = seen.asker();
    let Some((turn, calls, all)) = rows.turn_at_work(asker.session_id, asker.turn_id).await? else {
        return Ok(Answered::NotFound);
    };
    let Some(approval) = all.iter().find(|approval| approval.id == id).cloned() else {
        return Ok(Answered::NotFound);
    };
    if approval.status != ApprovalStatus::Pending {
        let same = is_same(rows, engine, (&session, &turn), &approval, &answer).await?;
        return Ok(if same {
            Answered::Already(Box::new(approval))
        } else {
            Answered::Refused(resolved_problem(&approval))
        });
    }
    if turn.cancel_reason.is_some() || turn.status.is_terminal() {
        return Ok(Answered::Refused(inactive(&approval)));
    }
    if approval.expires_at.is_some_and(|at| at <= engine.clock().now()) {
        let Some(carried) = expire_within(rows, engine, session, &approval).await? else {
            return Ok(Answered::NotFound);
        };
        let expired = Approval {
            status: ApprovalStatus::Expired,
            ..approval
        };
        return Ok(Answered::TooLate(resolved_problem(&expired), Box::new(carried)));
    }
    if let Some(problem) = not_theirs(rows, &approval, answer.choice) {
        return Ok(Answered::Refused(problem));
    }
    let state = Box::pin(commit::at_work(rows, session, turn, (calls, all))).await?;
    let decision = match accepted(rows, engine, &state, &approval, answer).await? {
        Ok(decision) => decision,
        Err(problem) => return Ok(Answered::Refused(problem)),
    };
    let carried = commit::carry_out(rows, engine, state, None, |step| step.decide(id, decision)).await?;
    let settled = carried
        .state
        .approvals
        .iter()
        .find(|approval| approval.id == id)
        .cloned();
    Ok(Answered::Now(Box::new(settled.unwrap_or(approval)), Box::new(carried)))
}

async fn expire_within(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionRecord,
    approval: &Approval,
) -> Result<Option<Carried>, StoreError> {
    let asker = approval.asker();
    let Some(turn) = rows.turn(asker.session_id, asker.turn_id).await? else {
        return Ok(None);
    };
    if turn.status.is_terminal() || turn.cancel_reason.is_some() {
        return Ok(None);
    }
    let id = approval.id;
    let state = commit::load(rows, session, turn).await?;
    commit::carry_out(rows, engine, state, None, |step| step.expire(id))
        .await
        .map(Some)
}
