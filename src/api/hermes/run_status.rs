//! A run as the original tells it: what its turn is by now.

use serde_json::{Value, json};

use crate::api::compat::ending::{self, pending};
use crate::api::compat::object::set;
use crate::api::compat::{handed, ids, question};
use crate::model::message::text_of;
use crate::model::record::TurnRecord;
use crate::model::turn::TurnStatus;
use crate::store::Story;

/// The word for where a turn stands.
fn status(turn: &TurnRecord) -> &'static str {
    match turn.status {
        TurnStatus::Queued => "queued",
        TurnStatus::Running | TurnStatus::Waiting if turn.cancel_reason.is_some() => "stopping",
        TurnStatus::Running => "running",
        TurnStatus::Waiting => "waiting_for_approval",
        TurnStatus::Completed => "completed",
        TurnStatus::Failed => "failed",
        TurnStatus::Cancelled => "cancelled",
        TurnStatus::Interrupted | TurnStatus::RolledBack => "interrupted",
    }
}

fn last_event(turn: &TurnRecord) -> Option<&'static str> {
    match turn.status {
        TurnStatus::Queued | TurnStatus::Running => None,
        TurnStatus::Waiting => Some("approval.request"),
        TurnStatus::Completed => Some("run.completed"),
        TurnStatus::Failed => Some("run.failed"),
        TurnStatus::Cancelled | TurnStatus::Interrupted | TurnStatus::RolledBack => Some("run.cancelled"),
    }
}

/// The same with what a waiting turn waits for.
pub(super) fn standing(story: &Story) -> &'static str {
    match status(&story.turn) {
        "waiting_for_approval" if ending::is_at_rest(story) => ending::rest_status(story),
        // Its children work; nobody is asked.
        "waiting_for_approval" => "running",
        other => other,
    }
}

/// The whole of it; fields that say nothing yet are left out, as in the original.
pub(super) fn document(story: &Story, configured: &str) -> Value {
    let turn = &story.turn;
    let run_id = ids::run(turn.turn_id);
    let updated = turn.finished_at.or(turn.started_at).unwrap_or(turn.created_at);
    let model = turn
        .options
        .model
        .as_deref()
        .or(story.session.model.as_deref())
        .unwrap_or(configured);
    let mut run = json!({
        "object": "hermes.run",
        "run_id": run_id,
        "status": standing(story),
        "created_at": question::seconds(turn.created_at),
        "updated_at": question::seconds(updated),
        "session_id": story.session.external_id.clone().unwrap_or_else(|| story.session.id.to_string()),
        "turn_id": turn.turn_id,
        "model": model,
        "last_event": last_event(turn),
    });
    let asked: Vec<Value> = pending(&story.approvals)
        .into_iter()
        .map(|approval| request(&run_id, approval.requested_at, question::request(approval)))
        .collect();
    if let Some(first) = asked.first() {
        set(&mut run, "approval", first.clone());
        set(&mut run, "approvals", json!(asked));
    }
    let questions: Vec<Value> = ending::questions(story).into_iter().map(handed::question).collect();
    if let Some(first) = questions.first() {
        set(&mut run, "clarification", first.clone());
        set(&mut run, "clarifications", json!(questions));
    }
    let calls = handed::client_calls(story);
    if !calls.is_empty() {
        set(&mut run, "tool_calls", json!(calls));
    }
    if !turn.steers.is_empty() {
        let steers: Vec<String> = turn.steers.iter().map(|steer| text_of(&steer.input)).collect();
        set(&mut run, "pending_steer", json!(steers.join("\n")));
    }
    if turn.status.is_terminal() {
        set(&mut run, "usage", ending::usage(&turn.usage));
        match turn.status {
            TurnStatus::Completed => set(
                &mut run,
                "output",
                json!(ending::last_text(&story.messages).unwrap_or_default()),
            ),
            _ => set(&mut run, "error", json!(ending::why(&turn.view()))),
        }
    }
    run
}

/// An approval as an event of its run.
pub(super) fn request(run_id: &str, at: crate::base::Timestamp, mut approval: Value) -> Value {
    set(&mut approval, "event", json!("approval.request"));
    set(&mut approval, "run_id", json!(run_id));
    set(&mut approval, "timestamp", json!(question::seconds(at)));
    approval
}
