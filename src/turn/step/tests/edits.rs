//! Arguments that a person put in the place of a model's.

use serde_json::{Value, json};

use super::super::{DecisionIn, Edit};
use super::cases::decision;
use super::{Game, done};
use crate::model::approval::{ApprovalStatus, Choice};
use crate::model::call::CallStatus::{Denied, Running, Succeeded, Waiting};
use crate::model::problem::{Problem, ProblemCode};
use crate::tool::{Done, ToolWrites};

/// What the newest pending approval would make of these arguments.
fn try_edit(game: &mut Game, arguments: Value) -> Result<Edit, Problem> {
    let approval = game.state.pending().last().unwrap().clone();
    let Value::Object(arguments) = arguments else {
        panic!("no object: {arguments}")
    };
    let mut edit = None;
    let writes = game.step(|step| edit = Some(step.edit(&approval, arguments)));
    assert!(writes.events.is_empty() && writes.calls.is_empty(), "nothing changes");
    edit.unwrap()
}

fn allow(game: &mut Game, edit: Edit) {
    let id = game.state.pending().last().unwrap().id;
    let once = DecisionIn {
        edit: Some(edit),
        ..decision(Choice::Once)
    };
    game.step(|step| step.decide(id, once));
}

#[tokio::test]
async fn an_edited_call_runs_with_the_new_arguments_and_the_model_is_told_first() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1, "ask": "k"}))]);
    let before = game.state.approvals[0].clone();
    let edit = try_edit(&mut game, json!({"n": "2"})).unwrap();
    allow(&mut game, edit);
    assert_eq!(game.statuses(), [Running]);
    let call = &game.state.calls[0];
    assert_eq!(call.effective_arguments(), &json!({"n": 2}), "coerced like the model's");
    assert_eq!(call.arguments, json!({"n": 1, "ask": "k"}), "the original stays");
    let approval = &game.state.approvals[0];
    assert_eq!(
        (&approval.arguments, &approval.digest),
        (&before.arguments, &before.digest)
    );
    assert!(approval.decision.as_ref().unwrap().edited);
    game.result(0, done("ran"));
    let told = game.told(0);
    let (note, result) = told.split_once('\n').unwrap();
    let note: Value = serde_json::from_str(note).unwrap();
    assert_eq!(
        (&note["arguments"], &note["arguments_changed_by"]),
        (&json!({"n": 2}), &json!("user"))
    );
    assert_eq!(result, "ran");
}

#[tokio::test]
async fn an_edit_that_would_itself_be_asked_about_is_covered_by_the_same_answer() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1, "ask": "k"}))]);
    let edit = try_edit(&mut game, json!({"n": 1, "ask": "other"})).unwrap();
    allow(&mut game, edit);
    assert_eq!(game.statuses(), [Running]);
    assert!(game.grants.is_empty());
}

#[tokio::test]
async fn no_edit_leads_into_the_floor_or_past_the_schema() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1, "ask": "k"}))]);
    let never = try_edit(&mut game, json!({"n": 1, "never": true})).unwrap_err();
    assert_eq!(never.code, ProblemCode::EditNotAllowed);
    for (wrong, pointer) in [(json!({}), "/arguments/n"), (json!({"n": "many"}), "/arguments/n")] {
        let invalid = try_edit(&mut game, wrong).unwrap_err();
        assert_eq!(
            (invalid.code, invalid.errors[0].pointer.as_str()),
            (ProblemCode::EditInvalid, pointer)
        );
    }
    assert_eq!(game.statuses(), [Waiting]);
}

#[tokio::test]
async fn a_moved_directory_supersedes_an_edit_too_and_shows_the_edited_arguments() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1})), ("act", json!({"n": 2, "ask": "k"}))]);
    let edit = try_edit(&mut game, json!({"n": 3, "ask": "k"})).unwrap();
    allow(&mut game, edit);
    let writes = ToolWrites {
        cwd: Some("/data/work/sub".to_owned()),
        ..ToolWrites::default()
    };
    game.result(0, Done { writes, ..done("cd") });
    assert_eq!(game.statuses(), [Succeeded, Waiting]);
    assert_eq!(game.state.approvals[0].status, ApprovalStatus::Superseded);
    assert_eq!(game.state.approvals[1].arguments, json!({"n": 3, "ask": "k"}));
    let id = game.pending()[0];
    game.step(|step| step.decide(id, decision(Choice::Deny)));
    assert_eq!(game.statuses(), [Succeeded, Denied]);
    assert!(
        !game.told(1).contains("arguments_changed_by"),
        "it never ran: {}",
        game.told(1)
    );
}

#[tokio::test]
async fn a_long_edit_is_repeated_in_part() {
    let mut game = Game::new().await;
    game.calls(&[("act", json!({"n": 1, "ask": "k"}))]);
    let edit = try_edit(&mut game, json!({"n": 1, "text": "x".repeat(20_000)})).unwrap();
    allow(&mut game, edit);
    game.result(0, done("ran"));
    let told = game.told(0);
    assert!(
        told.contains("arguments_beginning") && told.len() < 10_000,
        "{}",
        told.len()
    );
}
