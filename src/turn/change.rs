//! What happens to a turn that runs, as data, so that a commit of it can be tried
//! again; and what it becomes when the turn was cancelled meanwhile.

use std::time::Duration;

use super::next::Outcome;
use super::state::State;
use super::step::{AnswerIn, NestedIn, Partial, Step};
use crate::model::call::CallStatus;
use crate::model::id::{CallId, MessageId};
use crate::model::problem::Problem;
use crate::model::usage::Spent;
use crate::tool::Done;

/// One thing that happened to the turn, as data: a commit can be tried again.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Answer(Box<AnswerIn>),
    Results(Vec<(CallId, Done)>),
    /// A program of a running call makes a call.
    Nested(Box<NestedIn>),
    /// Results that are there when the process lets go of the turn: nothing
    /// follows from them here.
    Kept(Vec<(CallId, Done)>),
    Retrying {
        attempt: u32,
        delay: Duration,
        error: Problem,
        /// What the answer took that cannot be used.
        spent: Option<Spent>,
    },
    End {
        outcome: Outcome,
        results: Vec<(CallId, Done)>,
        partial: Option<(MessageId, Partial)>,
        /// What the last answer took, if it came too late or cannot be used.
        spent: Option<Spent>,
    },
}

impl Change {
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Results(_) | Self::Kept(_) => "results",
            Self::Nested(_) => "nested",
            Self::Retrying { .. } => "retrying",
            Self::End { .. } => "end",
        }
    }

    /// Whether results change what is remembered of the user.
    pub(super) fn remembers(&self) -> bool {
        let (Self::Results(results) | Self::Kept(results) | Self::End { results, .. }) = self else {
            return false;
        };
        results.iter().any(|(_, done)| done.writes.memory.is_some())
    }

    /// Whether results may leave something for a person to let in.
    pub(super) fn stages(&self) -> bool {
        let (Self::Results(results) | Self::Kept(results) | Self::End { results, .. }) = self else {
            return false;
        };
        let mut writes = results.iter().map(|(_, done)| &done.writes);
        writes.any(|writes| writes.pending.is_some() || writes.memory.is_some())
    }

    /// Whether results change jobs of the user.
    pub(super) fn schedules(&self) -> bool {
        let (Self::Results(results) | Self::Kept(results) | Self::End { results, .. }) = self else {
            return false;
        };
        results.iter().any(|(_, done)| done.writes.jobs.is_some())
    }

    /// Whether calls may be judged or start because of it: behind the last result of
    /// a batch only the model is next.
    pub(super) fn judges_calls(&self, state: &State) -> bool {
        match self {
            Self::Answer(answer) => !answer.answer.calls.is_empty(),
            Self::Results(results) => {
                let mut open = state.calls.iter().filter(|call| !call.status.is_settled());
                // A result of a call that does not run counts for nothing.
                open.any(|call| call.status != CallStatus::Running || results.iter().all(|(id, _)| *id != call.call_id))
            }
            Self::Nested(_) => true,
            Self::Kept(_) | Self::Retrying { .. } | Self::End { .. } => false,
        }
    }

    pub(super) fn make(self, step: &mut Step<'_>) {
        match self {
            Self::Answer(answer) => step.answer(*answer),
            Self::Results(results) => step.results(results),
            Self::Nested(call) => step.nested(*call),
            Self::Kept(results) => step.keep(results),
            Self::Retrying {
                attempt,
                delay,
                error,
                spent,
            } => step.retrying(attempt, delay, &error, spent),
            Self::End {
                outcome,
                results,
                partial,
                spent,
            } => {
                if let Some(spent) = spent {
                    step.spend(spent);
                }
                step.end(outcome, results, partial);
            }
        }
    }

    /// Whether calls of the turn still run once this is stored. They are stopped
    /// before the turn ends, or the next one would begin beside them.
    pub(super) fn leaves_running(&self, state: &State) -> bool {
        let none = Vec::new();
        let results = match self {
            Self::Results(results) | Self::Kept(results) => results,
            Self::Nested(_) => &none,
            _ => return false,
        };
        let mut running = state.calls.iter().filter(|call| call.status == CallStatus::Running);
        running.any(|call| results.iter().all(|(id, _)| *id != call.call_id))
    }

    /// The same happening while other calls run: what is there is kept, and
    /// nothing follows from it yet.
    pub(super) fn keeping(self) -> Self {
        match self {
            Self::Results(results) => Self::Kept(results),
            // It was not begun.
            Self::Nested(_) => Self::Kept(Vec::new()),
            other => other,
        }
    }

    /// The same happening when the turn was cancelled meanwhile: what is there
    /// is kept, nothing follows from it.
    pub(super) fn ending(self, outcome: Outcome) -> Self {
        let (results, partial, spent) = match self {
            Self::Answer(answer) => {
                let AnswerIn {
                    message_id,
                    answer,
                    spent,
                    ..
                } = *answer;
                let partial = Partial {
                    text: answer.text,
                    reasoning: answer.reasoning,
                };
                (Vec::new(), Some((message_id, partial)), spent)
            }
            Self::Results(results) | Self::Kept(results) => (results, None, None),
            Self::Nested(_) => (Vec::new(), None, None),
            Self::Retrying { spent, .. } => (Vec::new(), None, spent),
            Self::End {
                results,
                partial,
                spent,
                ..
            } => (results, partial, spent),
        };
        Self::End {
            outcome,
            results,
            partial,
            spent,
        }
    }
}
