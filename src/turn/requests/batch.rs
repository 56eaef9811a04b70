//! Many answers at once: one transaction for all approvals of a session, each
//! answer by the rules of a single one.

use std::collections::BTreeMap;

use serde_json::json;

use super::answers::{accepted, is_same, resolved_problem};
use super::budgets::not_theirs;
use super::{AnswerRequest, EngineError, Verdict, earlier};
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::id::{ApprovalId, SessionId};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::SessionRecord;
use crate::store::{Rows, Scope, StoreError};
use crate::turn::commit::{self, Carried};
use crate::turn::engine::Engine;
use crate::turn::kin;
use crate::turn::state::State;
use crate::turn::step::DecisionIn;

/// What became of one answer: the approval with its decision, or the reason.
pub type BatchOutcome = Result<Approval, Problem>;

/// Answers to approvals of one session.
#[derive(Clone, Debug)]
pub struct BatchRequest {
    /// All or nothing; otherwise each for itself.
    pub atomic: bool,
    /// In the order of the outcomes; no approval twice.
    pub answers: Vec<(ApprovalId, AnswerRequest)>,
}

impl Engine {
    /// Answers approvals of a session in one transaction. With `atomic` the
    /// problem of the first answer that is not taken is the whole result, with
    /// its `index` in the context, and nothing has changed.
    pub async fn decide_batch(
        &self,
        scope: &Scope,
        session: SessionId,
        batch: BatchRequest,
    ) -> Verdict<Vec<BatchOutcome>> {
        let (engine, scope) = (self.clone(), scope.clone());
        self.whole(Box::pin(
            async move { engine.answer_batch(&scope, session, batch).await },
        ))
        .await
    }

    async fn answer_batch(&self, scope: &Scope, session: SessionId, batch: BatchRequest) -> Verdict<Vec<BatchOutcome>> {
        for (_, answer) in &batch.answers {
            self.scan_edit(answer).await;
        }
        let engine = self.clone();
        let answered = scope.write_anew("decide_batch", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Answered::Earlier(earlier));
                }
                let answered = Box::pin(answer_all(&mut rows, &engine, session, batch)).await?;
                if let Answered::Done(outcomes, _) = &answered {
                    rows.remember(outcomes).await?;
                }
                Ok(answered)
            })
        });
        let answered = answered.await;
        if let Err(StoreError::Unclear(_)) = answered {
            // The same answers given again are no error, should they have been taken.
            self.adopt(scope, session).await;
        }
        match answered? {
            Answered::Done(outcomes, carried) => {
                for carried in carried {
                    self.spawn_woken(scope.tenant(), carried);
                }
                Ok(outcomes)
            }
            Answered::Earlier(earlier) => Err(earlier),
            Answered::Refused(problem) => Err(EngineError::Refused(problem)),
            Answered::NotFound => Err(EngineError::NotFound("session")),
        }
    }
}

enum Answered {
    Done(Vec<BatchOutcome>, Vec<Carried>),
    /// The request was carried out before, or its key belongs to another.
    Earlier(EngineError),
    Refused(Problem),
    NotFound,
}

/// What follows from an answer, before anything is written.
enum Finding {
    Settled(Result<Box<Approval>, Box<Problem>>),
    Decides(Box<Approval>, Box<DecisionIn>),
}

async fn answer_all(
    rows: &mut Rows<'_>,
    engine: &Engine,
    id: SessionId,
    batch: BatchRequest,
) -> Result<Answered, StoreError> {
    let Some(session) = rows.lock_session(id).await? else {
        return Ok(Answered::NotFound);
    };
    let mut states = States::new();
    states.extend(active(rows, session).await?.map(|state| (id, state)));
    let mut planned = states.clone();
    let mut found = Vec::with_capacity(batch.answers.len());
    for (index, (approval, answer)) in batch.answers.into_iter().enumerate() {
        match find(rows, engine, (id, &mut states, &mut planned), approval, answer).await? {
            Finding::Settled(Err(problem)) => {
                let problem = at_index(*problem, index, approval);
                if batch.atomic {
                    return Ok(Answered::Refused(problem));
                }
                found.push(Finding::Settled(Err(Box::new(problem))));
            }
            finding => found.push(finding),
        }
    }
    carry_out(rows, engine, states, found).await
}

/// The turns that wait for the answers: the session's own, and those of work that
/// it delegated.
type States = BTreeMap<SessionId, State>;

/// Only a turn that has begun and not ended has approvals that wait.
async fn active(rows: &mut Rows<'_>, session: SessionRecord) -> Result<Option<State>, StoreError> {
    let turn = match session.active_turn_id {
        Some(active) => rows.turn(session.session_id, active).await?,
        None => None,
    };
    match turn {
        Some(turn) => commit::load(rows, session, turn).await.map(Some),
        None => Ok(None),
    }
}

