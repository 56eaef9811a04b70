//! Turns that go round in circles: told first, stopped where the operator says so.

use serde_json::json;

use super::{Game, done};
use crate::model::call::CallStatus::{Failed, Running};
use crate::model::turn::{StopReason, TurnStatus};
use crate::tool::Done;

async fn failing(game: &mut Game, n: u32) {
    game.calls(&[("look", json!({"n": n}))]);
    if game.statuses() == [Running] {
        game.result(0, Done::failure("no".to_owned()));
    }
}

#[tokio::test]
async fn the_model_is_told_behind_the_result_when_a_call_fails_again() {
    let mut game = Game::new().await;
    failing(&mut game, 1).await;
    assert_eq!(game.told(0), "no");
    failing(&mut game, 1).await;
    assert!(game.told(0).starts_with("no\n\n[Tool loop: "), "{}", game.told(0));
    assert!(
        game.told(0).contains("repeated_exact_failure_warning"),
        "{}",
        game.told(0)
    );
    // What works again begins its count anew.
    game.calls(&[("look", json!({"n": 1}))]);
    game.result(0, done("yes"));
    failing(&mut game, 1).await;
    assert_eq!(game.told(0), "no");
}

#[tokio::test]
async fn a_call_that_failed_too_often_does_not_run_and_the_turn_ends_at_last() {
    let mut game = Game::new().await;
    game.rules.guardrail.stops = true;
    for _ in 0..5 {
        failing(&mut game, 1).await;
    }
    game.calls(&[("look", json!({"n": 1}))]);
    assert_eq!(game.statuses(), [Failed], "it did not run");
    assert!(
        game.told(0).contains("\"repeated_exact_failure_block\""),
        "{}",
        game.told(0)
    );
    for n in 2..5 {
        assert_eq!(game.state.turn.status, TurnStatus::Running);
        failing(&mut game, n).await;
    }
    let turn = &game.state.turn;
    assert_eq!(
        (turn.status, turn.stop_reason),
        (TurnStatus::Failed, Some(StopReason::Error))
    );
    let problem = turn.error.as_ref().unwrap();
    assert_eq!(problem.code, crate::model::problem::ProblemCode::ToolLoop);
    assert!(problem.detail.contains("8 times"), "{}", problem.detail);
}
