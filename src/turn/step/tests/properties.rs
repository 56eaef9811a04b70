//! Random happenings in any order: the invariants that [`Game`] checks after
//! every step hold, and the turn can always be brought to its end.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{DecisionIn, Partial};
use super::budgets::bounded;
use super::{Game, done, said};
use crate::base::Id;
use crate::model::approval::{ApprovalKind, Choice, OnExpiry};
use crate::model::call::CallStatus;
use crate::model::id::CallId;
use crate::model::turn::{CancelReason, TurnStatus};
use crate::tool::{Done, ToolWrites};
use crate::turn::next::{Next, Outcome, next};

#[derive(Clone, Debug)]
enum Happening {
    /// The model answers, with these calls.
    Answer(Vec<(u8, u8)>),
    /// One running call gives its result, which may move the directory.
    Result(usize, bool),
    /// All running calls do.
    Results,
    Decide(usize, u8, bool),
    Expire(usize),
    TakeOver,
    Cancel,
    /// No new work is begun, or it is again.
    Drain(bool),
    /// Others use up what is left of a budget.
    OthersSpend,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => prop::collection::vec((0u8..5, 0u8..4), 0..5).prop_map(Happening::Answer),
        6 => (0usize..4, any::<bool>()).prop_map(|(place, moves)| Happening::Result(place, moves)),
        2 => Just(Happening::Results),
        6 => (0usize..4, 0u8..4, prop::bool::weighted(0.1)).prop_map(|(place, choice, stop)| Happening::Decide(place, choice, stop)),
        2 => (0usize..4).prop_map(Happening::Expire),
        2 => Just(Happening::TakeOver),
        1 => Just(Happening::Cancel),
        1 => any::<bool>().prop_map(Happening::Drain),
        1 => Just(Happening::OthersSpend),
    ]
}

fn call((name, how): (u8, u8), number: usize) -> (&'static str, Value) {
    let name = ["look", "side", "act", "act", "zzzzzz"][usize::from(name)];
    let arguments = match how {
        0 => json!({"n": number}),
        1 => json!({"n": number, "ask": "k"}),
        2 => json!({"n": number, "away": true}),
        _ => json!({"n": number, "never": number.is_multiple_of(2), "ask": "l"}),
    };
    (name, arguments)
}

fn running(game: &Game) -> Vec<CallId> {
    let calls = game
        .state
        .calls
        .iter()
        .filter(|call| call.status == CallStatus::Running);
    calls.map(|call| call.call_id).collect()
}

/// Makes it happen where the engine could; elsewhere nothing does.
/// What can be answered to an approval of that kind, four of it.
fn choices(kind: ApprovalKind) -> [Choice; 4] {
    match kind {
        ApprovalKind::ToolCall => [Choice::Once, Choice::Session, Choice::Always, Choice::Deny],
        ApprovalKind::Recovery => [Choice::Retry, Choice::Skip, Choice::MarkDone, Choice::Retry],
        ApprovalKind::Budget => [Choice::GrantMore, Choice::GrantMore, Choice::GrantMore, Choice::Stop],
    }
}

fn happen(game: &mut Game, happening: Happening, number: usize) {
    let runs = game.state.turn.status == TurnStatus::Running;
    // Who took a turn over while draining asks no model.
    let asks = runs && game.state.turn.owner.is_some();
    match happening {
        Happening::Answer(calls) if asks && matches!(next(&game.state, 90), Next::CallModel { .. }) => {
            let calls: Vec<_> = calls
                .into_iter()
                .enumerate()
                .map(|(at, one)| call(one, number * 10 + at))
                .collect();
            if calls.is_empty() {
                game.answer(said("done"), true);
            } else {
                game.calls(&calls);
            }
        }
        Happening::Result(place, moves) if runs => {
            if let Some(id) = running(game).get(place).copied() {
                let writes = ToolWrites {
                    cwd: moves.then(|| format!("/data/work/{number}")),
                    ..ToolWrites::default()
                };
                game.step(|step| step.results(vec![(id, Done { writes, ..done("r") })]));
            }
        }
        // Who took a turn over while draining runs nothing and has no results.
        Happening::Results if runs && !running(game).is_empty() => {
            let results = running(game).into_iter().map(|id| (id, done("r"))).collect();
            game.step(|step| step.results(results));
        }
        // Also answers to what is settled already.
        Happening::Decide(place, choice, stop_turn) if !game.state.turn.status.is_terminal() => {
            let asked = game.state.approvals.iter().rev().nth(place);
            if let Some((id, kind)) = asked.map(|approval| (approval.id, approval.kind)) {
                let choice = choices(kind)[usize::from(choice)];
                let stop_turn = stop_turn && choice == Choice::Deny;
                let decision = DecisionIn {
                    choice,
                    reason: None,
                    by: "bob".to_owned(),
                    stop_turn,
                    edit: None,
                    limits: None,
                };
                game.step(|step| step.decide(id, decision));
            }
        }
        Happening::Expire(place) if !game.state.turn.status.is_terminal() => {
            if let Some(id) = game.state.approvals.iter().rev().nth(place).map(|approval| approval.id) {
                game.step(|step| step.expire(id));
            }
        }
        Happening::OthersSpend => {
            for budget in &mut game.state.budgets {
                budget.spent = budget.limit;
            }
        }
        Happening::TakeOver if runs => {
            game.step(|step| step.take_over());
        }
        Happening::Cancel if !game.state.turn.status.is_terminal() => {
            let partial = (
                Id::new(&game.clock),
                Partial {
                    text: "half".to_owned(),
                    reasoning: String::new(),
                },
            );
            let writing = runs && !game.state.has_open_calls();
            let reasons = [
                CancelReason::CancelledByUser,
                CancelReason::Interrupted,
                CancelReason::RolledBack,
            ];
            let reason = reasons[number % 3];
            let outcome = Outcome::stopped(reason);
            game.step(|step| step.end(outcome, Vec::new(), writing.then_some(partial)));
        }
        _ => {}
    }
}

/// Everything is answered and every call gives its result: the turn ends.
fn finish(game: &mut Game) {
    for number in 0..200 {
        match game.state.turn.status {
            status if status.is_terminal() => return,
            TurnStatus::Waiting => happen(game, Happening::Decide(0, 3, false), number),
            _ if !running(game).is_empty() => happen(game, Happening::Results, number),
            _ => match next(&game.state, 90) {
                Next::CallModel { .. } if game.state.turn.owner.is_some() => {
                    happen(game, Happening::Answer(Vec::new()), number);
                }
                _ => happen(game, Happening::TakeOver, number),
            },
        }
        let pending = game.pending();
        if game.state.turn.status == TurnStatus::Waiting
            && let Some(id) = pending.first().copied()
        {
            let decision = DecisionIn {
                choice: Choice::Deny,
                reason: None,
                by: "bob".to_owned(),
                stop_turn: false,
                edit: None,
                limits: None,
            };
            game.step(|step| step.decide(id, decision));
        }
    }
    panic!("stuck: {:?}", game.state);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_in_whatever_order_the_record_stays_sound(
        happenings in prop::collection::vec(happening(), 1..40),
        halt in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut game = runtime.block_on(bounded(1000));
        game.rules.on_expiry = if halt { OnExpiry::Halt } else { OnExpiry::Deny };
        let owner = game.owner;
        for (number, happening) in happenings.into_iter().enumerate() {
            if let Happening::Drain(draining) = happening {
                // The other process that takes over is told apart by nothing here.
                game.draining(draining, owner);
            } else {
                happen(&mut game, happening, number);
            }
        }
        game.draining(false, owner);
        finish(&mut game);
    }
}