/// Looks at one answer; `planned` is the record as the answers before it, once
/// carried out, leave its calls.
async fn find(
    rows: &mut Rows<'_>,
    engine: &Engine,
    (session, states, planned): (SessionId, &mut States, &mut States),
    id: ApprovalId,
    answer: AnswerRequest,
) -> Result<Finding, StoreError> {
    let refused = |problem| Ok(Finding::Settled(Err(Box::new(problem))));
    let approval = rows
        .approval(id)
        .await?
        .filter(|approval| approval.session_id == session);
    let Some(approval) = approval else {
        let detail = "there is no such approval in this session";
        return refused(Problem::new(ProblemCode::NotFound, detail));
    };
    let asker = approval.asker();
    if asker.session_id != session
        && !states.contains_key(&asker.session_id)
        && let Some(child) = kin::lock(rows, asker.session_id, false).await?
        && let Some(state) = active(rows, child).await?
    {
        states.insert(asker.session_id, state.clone());
        planned.insert(asker.session_id, state);
    }
    let planned = planned.get_mut(&asker.session_id);
    if approval.status != ApprovalStatus::Pending {
        let Some(turn) = rows.turn(asker.session_id, asker.turn_id).await? else {
            return refused(resolved_problem(&approval));
        };
        let record = match planned {
            Some(planned) => Some(planned.session.clone()),
            None => rows.session_record(asker.session_id).await?,
        };
        return match record {
            Some(record) if is_same(rows, engine, (&record, &turn), &approval, &answer).await? => {
                Ok(Finding::Settled(Ok(Box::new(approval))))
            }
            _ => refused(resolved_problem(&approval)),
        };
    }
    if approval.expires_at.is_some_and(|at| at <= engine.clock().now()) {
        // It is settled by the task that waits for this instant.
        let expired = Approval {
            status: ApprovalStatus::Expired,
            ..approval
        };
        return refused(resolved_problem(&expired));
    }
    let Some(planned) = planned else {
        return refused(resolved_problem(&approval));
    };
    if let Some(problem) = not_theirs(rows, &approval, answer.choice) {
        return refused(problem);
    }
    match accepted(rows, engine, planned, &approval, answer).await? {
        Ok(decision) => {
            let call = planned
                .calls
                .iter_mut()
                .find(|call| Some(call.call_id) == approval.tool_call_id);
            if let (Some(call), Some(edit)) = (call, &decision.edit) {
                call.edited = Some(edit.arguments.clone());
            }
            Ok(Finding::Decides(Box::new(approval), Box::new(decision)))
        }
        Err(problem) => refused(problem),
    }
}

/// Carries out what was decided, all of it at once.
async fn carry_out(
    rows: &mut Rows<'_>,
    engine: &Engine,
    states: States,
    found: Vec<Finding>,
) -> Result<Answered, StoreError> {
    let mut carried = Vec::new();
    // A session's id is older than those of what works for it, so the root comes
    // first and is as it was read.
    for (session, state) in states {
        let decisions: Vec<(ApprovalId, DecisionIn)> = found
            .iter()
            .filter_map(|finding| match finding {
                Finding::Decides(approval, decision) if approval.asker().session_id == session => {
                    Some((approval.id, (**decision).clone()))
                }
                Finding::Decides(..) | Finding::Settled(_) => None,
            })
            .collect();
        if !decisions.is_empty() {
            let decide = |step: &mut crate::turn::step::Step<'_>| step.decide_all(decisions);
            carried.push(commit::carry_out(rows, engine, state, None, decide).await?);
        }
    }
    let now = |approval: Approval| {
        let all = carried.iter().flat_map(|carried| &carried.state.approvals);
        all.into_iter()
            .find(|own| own.id == approval.id)
            .cloned()
            .unwrap_or(approval)
    };
    let outcomes = found.into_iter().map(|finding| match finding {
        Finding::Settled(Ok(approval)) => Ok(*approval),
        Finding::Settled(Err(problem)) => Err(*problem),
        Finding::Decides(approval, _) => Ok(now(*approval)),
    });
    let outcomes = outcomes.collect();
    Ok(Answered::Done(outcomes, carried))
}

/// The problem of one answer, told in terms of the whole request.
fn at_index(mut problem: Problem, index: usize, approval: ApprovalId) -> Problem {
    for field in &mut problem.errors {
        field.pointer = format!("/decisions/{index}{}", field.pointer);
    }
    let mut context = problem.context.take().unwrap_or_else(|| json!({}));
    if let Some(fields) = context.as_object_mut() {
        fields.insert("index".to_owned(), index.into());
        fields.insert("approval_id".to_owned(), json!(approval));
    }
    problem.with_context(context)
}
