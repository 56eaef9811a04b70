//! Single cases: what each kind of happening writes.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{DecisionIn, Partial};
use super::{Game, done, said};
use crate::base::Id;
use crate::model::approval::{ApprovalStatus, Choice, OnAsk, OnExpiry};
use crate::model::call::CallStatus::{Cancelled, Denied, Failed, Proposed, Running, Succeeded, Unknown, Waiting};
use crate::model::event::EventType;
use crate::model::session::ApprovalMode;
use crate::model::turn::{CancelReason, StopReason, TurnStatus};
use crate::provider::{Answer, Finish};
use crate::tool::{Done, ToolWrites};
use crate::turn::next::{MAX_RECOVERIES, Outcome};

pub(super) fn decision(choice: Choice) -> DecisionIn {
    DecisionIn {
        choice,
        reason: None,
        by: "bob".to_owned(),
        stop_turn: false,
        edit: None,
        limits: None,
    }
}

fn decide(game: &mut Game, place: usize, choice: Choice) {
    let id = game.pending()[place];
    game.step(|step| step.decide(id, decision(choice)));
}

#[tokio::test]
async fn exact_repetitions_are_dropped_and_others_are_not() {
    let mut game = Game::new().await;
    game.calls(&[
        ("look", json!({"n": 1})),
        ("look", json!({"n": 1})),
        ("look", json!({"n": 2})),
    ]);
    assert_eq!(game.statuses(), [Running, Running]);
}

#[tokio::test]
async fn unknown_tools_and_bad_arguments_get_errors_while_siblings_run() {
    let mut game = Game::new().await;
    game.calls(&[
        ("zzzzzz", json!({})),
        ("look", json!({})),
        ("act", json!({})),
        ("act", Value::from("no json")),
        ("act", json!({"n": 1})),
    ]);
    assert_eq!(game.statuses(), [Failed, Running, Failed, Failed, Proposed]);
    assert!(game.told(0).contains("Unknown tool: zzzzzz"), "{}", game.told(0));
    assert!(
        game.told(2).contains("missing required argument `n`"),
        "{}",
        game.told(2)
    );
    assert!(game.told(3).contains("Invalid tool arguments"), "{}", game.told(3));
    game.result(1, done("seen"));
    assert_eq!(game.statuses()[4], Running, "the last one alone, after those before it");
}

#[tokio::test]
async fn three_rounds_of_nothing_but_unknown_tools_fail_the_turn_and_a_good_one_starts_the_count_anew() {
    let mut game = Game::new().await;
    let unknown = [("zzzzzz", json!({}))];
    game.calls(&unknown);
    game.calls(&unknown);
    game.calls(&[("look", json!({}))]);
    game.result(0, done("seen"));
    game.calls(&unknown);
    game.calls(&unknown);
    assert_eq!(game.state.turn.status, TurnStatus::Running);
    game.calls(&unknown);
    assert_eq!(game.state.turn.stop_reason, Some(StopReason::Error));
}

#[tokio::test]
async fn at_the_limit_of_steps_only_a_summary_is_wanted() {
    let mut game = Game::new().await;
    game.rules.max_steps = 1;
    game.calls(&[("look", json!({}))]);
    game.result(0, done("seen"));
    // Calls of the summary do not count.
    let calls = vec![crate::provider::Call {
        id: "c".to_owned(),
        name: "act".to_owned(),
        arguments: "{\"n\":1}".to_owned(),
    }];
    game.answer(
        Answer {
            calls,
            ..said("all in all")
        },
        false,
    );
    assert_eq!(game.state.turn.status, TurnStatus::Completed);
    assert_eq!(game.state.turn.stop_reason, Some(StopReason::MaxSteps));
    assert_eq!(game.said_last(), "all in all");
}

#[tokio::test]
async fn a_cut_answer_is_continued_four_times_at_most() {
    let mut game = Game::new().await;
    for _ in 0..4 {
        game.answer(
            Answer {
                finish: Finish::Length,
                ..said("and")
            },
            true,
        );
        assert_eq!(game.state.turn.status, TurnStatus::Running);
    }
    game.answer(
        Answer {
            finish: Finish::Length,
            ..said("and")
        },
        true,
    );
    assert_eq!(game.state.turn.status, TurnStatus::Completed);
}

