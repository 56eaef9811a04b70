//! The owner task of one turn: asks `next`, performs it, commits, until the
//! turn is parked or over.

use std::time::Duration;

use super::change::Change;
use super::engine::Engine;
use super::next::{Next, Outcome, next};
use super::owner::{Gone, Opening, Owned};
use super::watch::Watch;
use super::{calls, model_call};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::turn::{StopReason, TurnStatus};

/// Answers whether the session may be gone: it was deleted meanwhile, or nobody
/// here knows.
pub(super) async fn run(engine: &Engine, mut owned: Owned) -> bool {
    let turn = owned.state.turn.turn_id;
    tracing::debug!(%turn, "running");
    match go_on(engine, &mut owned).await {
        Ok(()) => {
            tracing::debug!(%turn, status = owned.state.turn.status.name(), "left");
            owned.state.session.deleted_at.is_some()
        }
        Err(Gone) => {
            tracing::info!(%turn, "let go");
            true
        }
    }
}

async fn go_on(engine: &Engine, owned: &mut Owned) -> Result<(), Gone> {
    let (bell, mut said) = match owned.opening.take() {
        Some(Opening { bell, said }) => (Some(bell), said),
        None => (None, None),
    };
    let mut watch = Watch::new(engine, owned, bell);
    while owned.state.turn.status == TurnStatus::Running {
        // A step is stored: the place to hand the turn over when draining.
        if engine.is_draining() {
            return Err(Gone);
        }
        watch.knows(owned.state.session.head_seq);
        match next(
            &owned.state,
            engine.scene(&owned.state.session, &owned.state.turn).rules.max_steps,
        ) {
            Next::CallModel { with_tools } => {
                // Boxed, or each turn's task would be as large as this.
                Box::pin(model_call::call_model(
                    engine,
                    owned,
                    &mut watch,
                    (with_tools, said.take()),
                ))
                .await?;
            }
            Next::Await => calls::run_calls(engine, owned, &mut watch).await?,
            // The transaction that made these possible has drawn the
            // consequence already; only a turn left over by a draining process
            // stands here, and that one is taken over, not run.
            Next::Run(_) | Next::Park | Next::AskBudget | Next::Finish(_) => return Err(Gone),
        }
    }
    Ok(())
}

/// Ends the turn because its time is over.
pub(super) fn timed_out(why: &'static str) -> Outcome {
    Outcome::failed(StopReason::Timeout, Problem::new(ProblemCode::TurnTimeout, why))
}

/// What a short wait for results that are ready together costs.
pub(super) const TOGETHER: Duration = Duration::from_millis(5);

/// How long a cancelled call may take to die before the turn ends without it.
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn ending(outcome: Outcome, results: Vec<(crate::model::id::CallId, crate::tool::Done)>) -> Change {
    Change::End {
        outcome,
        results,
        partial: None,
        spent: None,
    }
}
