//! Budgets: what is counted, when somebody is warned and asked, and what follows
//! from each answer.

use serde_json::json;

use super::super::DecisionIn;
use super::{Game, done, said};
use crate::model::approval::{ApprovalKind, ApprovalStatus, Choice, OnAsk, OnExpiry};
use crate::model::budget::{Budget, BudgetScope, BudgetUnit, Ceiling};
use crate::model::event::EventType;
use crate::model::record::Writes;
use crate::model::turn::{CancelReason, StopReason, TurnStatus};
use crate::model::usage::{Prices, Spent, TokenUsage};
use crate::provider::{Answer, Call, Finish};
use crate::turn::next::{Next, Outcome, next};

/// A budget of the turn in tokens.
pub(super) async fn bounded(limit: u64) -> Game {
    let mut game = Game::new().await;
    let (scope, unit) = (BudgetScope::Turn, BudgetUnit::Tokens);
    game.rules.budgets.ceilings = vec![Ceiling { scope, unit, limit }];
    game.state.budgets = vec![Budget {
        scope,
        unit,
        limit,
        spent: 0,
    }];
    game
}

fn tokens(input: u64, output: u64) -> Option<TokenUsage> {
    Some(TokenUsage {
        input,
        output,
        ..TokenUsage::default()
    })
}

/// An answer that calls `look`, and its result: what follows is a model call.
fn round(game: &mut Game, input: u64, output: u64) -> Writes {
    let answer = Answer {
        calls: vec![Call {
            id: "c".to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
        }],
        finish: Finish::ToolCalls,
        usage: tokens(input, output),
        ..said("")
    };
    let mut writes = game.answer(answer, true);
    writes.append(game.result(0, done("seen")));
    writes
}

fn kinds(writes: &Writes) -> Vec<EventType> {
    writes.events.iter().map(|event| event.kind).collect()
}

fn decide(game: &mut Game, choice: Choice) -> Writes {
    let id = game.pending()[0];
    let decision = DecisionIn {
        choice,
        reason: None,
        by: "bob".to_owned(),
        stop_turn: false,
        edit: None,
    };
    game.step(|step| step.decide(id, decision))
}

#[tokio::test]
async fn every_call_is_a_row_and_counts_for_turn_and_session_at_once() {
    let mut game = Game::new().await;
    let writes = round(&mut game, 10, 5);
    let told = writes
        .events
        .iter()
        .filter(|event| event.kind == EventType::UsageUpdated);
    let told: Vec<_> = told
        .map(|event| event.data["session"]["input_tokens"].clone())
        .collect();
    assert_eq!(told, [10]);
    assert_eq!(writes.usage.len(), 1);
    assert_eq!(writes.usage[0].user_id, "alice");
    let writes = game.answer(
        Answer {
            usage: tokens(20, 1),
            ..said("bye")
        },
        true,
    );
    let last = kinds(&writes);
    assert!(
        last.ends_with(&[
            EventType::MessageCompleted,
            EventType::UsageUpdated,
            EventType::TurnCompleted,
            EventType::SessionStatus
        ]),
        "{last:?}"
    );
    for usage in [game.state.turn.usage, game.state.session.usage] {
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.steps), (30, 6, 2));
    }
}

#[tokio::test]
async fn a_warning_comes_once_at_its_share() {
    let mut game = bounded(1000).await;
    assert!(!kinds(&round(&mut game, 100, 600)).contains(&EventType::BudgetWarning));
    assert!(
        kinds(&round(&mut game, 100, 0)).contains(&EventType::BudgetWarning),
        "800 of 1000"
    );
    assert!(!kinds(&round(&mut game, 100, 0)).contains(&EventType::BudgetWarning));
    assert_eq!(game.state.turn.status, TurnStatus::Running);
}

#[tokio::test]
async fn at_the_ceiling_the_next_call_waits_and_goes_on_with_what_was_stated() {
    let mut game = bounded(1000).await;
    let writes = round(&mut game, 100, 1000);
    let asked = kinds(&writes);
    let place = |kind| asked.iter().position(|own| *own == kind).unwrap();
    assert!(place(EventType::BudgetWarning) < place(EventType::BudgetExceeded));
    assert!(place(EventType::BudgetExceeded) < place(EventType::ApprovalRequested));
    assert_eq!(game.state.turn.status, TurnStatus::Waiting);
    let approval = game.state.pending().next().unwrap().clone();
    assert_eq!((approval.kind, approval.tool_call_id), (ApprovalKind::Budget, None));
    assert_eq!(approval.choices, [Choice::GrantMore, Choice::Stop]);
    // Half of the ceiling beyond the 1100 that are spent and the 100 to come.
    assert_eq!(
        approval.arguments,
        json!({"budgets": [{"scope": "turn", "unit": "tokens", "limit": 1000, "spent": 1100, "add": 700}]})
    );
    assert_eq!(
        approval.title,
        "budget: turn used 1100 tokens of 1000 tokens, grant 700 tokens more?"
    );
    let writes = decide(&mut game, Choice::GrantMore);
    let grant = &writes.budget_grants[0];
    assert_eq!(
        (grant.subject.clone(), grant.add),
        (game.state.turn.turn_id.to_string(), 700)
    );
    assert_eq!(game.state.turn.status, TurnStatus::Running);
    assert_eq!(next(&game.state, 90), Next::CallModel { with_tools: true });
    assert_eq!(game.state.budgets[0].limit, 1700);
    // The next ceiling warns and asks anew.
    let again = kinds(&round(&mut game, 300, 300));
    assert!(again.contains(&EventType::BudgetWarning) && again.contains(&EventType::ApprovalRequested));
    assert_eq!(game.state.approvals.len(), 2);
}