#[tokio::test]
async fn sequential_calls_follow_one_another_in_the_commit_of_the_result() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1})), ("act", json!({"n": 2}))]);
    assert_eq!(game.statuses(), [Running, Proposed]);
    let writes = game.result(0, done("one"));
    let kinds: Vec<EventType> = writes.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventType::ToolCallCompleted, EventType::ToolCallStarted]);
}

#[tokio::test]
async fn a_second_result_of_a_call_is_ignored() {
    let mut game = Game::new().await;
    game.calls(&[("side", json!({"n": 1})), ("side", json!({"n": 2}))]);
    game.result(0, done("one"));
    let writes = game.result(0, done("once more"));
    assert!(writes.messages.is_empty());
    assert_eq!(game.told(0), "one");
}

#[tokio::test]
async fn a_turn_parks_when_only_decisions_are_missing_and_wakes_with_the_call_started() {
    let mut game = Game::new().await;
    let epoch = game.state.turn.epoch;
    game.calls(&[("act", json!({"n": 1, "ask": "k"}))]);
    assert_eq!(game.state.turn.status, TurnStatus::Waiting);
    decide(&mut game, 0, Choice::Once);
    assert_eq!(game.statuses(), [Running]);
    assert_eq!(game.state.turn.epoch, epoch + 1, "another owner");
    let resumed = game
        .events
        .iter()
        .position(|kind| *kind == EventType::TurnResumed)
        .unwrap();
    let started = game
        .events
        .iter()
        .position(|kind| *kind == EventType::ToolCallStarted)
        .unwrap();
    assert!(resumed < started);
}

#[tokio::test]
async fn an_early_answer_is_kept_until_the_earlier_sibling_is_settled() {
    let mut game = Game::new().await;
    game.calls(&[
        ("act", json!({"n": 1, "ask": "k"})),
        ("act", json!({"n": 2, "ask": "l"})),
    ]);
    decide(&mut game, 1, Choice::Once);
    assert_eq!(game.statuses(), [Waiting, Proposed]);
    assert_eq!(game.state.turn.status, TurnStatus::Waiting, "still parked");
    decide(&mut game, 0, Choice::Deny);
    assert_eq!(game.statuses(), [Denied, Running]);
}

#[tokio::test]
async fn siblings_run_while_one_waits_for_a_person() {
    let mut game = Game::new().await;
    game.calls(&[("side", json!({"n": 1})), ("side", json!({"n": 2, "ask": "k"}))]);
    assert_eq!(game.statuses(), [Running, Waiting]);
    decide(&mut game, 0, Choice::Once);
    assert_eq!(game.statuses(), [Running, Running]);
    assert!(
        !game.events.contains(&EventType::TurnResumed),
        "it never stopped running"
    );
}

#[tokio::test]
async fn a_moved_directory_supersedes_the_answer_and_asks_anew() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1})), ("act", json!({"n": 2, "ask": "k"}))]);
    decide(&mut game, 0, Choice::Once);
    assert_eq!(game.statuses(), [Running, Proposed]);
    let writes = ToolWrites {
        cwd: Some("/data/work/sub".to_owned()),
        ..ToolWrites::default()
    };
    game.result(0, Done { writes, ..done("cd") });
    assert_eq!(
        game.statuses(),
        [Succeeded, Waiting],
        "what was allowed was another place"
    );
    assert_eq!(game.state.approvals[0].status, ApprovalStatus::Superseded);
    assert_eq!(game.state.approvals[1].cwd.as_deref(), Some("/data/work/sub"));
    decide(&mut game, 0, Choice::Once);
    assert_eq!(game.statuses(), [Succeeded, Running]);
}

#[tokio::test]
async fn a_call_that_was_harmless_is_asked_about_when_the_world_moved() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1})), ("act", json!({"n": 2, "away": true}))]);
    assert!(game.pending().is_empty());
    let writes = ToolWrites {
        cwd: Some("/data/work/elsewhere".to_owned()),
        ..ToolWrites::default()
    };
    game.result(0, Done { writes, ..done("cd") });
    assert_eq!(game.statuses(), [Succeeded, Waiting]);
}

