//! Approvals that a client answers with a response of its own: what follows in the
//! turn behind the first answer is that response.

use crate::api::caller::Caller;
use crate::api::compat::ids::ResponseId;
use crate::api::compat::question;
use crate::api::failure::Failure;
use crate::api::state::ApiState;
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::id::ApprovalId;
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::store::Once;
use crate::turn::requests::{AnswerRequest, BatchRequest};

use super::request::Answer;

/// What was answered.
pub(super) struct Answered {
    pub id: ResponseId,
    pub replayed: bool,
}

pub(super) async fn answer(
    state: &ApiState,
    caller: &Caller,
    answers: Vec<Answer>,
    once: Option<Once>,
) -> Result<Answered, Failure> {
    caller.require(Scope::ApprovalsDecide)?;
    let asked = asked(caller, &answers).await?;
    let Some(first) = asked.first().cloned() else {
        return Err(no_such_approval());
    };
    let batch = BatchRequest {
        atomic: true,
        answers: answers
            .iter()
            .zip(&asked)
            .map(|(answer, approval)| given(answer, approval, caller))
            .collect::<Result<_, _>>()?,
    };
    let (engine, scope, session) = (state.engine.clone(), caller.scope.clone().once(once), first.session_id);
    let done = state
        .finish_once(async move { engine.decide_batch(&scope, session, batch).await })
        .await?;
    done.value.into_iter().collect::<Result<Vec<Approval>, Problem>>()?;
    let read = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.answered_at(session, first.id).await }));
    Ok(Answered {
        id: ResponseId {
            turn: first.turn_id,
            after: read.await?.map_or(0, |seq| seq - 1),
        },
        replayed: done.replayed,
    })
}

fn no_such_approval() -> Failure {
    Failure::not_found("approval").known_as("approval_not_pending")
}

/// The approvals that the answers name, all of one turn.
async fn asked(caller: &Caller, answers: &[Answer]) -> Result<Vec<Approval>, Failure> {
    let mut ids: Vec<ApprovalId> = Vec::new();
    for answer in answers {
        let id = answer.id.parse().map_err(|_| no_such_approval())?;
        if ids.contains(&id) {
            return Err(Failure::field("/input", format!("the approval `{id}` has two answers")));
        }
        ids.push(id);
    }
    let read = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            let mut found = Vec::new();
            for id in ids {
                found.push(rows.approval(id).await?);
            }
            Ok(found)
        })
    });
    let found: Option<Vec<Approval>> = read.await?.into_iter().collect();
    let found = found.ok_or_else(no_such_approval)?;
    let turns: std::collections::HashSet<_> = found.iter().map(|approval| approval.turn_id).collect();
    if 1 < turns.len() {
        return Err(Failure::field("/input", "the approvals are of several responses"));
    }
    Ok(found)
}

fn given(answer: &Answer, approval: &Approval, caller: &Caller) -> Result<(ApprovalId, AnswerRequest), Failure> {
    let choice = question::choice(&answer.choice).ok_or_else(|| {
        Failure::field("/input", "the choice is none of the approval's").known_as("invalid_approval_choice")
    })?;
    // What is settled is compared with the answer as it was given.
    let choice = match approval.status {
        ApprovalStatus::Pending => question::offered(choice, approval),
        _ => approval
            .decision
            .as_ref()
            .map_or(choice, |decision| match decision.choice.allows() == choice.allows() {
                true => decision.choice,
                false => choice,
            }),
    };
    let request = AnswerRequest {
        choice,
        digest: None,
        reason: answer
            .reason
            .as_deref()
            .map(|reason| crate::base::text::first_chars(reason, 4_000).to_owned()),
        stop_turn: false,
        arguments: None,
        grant: None,
        by: caller.principal.user.clone(),
    };
    Ok((approval.id, request))
}
