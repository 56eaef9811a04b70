//! What a turn does next, as a function of its record and nothing else: no
//! clock, no I/O, no memory of its own.

use super::state::State;
use crate::model::approval::{ApprovalKind, ApprovalStatus};
use crate::model::call::CallStatus;
use crate::model::id::CallId;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::LastAnswer;
use crate::model::turn::{CancelReason, StopReason, TurnStatus};

/// Answers cut at the length limit are continued this often (Hermes: 4).
const MAX_CONTINUATIONS: u32 = 4;
/// Rounds in a row with nothing but unknown tools before the turn gives up
/// (Hermes: 3).
const MAX_INVALID_ROUNDS: u32 = 3;
/// Takeovers without a stored step in between before the turn is given up.
pub const MAX_RECOVERIES: u32 = 3;

#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Ask the model; without tools when the limit of steps is reached and only
    /// a summary is wanted.
    CallModel {
        with_tools: bool,
    },
    /// These calls may start.
    Run(Vec<CallId>),
    /// Calls are running and nothing else can start.
    Await,
    /// Only decisions are missing.
    Park,
    /// The next model call would cross a budget: a person is asked first.
    AskBudget,
    Finish(Outcome),
}

/// How a turn ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub status: TurnStatus,
    pub stop_reason: StopReason,
    pub error: Option<Problem>,
}

impl Outcome {
    pub fn completed(stop_reason: StopReason) -> Self {
        Self {
            status: TurnStatus::Completed,
            stop_reason,
            error: None,
        }
    }

    pub fn cancelled(stop_reason: StopReason) -> Self {
        Self {
            status: TurnStatus::Cancelled,
            stop_reason,
            error: None,
        }
    }

    /// The end of a turn whose step cannot be stored for a fault of ours.
    pub(super) fn broken() -> Self {
        let problem = Problem::new(
            ProblemCode::Internal,
            "the turn's next step could not be stored; the server's log says why",
        );
        Self::failed(StopReason::Error, problem)
    }

    pub(super) fn store_unavailable() -> Self {
        let problem = Problem::new(
            ProblemCode::StoreUnavailable,
            "the store was away for longer than `store.retry_seconds` while the turn ran; results that were there are kept",
        );
        Self::failed(StopReason::StoreUnavailable, problem)
    }

    /// The end of a turn that was asked to stop.
    pub fn stopped(reason: CancelReason) -> Self {
        match reason {
            CancelReason::CancelledByUser => Self::cancelled(StopReason::CancelledByUser),
            CancelReason::ClientDisconnected => Self::cancelled(StopReason::ClientDisconnected),
            CancelReason::Interrupted => Self {
                status: TurnStatus::Interrupted,
                stop_reason: StopReason::Superseded,
                error: None,
            },
            CancelReason::RolledBack => Self {
                status: TurnStatus::RolledBack,
                stop_reason: StopReason::Superseded,
                error: None,
            },
        }
    }

    pub fn failed(stop_reason: StopReason, error: Problem) -> Self {
        Self {
            status: TurnStatus::Failed,
            stop_reason,
            error: Some(error),
        }
    }
}

/// The next step of a turn that has begun and not ended.
pub fn next(state: &State, max_steps: u32) -> Next {
    if MAX_RECOVERIES < state.turn.progress.recoveries {
        let problem = Problem::new(
            ProblemCode::RecoveryExhausted,
            format!("the turn was taken over {MAX_RECOVERIES} times without getting further"),
        );
        return Next::Finish(Outcome::failed(StopReason::RecoveryExhausted, problem));
    }
    if state.has_open_calls() {
        let startable = state.startable();
        if !startable.is_empty() {
            return Next::Run(startable);
        }
        let running = state.calls.iter().any(|call| call.status == CallStatus::Running);
        return if running { Next::Await } else { Next::Park };
    }
    after_answer(state, max_steps)
}

fn after_answer(state: &State, max_steps: u32) -> Next {
    let progress = &state.turn.progress;
    if let Some(why) = &progress.halted {
        let problem = Problem::new(ProblemCode::ToolLoop, why.clone());
        return Next::Finish(Outcome::failed(StopReason::Error, problem));
    }
    let more = || call_model(state, progress.steps < max_steps);
    let done = || {
        let over = max_steps < progress.steps;
        Next::Finish(Outcome::completed(if over {
            StopReason::MaxSteps
        } else {
            StopReason::EndTurn
        }))
    };
    match progress.last {
        LastAnswer::None => more(),
        LastAnswer::Calls if MAX_INVALID_ROUNDS <= progress.invalid_rounds => {
            let problem = Problem::new(
                ProblemCode::ModelAnswerInvalid,
                format!("the model called only unknown tools in {MAX_INVALID_ROUNDS} answers in a row"),
            );
            Next::Finish(Outcome::failed(StopReason::Error, problem))
        }
        LastAnswer::Calls => more(),
        // Past the limit of steps only the summary was wanted: no continuing.
        LastAnswer::Cut if progress.continuations <= MAX_CONTINUATIONS && progress.steps <= max_steps => more(),
        LastAnswer::Cut | LastAnswer::Text => done(),
        LastAnswer::Filtered => {
            let problem = Problem::new(
                ProblemCode::UpstreamRefused,
                "the model's content filter ended the answer",
            );
            Next::Finish(Outcome::failed(StopReason::Refusal, problem))
        }
    }
}

/// A model call, once the budgets leave room for it. A *no* ends the turn even
/// if there is room again, and so does silence.
fn call_model(state: &State, with_tools: bool) -> Next {
    let mut asked = state
        .approvals
        .iter()
        .filter(|approval| approval.kind == ApprovalKind::Budget);
    match asked.next_back().map(|newest| newest.status) {
        Some(ApprovalStatus::Denied | ApprovalStatus::Expired) => Next::Finish(Outcome::completed(StopReason::Budget)),
        Some(ApprovalStatus::Pending) => Next::Park,
        _ if state.exceeded().next().is_some() => Next::AskBudget,
        _ => Next::CallModel { with_tools },
    }
}