#[tokio::test]
async fn a_grant_covers_its_keys_and_nothing_else_and_settles_nothing_that_pends() {
    let mut game = Game::new().await;
    game.calls(&[
        ("side", json!({"n": 1, "ask": "k"})),
        ("side", json!({"n": 2, "ask": "k"})),
    ]);
    decide(&mut game, 0, Choice::Session);
    assert_eq!(game.statuses(), [Running, Waiting], "the sibling was asked before");
    decide(&mut game, 0, Choice::Deny);
    game.result(0, done("one"));
    game.calls(&[
        ("side", json!({"n": 3, "ask": "k"})),
        ("side", json!({"n": 4, "ask": "other"})),
    ]);
    assert_eq!(game.statuses(), [Running, Waiting]);
    game.grants[0].revoked_at = Some(game.clock.now());
    decide(&mut game, 0, Choice::Deny);
    game.result(0, done("two"));
    game.calls(&[("side", json!({"n": 5, "ask": "k"}))]);
    assert_eq!(game.statuses(), [Waiting], "a revoked grant is none");
}

#[tokio::test]
async fn mode_off_and_the_allowlist_ask_nobody_and_never_stays_never() {
    let mut game = Game::new().await;
    game.rules.allowlist = vec!["k".to_owned()];
    game.calls(&[
        ("side", json!({"n": 1, "ask": "k"})),
        ("side", json!({"n": 2, "never": true})),
    ]);
    assert_eq!(game.statuses(), [Running, Denied]);
    game.result(0, done("one"));
    game.rules.allowlist.clear();
    game.rules.mode = ApprovalMode::Off;
    game.calls(&[
        ("side", json!({"n": 3, "ask": "k"})),
        ("side", json!({"n": 4, "never": true})),
    ]);
    assert_eq!(game.statuses(), [Running, Denied]);
    assert!(game.approvals.is_empty());
}

#[tokio::test]
async fn where_nobody_answers_the_call_is_refused_at_once() {
    let mut game = Game::new().await;
    game.rules.on_ask = OnAsk::Deny;
    game.calls(&[("act", json!({"n": 1, "ask": "k"}))]);
    assert_eq!(game.statuses(), [Denied]);
    assert!(game.told(0).contains("nobody is there"), "{}", game.told(0));
    assert_eq!(game.state.turn.status, TurnStatus::Running, "the model is told");
}

#[tokio::test]
async fn silence_denies_or_halts_as_the_rules_say() {
    for (on_expiry, status) in [
        (OnExpiry::Deny, TurnStatus::Running),
        (OnExpiry::Halt, TurnStatus::Cancelled),
    ] {
        let mut game = Game::new().await;
        game.rules.on_expiry = on_expiry;
        game.rules.approval_timeout_ms = 1000;
        game.calls(&[("act", json!({"n": 1, "ask": "k"})), ("act", json!({"n": 2}))]);
        let id = game.pending()[0];
        assert_eq!(
            game.state.approvals[0].expires_at,
            Some(game.clock.now().after(Duration::from_secs(1)))
        );
        game.step(|step| step.expire(id));
        assert_eq!(game.state.turn.status, status);
        assert_eq!(game.statuses()[0], Denied);
        let writes = game.step(|step| step.decide(id, decision(Choice::Once)));
        assert!(writes.events.is_empty(), "too late");
    }
}

#[tokio::test]
async fn a_denial_may_stop_the_turn_and_its_siblings() {
    let mut game = Game::new().await;
    game.calls(&[
        ("side", json!({"n": 1})),
        ("side", json!({"n": 2, "ask": "k"})),
        ("act", json!({"n": 3})),
    ]);
    let id = game.pending()[0];
    let stop = DecisionIn {
        stop_turn: true,
        reason: Some("no".to_owned()),
        ..decision(Choice::Deny)
    };
    game.step(|step| step.decide(id, stop));
    assert_eq!(game.statuses(), [Unknown, Denied, Cancelled]);
    assert_eq!(game.state.turn.stop_reason, Some(StopReason::Denied));
    assert!(game.told(1).contains("\"reason\":\"no\""), "{}", game.told(1));
}

#[tokio::test]
async fn a_takeover_runs_reads_again_and_reports_other_effects_as_unknown() {
    let mut game = Game::new().await;
    game.calls(&[("look", json!({})), ("side", json!({"n": 1})), ("act", json!({"n": 2}))]);
    assert_eq!(game.statuses(), [Running, Running, Proposed]);
    game.step(|step| step.take_over());
    assert_eq!(game.statuses(), [Running, Unknown, Proposed]);
    game.result(0, done("seen"));
    assert_eq!(game.statuses(), [Succeeded, Unknown, Running]);
}

