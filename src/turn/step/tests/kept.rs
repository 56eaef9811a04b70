//! Notes that a person is to see: whether one waits is settled when it starts.

use serde_json::json;

use super::{Game, done};
use crate::model::approval::OnAsk;
use crate::model::call::CallStatus::{Denied, Running, Waiting};
use crate::model::memory::Target;
use crate::model::session::ApprovalMode;
use crate::tool::memory_entries::{Change, Operation, WRITE_RULE};
use crate::tool::skill::scan::DANGEROUS;
use crate::tool::{Done, ToolWrites};

fn note() -> Done {
    let operations = vec![Operation::Add {
        content: "tea".to_owned(),
    }];
    Done {
        writes: ToolWrites {
            memory: Some(Change {
                target: Target::User,
                operations,
            }),
            ..ToolWrites::default()
        },
        ..done("")
    }
}

#[tokio::test]
async fn a_note_that_started_in_order_to_wait_waits_whatever_the_rules_are_by_then() {
    for (mode, on_ask) in [(ApprovalMode::Off, OnAsk::Wait), (ApprovalMode::Manual, OnAsk::Deny)] {
        let mut game = Game::new().await;
        (game.rules.mode, game.rules.on_ask) = (mode, on_ask);
        game.calls(&[("act", json!({"n": 1, "ask": WRITE_RULE}))]);
        assert_eq!(game.statuses(), [Running]);
        (game.rules.mode, game.rules.on_ask) = (ApprovalMode::Manual, OnAsk::Wait);
        let writes = game.result(0, note());
        assert_eq!(writes.pending.len(), 1, "{mode:?}");
        assert!(game.state.memories.user.is_empty() && game.told(0).contains("staged"));
        assert!(game.state.turn.progress.staged.is_empty());
    }
}

#[tokio::test]
async fn a_note_that_was_let_in_is_made_though_nobody_could_be_asked_by_then() {
    let mut game = Game::new().await;
    game.rules.allowlist = vec![WRITE_RULE.to_owned()];
    game.calls(&[("act", json!({"n": 1, "ask": WRITE_RULE}))]);
    game.rules.on_ask = OnAsk::Deny;
    let writes = game.result(0, note());
    assert!(writes.pending.is_empty());
    assert_eq!(game.state.memories.user, ["tea"]);
}

#[tokio::test]
async fn what_later_sessions_begin_with_is_for_a_person_in_every_mode() {
    for (rule, mode, status) in [
        (DANGEROUS, ApprovalMode::Off, Denied),
        (DANGEROUS, ApprovalMode::Smart, Waiting),
        (WRITE_RULE, ApprovalMode::Smart, Waiting),
        (WRITE_RULE, ApprovalMode::Manual, Waiting),
        ("other", ApprovalMode::Off, Running),
    ] {
        let mut game = Game::new().await;
        game.rules.mode = mode;
        let writes = game.calls(&[("act", json!({"n": 1, "ask": rule}))]);
        assert_eq!(game.statuses(), [status], "{rule} {mode:?}");
        let reviewers: Vec<&str> = writes
            .new_approvals
            .iter()
            .map(|asked| asked.reviewer.as_str())
            .collect();
        assert!(reviewers.iter().all(|reviewer| *reviewer == "human"), "{rule} {mode:?}");
    }
}
