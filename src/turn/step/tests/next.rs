//! `next` as a table: what stands in the record, and what follows.

use serde_json::json;

use super::{Game, done};
use crate::model::call::CallStatus;
use crate::model::record::{LastAnswer, Progress};
use crate::model::turn::{StopReason, TurnStatus};
use crate::turn::next::{MAX_RECOVERIES, Next, next};
use crate::turn::state::State;

fn with(state: &State, progress: Progress) -> State {
    let mut state = state.clone();
    state.turn.progress = progress;
    state
}

fn short(next: &Next) -> String {
    match next {
        Next::CallModel { with_tools: true } => "model".to_owned(),
        Next::CallModel { with_tools: false } => "summary".to_owned(),
        Next::Run(calls) => format!("run {}", calls.len()),
        Next::Await => "await".to_owned(),
        Next::Park => "park".to_owned(),
        Next::AskBudget => "ask budget".to_owned(),
        Next::Finish(outcome) => format!("{} {:?}", outcome.status.name(), outcome.stop_reason),
    }
}

#[tokio::test]
async fn what_follows_an_answer() {
    let game = Game::new().await;
    let none = Progress::default;
    let last = |steps, last| Progress { steps, last, ..none() };
    let table = [
        (none(), "model"),
        (last(3, LastAnswer::None), "summary"),
        (last(1, LastAnswer::Text), "completed EndTurn"),
        (last(3, LastAnswer::Text), "completed EndTurn"),
        (last(4, LastAnswer::Text), "completed MaxSteps"),
        (last(1, LastAnswer::Calls), "model"),
        (last(3, LastAnswer::Calls), "summary"),
        (
            Progress {
                invalid_rounds: 2,
                ..last(2, LastAnswer::Calls)
            },
            "model",
        ),
        (
            Progress {
                invalid_rounds: 3,
                ..last(3, LastAnswer::Calls)
            },
            "failed Error",
        ),
        (
            Progress {
                continuations: 4,
                ..last(2, LastAnswer::Cut)
            },
            "model",
        ),
        (
            Progress {
                continuations: 5,
                ..last(2, LastAnswer::Cut)
            },
            "completed EndTurn",
        ),
        (
            Progress {
                continuations: 1,
                ..last(3, LastAnswer::Cut)
            },
            "summary",
        ),
        (
            Progress {
                continuations: 1,
                ..last(4, LastAnswer::Cut)
            },
            "completed MaxSteps",
        ),
        (last(1, LastAnswer::Filtered), "failed Refusal"),
        (
            Progress {
                recoveries: MAX_RECOVERIES,
                ..none()
            },
            "model",
        ),
        (
            Progress {
                recoveries: MAX_RECOVERIES + 1,
                ..none()
            },
            "failed RecoveryExhausted",
        ),
        (
            Progress {
                halted: Some("`act` has failed 8 times in a row".to_owned()),
                ..last(2, LastAnswer::Calls)
            },
            "failed Error",
        ),
    ];
    for (progress, expected) in table {
        assert_eq!(
            short(&next(&with(&game.state, progress.clone()), 3)),
            expected,
            "{progress:?}"
        );
    }
}

#[tokio::test]
async fn what_follows_from_open_calls() {
    use CallStatus::{Proposed, Running, Succeeded, Waiting};
    let mut game = Game::new().await;
    // Two side by side, then two one after the other.
    game.calls(&[
        ("look", json!({})),
        ("side", json!({})),
        ("act", json!({"n": 1})),
        ("act", json!({"n": 2})),
    ]);
    let table = [
        ([Proposed, Proposed, Proposed, Proposed], "run 2"),
        ([Running, Proposed, Proposed, Proposed], "run 1"),
        ([Waiting, Proposed, Proposed, Proposed], "run 1"),
        ([Running, Waiting, Proposed, Proposed], "await"),
        ([Succeeded, Waiting, Proposed, Proposed], "park"),
        ([Succeeded, Succeeded, Proposed, Proposed], "run 1"),
        ([Succeeded, Succeeded, Waiting, Proposed], "park"),
        ([Succeeded, Succeeded, Running, Waiting], "await"),
        ([Succeeded, Succeeded, Succeeded, Proposed], "run 1"),
        ([Succeeded, Succeeded, Succeeded, Succeeded], "model"),
    ];
    for (statuses, expected) in table {
        let mut state = game.state.clone();
        for (call, status) in state.calls.iter_mut().zip(statuses) {
            call.status = status;
        }
        assert_eq!(short(&next(&state, 90)), expected, "{statuses:?}");
    }
}

#[tokio::test]
async fn of_many_calls_eight_run_at_once_and_those_that_wait_for_a_person_do_not_count() {
    let mut game = Game::new().await;
    let calls: Vec<(&str, serde_json::Value)> = (0..12).map(|n| ("look", json!({"n": n}))).collect();
    game.calls(&calls);
    let with = |running: usize, waiting: usize| {
        let mut state = game.state.clone();
        for (place, call) in state.calls.iter_mut().enumerate() {
            call.status = match place {
                place if place < running => CallStatus::Running,
                place if place < running + waiting => CallStatus::Waiting,
                _ => CallStatus::Proposed,
            };
        }
        short(&next(&state, 90))
    };
    assert_eq!(with(0, 0), "run 8");
    assert_eq!(with(7, 0), "run 1");
    assert_eq!(with(8, 0), "await");
    assert_eq!(with(0, 4), "run 8");
    let running = game
        .state
        .calls
        .iter()
        .filter(|call| call.status == CallStatus::Running);
    assert_eq!(running.count(), 8);
}

#[tokio::test]
async fn a_filtered_answer_is_a_refusal_with_its_text_kept() {
    let mut game = Game::new().await;
    let filtered = crate::provider::Answer {
        finish: crate::provider::Finish::ContentFilter,
        ..super::said("I")
    };
    game.answer(filtered, true);
    assert_eq!(game.state.turn.status, TurnStatus::Failed);
    assert_eq!(game.state.turn.stop_reason, Some(StopReason::Refusal));
    assert_eq!(game.said_last(), "I");
    let writes = game.step(|step| step.results(vec![(crate::base::Id::from_bits(1), done("late"))]));
    assert!(writes.messages.is_empty());
}
