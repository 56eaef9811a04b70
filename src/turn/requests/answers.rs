//! What an answer to an approval is worth: whether it is the one that was given
//! already, whether it may be given at all, and what it means. Nothing is
//! written here.

use serde_json::{Map, Value, json};

use super::AnswerRequest;
use crate::model::approval::{Approval, ApprovalStatus, Choice, Decision};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{SessionRecord, TurnRecord};
use crate::store::{Rows, StoreError};
use crate::tool::coerce;
use crate::turn::commit;
use crate::turn::engine::Engine;
use crate::turn::state::State;
use crate::turn::step::{DecisionIn, Edit, Step};

/// What an answer to a pending approval decides, or why it is not taken.
/// `state` is the record under the session's lock.
pub(super) async fn accepted(
    rows: &mut Rows<'_>,
    engine: &Engine,
    state: &State,
    approval: &Approval,
    answer: AnswerRequest,
) -> Result<Result<DecisionIn, Problem>, StoreError> {
    let edit = match &answer.arguments {
        Some(arguments) => Some(checked_edit(rows, engine, state, approval, arguments.clone()).await?),
        None => None,
    };
    Ok(decision(engine, state, approval, answer, edit))
}

fn decision(
    engine: &Engine,
    state: &State,
    approval: &Approval,
    answer: AnswerRequest,
    edit: Option<Result<Edit, Problem>>,
) -> Result<DecisionIn, Problem> {
    let turn = &state.turn;
    if turn.cancel_reason.is_some() || turn.status.is_terminal() || turn.turn_id != approval.asker().turn_id {
        return Err(inactive(approval));
    }
    if let Some(problem) = unacceptable(approval, &answer) {
        return Err(problem);
    }
    if let Some(problem) = unusable_limits(engine, state, approval, &answer) {
        return Err(problem);
    }
    Ok(DecisionIn {
        limits: answer.grant,
        choice: answer.choice,
        reason: answer.reason,
        by: answer.by,
        stop_turn: answer.stop_turn,
        edit: edit.transpose()?,
    })
}

pub(super) fn inactive(approval: &Approval) -> Problem {
    Problem::new(
        ProblemCode::TurnNotActive,
        "the turn is being cancelled; nothing of it runs any more",
    )
    .with_context(json!({"turn_id": approval.turn_id}))
}

/// Whether an approval was settled by this answer of this person: to give it
/// again is no error.
pub(super) async fn is_same(
    rows: &mut Rows<'_>,
    engine: &Engine,
    (session, turn): (&SessionRecord, &TurnRecord),
    approval: &Approval,
    answer: &AnswerRequest,
) -> Result<bool, StoreError> {
    let same = |decision: &Decision| {
        let kind = decision.choice == answer.choice && decision.edited == answer.arguments.is_some();
        kind && decision.by == answer.by && decision.grant == answer.grant
    };
    // A message that superseded it was no answer.
    if approval.status == ApprovalStatus::Superseded || !approval.decision.as_ref().is_some_and(same) {
        return Ok(false);
    }
    let (Some(arguments), Some(call)) = (&answer.arguments, approval.tool_call_id) else {
        return Ok(true);
    };
    let found = rows.calls_with_results(session.session_id, &[call]).await?;
    let Some((call, _)) = found.first() else {
        return Ok(false);
    };
    let scene = engine.scene(session, turn);
    let arguments = match scene.tools.get(&call.name) {
        Some(tool) => coerce::coerce(tool.schema(), arguments.clone()),
        None => arguments.clone(),
    };
    Ok(call.edited == Some(Value::Object(arguments)))
}

/// New arguments that may take the place of the call's, or why not.
async fn checked_edit(
    rows: &mut Rows<'_>,
    engine: &Engine,
    state: &State,
    approval: &Approval,
    arguments: Map<String, Value>,
) -> Result<Result<Edit, Problem>, StoreError> {
    // They are judged by what is in force now.
    let policies = engine.policies().of(rows, &state.session).await?;
    let scene = engine.scene(&state.session, &state.turn);
    let mut world = engine.world(&scene, &[], &policies);
    world.unread = commit::unread(rows);
    let edit = Step::new(&world, state.clone()).edit(approval, arguments);
    commit::left_unread(engine, world.unread)?;
    Ok(edit)
}

pub(super) fn resolved_problem(approval: &Approval) -> Problem {
    let (code, detail) = match approval.status {
        ApprovalStatus::Expired => (
            ProblemCode::ApprovalExpired,
            "the approval expired before it was answered; nothing runs".to_owned(),
        ),
        status => (
            ProblemCode::ApprovalResolved,
            format!("the approval is settled already: {}", status.name()),
        ),
    };
    Problem::new(code, detail).with_context(json!({"approval": approval}))
}

/// What is wrong with the limits that a grant is to be held to.
fn unusable_limits(engine: &Engine, state: &State, approval: &Approval, answer: &AnswerRequest) -> Option<Problem> {
    let limits = answer.grant.as_ref()?;
    let scene = engine.scene(&state.session, &state.turn);
    let tool = approval.tool.as_deref().and_then(|name| scene.tools.get(name));
    let parameters = tool.map_or(Value::Null, |tool| tool.schema().clone());
    let (pointer, detail) = limits.fault(&parameters, engine.clock().now())?;
    Some(Problem::new(ProblemCode::InvalidRequest, detail.clone()).with_field(format!("/grant{pointer}"), detail))
}

fn unacceptable(approval: &Approval, answer: &AnswerRequest) -> Option<Problem> {
    if !approval.choices.contains(&answer.choice) {
        let offered: Vec<&str> = approval.choices.iter().map(|choice| choice.name()).collect();
        let detail = format!(
            "`{}` is not offered; choose one of: {}",
            answer.choice.name(),
            offered.join(", ")
        );
        return Some(Problem::new(ProblemCode::ChoiceNotOffered, detail.clone()).with_field("/choice", detail));
    }
    if answer.stop_turn && answer.choice != Choice::Deny {
        let detail = "`stop_turn` goes with `deny` only";
        return Some(Problem::new(ProblemCode::InvalidRequest, detail).with_field("/stop_turn", detail));
    }
    if answer.arguments.is_some() && answer.choice != Choice::Once {
        let detail = "`arguments` go with `once` only: a grant is for what was asked";
        return Some(Problem::new(ProblemCode::InvalidRequest, detail).with_field("/arguments", detail));
    }
    if answer.grant.is_some() && !matches!(answer.choice, Choice::Session | Choice::Always) {
        let detail = "`grant` goes with `session` and `always` only";
        return Some(Problem::new(ProblemCode::InvalidRequest, detail).with_field("/grant", detail));
    }
    let stale = answer.digest.as_ref().is_some_and(|digest| *digest != approval.digest);
    stale.then(|| {
        let detail = "the digest is not that of the pending approval: read it again and decide on what it shows now";
        Problem::new(ProblemCode::ApprovalStale, detail).with_context(json!({"approval": approval}))
    })
}
