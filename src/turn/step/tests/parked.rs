//! Calls that are handed over: they wait as rows, whoever has them settles them,
//! and nothing is said to have run that did not.

use serde_json::json;

use super::super::ClientResult;
use super::{Game, done, said};
use crate::model::approval::OnAsk;
use crate::model::call::CallStatus::{Cancelled, Failed, Proposed, Running, Succeeded, Unknown, Waiting};
use crate::model::event::EventType;
use crate::model::question::{QuestionAnswer, QuestionStatus};
use crate::model::turn::{CancelReason, TurnStatus};
use crate::tool::registry::Registry;
use crate::tool::session_tools::SessionTools;
use crate::turn::next::Outcome;

/// A game in which the client carries `out` out and a person may be asked.
async fn game() -> Game {
    let mut game = Game::new().await;
    let out = json!({"type": "function", "function": {"name": "out"}});
    let mut tools = game.tools.offered().to_vec();
    tools.extend(Registry::collect().get("clarify").cloned());
    game.tools = SessionTools::new(tools, Vec::new()).and_clients(&[serde_json::from_value(out).unwrap()]);
    game
}

fn give(game: &mut Game, place: usize, output: &str, is_error: bool) {
    let result = ClientResult {
        call_id: game.state.calls[place].call_id,
        output: output.to_owned(),
        is_error,
    };
    game.step(|step| step.client_results(vec![result]));
}

fn answer(game: &mut Game, text: &str) {
    let id = game.state.questions[0].id;
    let answer = QuestionAnswer {
        text: text.to_owned(),
        by: "bob".to_owned(),
        at: game.clock.now(),
    };
    game.step(|step| step.answer_question(id, answer));
}

#[tokio::test]
async fn calls_of_the_client_wait_beside_a_call_that_runs() {
    let mut game = game().await;
    game.calls(&[("out", json!({"n": 1})), ("look", json!({})), ("out", json!({"n": 2}))]);
    assert_eq!(game.statuses(), [Waiting, Running, Waiting]);
    assert_eq!(game.state.turn.status, TurnStatus::Running);
    give(&mut game, 2, "two", false);
    assert_eq!(game.statuses(), [Waiting, Running, Succeeded]);
    game.result(1, done("seen"));
    assert_eq!(game.state.turn.status, TurnStatus::Waiting);
    give(&mut game, 0, "none", true);
    assert_eq!(game.statuses(), [Failed, Succeeded, Succeeded]);
    assert_eq!(game.state.turn.status, TurnStatus::Running);
    assert_eq!([game.told(0), game.told(2)], ["none", "two"]);
}

#[tokio::test]
async fn a_question_waits_alone_and_its_answer_is_the_result() {
    let mut game = game().await;
    game.calls(&[("clarify", json!({"question": "Which?"})), ("look", json!({}))]);
    assert_eq!(game.statuses(), [Waiting, Proposed]);
    assert_eq!(game.state.turn.owner, None);
    answer(&mut game, "that");
    assert_eq!(game.statuses(), [Succeeded, Running]);
    assert!(game.told(0).contains("\"user_response\":\"that\""), "{}", game.told(0));
    // A second answer finds nothing that waits.
    let before = game.events.len();
    answer(&mut game, "other");
    assert_eq!(game.events.len(), before);
}

#[tokio::test]
async fn a_question_that_makes_no_sense_or_that_nobody_hears_is_a_failed_call() {
    let mut game = game().await;
    game.calls(&[("clarify", json!({"question": " "}))]);
    assert_eq!(game.statuses(), [Failed]);
    game.rules.on_ask = OnAsk::Deny;
    game.calls(&[("clarify", json!({"question": "Which?"}))]);
    assert_eq!(game.statuses(), [Failed]);
    assert!(game.state.questions.is_empty());
}

#[tokio::test]
async fn the_end_of_a_turn_closes_what_waits_and_claims_nothing() {
    let mut first = game().await;
    first.calls(&[("clarify", json!({"question": "Which?"}))]);
    let stopped = Outcome::stopped(CancelReason::CancelledByUser);
    first.step(|step| step.end(stopped.clone(), Vec::new(), None));
    assert_eq!(first.statuses(), [Cancelled]);
    assert_eq!(first.state.questions[0].status, QuestionStatus::Cancelled);
    assert!(first.events.contains(&EventType::QuestionCancelled));

    let mut second = game().await;
    second.calls(&[("out", json!({})), ("act", json!({"n": 1})), ("out", json!({"n": 2}))]);
    assert_eq!(second.statuses(), [Waiting, Proposed, Proposed]);
    second.step(|step| step.end(stopped, Vec::new(), None));
    assert_eq!(
        second.statuses(),
        [Unknown, Cancelled, Cancelled],
        "only the first was out"
    );
}

#[tokio::test]
async fn a_takeover_leaves_what_waits_alone() {
    let mut game = game().await;
    game.calls(&[("out", json!({})), ("look", json!({}))]);
    game.step(|step| step.take_over());
    assert_eq!(game.statuses(), [Waiting, Running]);
    game.result(1, done("seen"));
    give(&mut game, 0, "x", false);
    game.answer(said("bye"), true);
    assert!(game.state.turn.status.is_terminal());
}