#[tokio::test]
async fn a_turn_that_is_taken_over_again_and_again_without_progress_is_given_up() {
    let mut game = Game::new().await;
    for _ in 0..MAX_RECOVERIES {
        game.step(|step| step.take_over());
        assert_eq!(game.state.turn.status, TurnStatus::Running);
    }
    game.calls(&[("look", json!({}))]);
    game.step(|step| step.take_over());
    assert_eq!(
        game.state.turn.status,
        TurnStatus::Running,
        "a step was stored: counted anew"
    );
    for _ in 0..MAX_RECOVERIES {
        game.step(|step| step.take_over());
    }
    assert_eq!(game.state.turn.stop_reason, Some(StopReason::RecoveryExhausted));
}

#[tokio::test]
async fn without_an_owner_nothing_starts_and_a_successor_starts_it() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1, "ask": "k"}))]);
    let owner = game.owner.take();
    decide(&mut game, 0, Choice::Once);
    assert_eq!(game.statuses(), [Proposed]);
    assert_eq!(game.state.turn.status, TurnStatus::Running);
    game.owner = owner;
    game.step(|step| step.take_over());
    assert_eq!(game.statuses(), [Running]);
}

#[tokio::test]
async fn kept_results_start_nothing() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1})), ("act", json!({"n": 2}))]);
    let id = game.id(0);
    game.step(|step| step.keep(vec![(id, done("one"))]));
    assert_eq!(game.statuses(), [Succeeded, Proposed]);
    game.step(|step| step.take_over());
    assert_eq!(game.statuses(), [Succeeded, Running]);
}

#[tokio::test]
async fn a_cancel_keeps_results_and_text_and_closes_the_rest() {
    let mut game = Game::new().await;
    game.calls(&[
        ("side", json!({"n": 1})),
        ("side", json!({"n": 2})),
        ("act", json!({"n": 3, "ask": "k"})),
    ]);
    let kept = vec![(game.id(0), done("one"))];
    let outcome = Outcome::cancelled(StopReason::CancelledByUser);
    game.step(|step| step.end(outcome, kept, None));
    assert_eq!(game.statuses(), [Succeeded, Unknown, Cancelled]);
    assert_eq!(game.state.approvals[0].status, ApprovalStatus::Cancelled);

    let mut game = Game::new().await;
    let partial = Partial {
        text: "half a sen".to_owned(),
        reasoning: String::new(),
    };
    let id = Id::new(&game.clock);
    game.step(|step| {
        step.end(
            Outcome::cancelled(StopReason::CancelledByUser),
            Vec::new(),
            Some((id, partial)),
        );
    });
    assert_eq!(game.said_last(), "half a sen");
}

#[tokio::test]
async fn parked_time_does_not_count() {
    let mut game = Game::new().await;
    game.clock.step(Duration::from_secs(2));
    game.calls(&[("act", json!({"n": 1, "ask": "k"}))]);
    game.clock.step(Duration::from_secs(3600));
    decide(&mut game, 0, Choice::Once);
    game.clock.step(Duration::from_secs(1));
    game.result(0, done("one"));
    game.answer(said("done"), true);
    assert_eq!(game.state.turn.active_ms, 3000);
}

#[tokio::test]
async fn a_message_in_place_of_a_decision_closes_what_was_asked_and_allows_nothing() {
    let mut game = Game::new().await;
    game.calls(&[
        ("side", json!({"n": 1})),
        ("side", json!({"n": 2, "ask": "k"})),
        ("act", json!({"n": 3})),
    ]);
    // While the first call is still being stopped.
    game.step(|step| {
        step.supersede_pending("bob", "no, do this instead");
        step.tell_session();
    });
    assert_eq!(game.statuses(), [Running, Cancelled, Proposed]);
    let closed = &game.state.approvals[0];
    assert_eq!(closed.status, ApprovalStatus::Superseded);
    let decision = closed.decision.as_ref().unwrap();
    assert_eq!(decision.reason.as_deref(), Some("no, do this instead"));
    assert!(!decision.choice.allows());
    let outcome = Outcome::stopped(CancelReason::Interrupted);
    game.step(|step| step.end(outcome, Vec::new(), None));
    assert_eq!(game.statuses(), [Unknown, Cancelled, Cancelled]);
    assert_eq!(game.state.turn.status, TurnStatus::Interrupted);
}