#[tokio::test]
async fn a_call_that_is_known_to_cross_the_line_is_not_made() {
    for (output, status) in [(0, TurnStatus::Running), (1, TurnStatus::Waiting)] {
        let mut game = bounded(1000).await;
        // The same 500 will be sent again.
        round(&mut game, 500, output);
        assert_eq!(game.state.turn.status, status, "{output}");
    }
}

#[tokio::test]
async fn stop_ends_the_turn_with_a_valid_transcript() {
    let mut game = bounded(100).await;
    round(&mut game, 100, 0);
    decide(&mut game, Choice::Stop);
    assert_eq!(game.state.turn.status, TurnStatus::Completed);
    assert_eq!(game.state.turn.stop_reason, Some(StopReason::Budget));
    assert_eq!(game.said_last(), "[The turn ended here: its budget is used up.]");
    let settled: Vec<_> = game.approvals.values().copied().collect();
    assert_eq!(settled, [ApprovalStatus::Denied]);
}

#[tokio::test]
async fn silence_stops_the_turn_as_its_rules_say() {
    for (on_expiry, status, reason) in [
        (OnExpiry::Deny, TurnStatus::Completed, StopReason::Budget),
        (OnExpiry::Halt, TurnStatus::Cancelled, StopReason::ApprovalExpired),
    ] {
        let mut game = bounded(100).await;
        game.rules.on_expiry = on_expiry;
        game.rules.approval_timeout_ms = 1000;
        round(&mut game, 100, 0);
        let id = game.pending()[0];
        assert!(game.state.pending().next().unwrap().expires_at.is_some());
        game.step(|step| step.expire(id));
        assert_eq!(
            (game.state.turn.status, game.state.turn.stop_reason),
            (status, Some(reason))
        );
    }
}

#[tokio::test]
async fn an_unattended_turn_ends_at_the_ceiling() {
    let mut game = bounded(100).await;
    game.rules.on_ask = OnAsk::Deny;
    let kinds = kinds(&round(&mut game, 100, 0));
    assert!(kinds.contains(&EventType::BudgetExceeded) && !kinds.contains(&EventType::ApprovalRequested));
    assert_eq!(game.state.turn.stop_reason, Some(StopReason::Budget));
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_is_paid_for_and_may_be_the_last() {
    let mut game = bounded(100).await;
    let problem = crate::model::problem::Problem::new(crate::model::problem::ProblemCode::ModelAnswerInvalid, "empty");
    let retry = |game: &mut Game, used| {
        let spent = Spent::in_turn("m", tokens(used, 0), &Prices::default());
        game.step(|step| step.retrying(1, std::time::Duration::ZERO, &problem, Some(spent)))
    };
    assert_eq!(retry(&mut game, 20).usage.len(), 1);
    assert_eq!(game.state.turn.status, TurnStatus::Running);
    retry(&mut game, 50);
    assert_eq!(
        game.state.turn.status,
        TurnStatus::Waiting,
        "another 50 would cross the line"
    );
    assert_eq!((game.state.turn.usage.steps, game.state.turn.progress.steps), (2, 0));
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_paid_for() {
    let mut game = Game::new().await;
    let spent = Spent::in_turn("m", tokens(20, 3), &Prices::default());
    let writes = game.step(|step| {
        step.spend(spent);
        step.end(Outcome::stopped(CancelReason::CancelledByUser), Vec::new(), None);
    });
    assert_eq!((writes.usage.len(), game.state.session.usage.input_tokens), (1, 20));
    let told = kinds(&writes);
    let told = told.iter().filter(|kind| **kind == EventType::UsageUpdated);
    assert_eq!(told.count(), 1);
}

#[tokio::test]
async fn more_for_a_day_is_for_the_day_that_was_asked_about() {
    let mut game = bounded(100).await;
    game.rules.budgets.ceilings[0].scope = BudgetScope::Day;
    game.state.budgets[0].scope = BudgetScope::Day;
    let day = game.clock.now().day();
    round(&mut game, 100, 0);
    game.clock.step(std::time::Duration::from_secs(86_400));
    let writes = decide(&mut game, Choice::GrantMore);
    assert_eq!(writes.budget_grants[0].subject, format!("day:{day}"));
    // The record said so; a new day is read anew by the next transaction.
    assert_eq!(game.state.budgets[0].limit, 100);
}

#[tokio::test]
async fn a_turn_that_begins_with_nothing_left_asks_before_its_first_call() {
    let mut game = bounded(100).await;
    game.state.budgets[0].spent = 100;
    let id = crate::base::Id::new(&game.clock);
    game.state.turn = crate::model::record::TurnRecord {
        turn_id: id,
        ..super::turn(&game.clock)
    };
    (game.state.approvals, game.events) = (Vec::new(), Vec::new());
    game.step(|step| step.begin_new());
    assert_eq!(game.state.turn.status, TurnStatus::Waiting);
    assert_eq!(
        game.events,
        [
            EventType::TurnStarted,
            EventType::MessageCompleted,
            EventType::BudgetExceeded,
            EventType::ApprovalRequested,
            EventType::TurnWaiting,
            EventType::SessionStatus
        ]
    );
}
