//! What children came to, as the parent's model reads it: one result for all
//! tasks of a call, made from the children's own rows.

use serde_json::{Value, json};

use crate::base::Timestamp;
use crate::base::text::first_chars;
use crate::model::artifact::Kept;
use crate::model::id::{CallId, SessionId};
use crate::model::lineage::{Lineage, Subagent};
use crate::model::message::text_of;
use crate::model::record::{SessionRecord, TurnRecord};
use crate::model::turn::{StopReason, TurnStatus};
use crate::store::{Rows, StoreError};
use crate::tool::file_views::{FileKey, FileViews};
use crate::tool::{budget, dispatch};
use crate::turn::engine::Engine;
use crate::turn::state::State;

/// Characters that a child's report has at least, however full the parent's window
/// is (Hermes).
const SUMMARY_FLOOR: usize = 2_000;
/// Files of a child, and of what worked for it, that are looked at: those written last.
const MOST_WRITTEN: u32 = 200;
/// Characters of a token, about.
const TOKEN_CHARS: usize = 4;

/// What a session is told whose work is never carried on behind its back.
const NOTE: &str = "The children worked while this call waited: this session has no delivery in the background.";

/// What a call with children comes to.
#[derive(Clone)]
pub(super) struct Report {
    pub(super) text: String,
    /// The reports that it shows in part, whole.
    pub(super) kept: Vec<Kept>,
}

/// The child as its parent's log tells of it.
pub(super) fn of_child(child: &State, lineage: &Lineage) -> Subagent {
    let State { session, turn, .. } = child;
    Subagent {
        tool_call_id: lineage.tool_call_id,
        session_id: session.session_id,
        turn_id: turn.turn_id,
        index: lineage.index,
        goal: text_of(&turn.input),
        role: lineage.role,
        status: turn.status,
        usage: turn.usage,
    }
}

/// The result of the call; `None` while a child is not done.
pub(super) async fn of_call(
    rows: &mut Rows<'_>,
    engine: &Engine,
    parent: &State,
    call: CallId,
) -> Result<Option<Report>, StoreError> {
    let mut turns: Vec<(SessionRecord, TurnRecord)> = Vec::new();
    for child in rows.children_of(call).await? {
        let Some(turn) = rows.turns(child.session_id, None, None, 1).await?.pop() else {
            continue;
        };
        if !turn.status.is_terminal() {
            return Ok(None);
        }
        turns.push((child, turn));
    }
    turns.sort_by_key(|(child, _)| child.lineage.as_ref().map_or(0, |lineage| lineage.index));
    let room = room(engine, parent, turns.len());
    let (mut results, mut kept) = (Vec::with_capacity(turns.len()), Vec::new());
    for (child, turn) in &turns {
        let mut result = one(rows, engine, (child, turn), room, &mut kept).await?;
        let stale = stale(rows, engine, parent, child).await?;
        if let Some(fields) = result.as_object_mut().filter(|_| !stale.is_empty()) {
            fields.insert("stale_paths".to_owned(), stale.into());
        }
        results.push(result);
    }
    let began = turns.iter().filter_map(|(_, turn)| turn.started_at).min();
    let ended = turns.iter().filter_map(|(_, turn)| turn.finished_at).max();
    let mut report = json!({"results": results, "total_duration_seconds": seconds(began, ended)});
    // The original's children work on in the background where a person talks to it.
    if let (None, Some(fields)) = (&parent.session.lineage, report.as_object_mut()) {
        fields.insert("note".to_owned(), NOTE.into());
    }
    let text = report.to_string();
    Ok(Some(Report { text, kept }))
}

/// Characters of each child's report: as many as are configured, and no more than
/// leave half of the parent's window free.
fn room(engine: &Engine, parent: &State, children: usize) -> usize {
    let settings = engine.settings();
    let free = settings.window.map_or(usize::MAX, |window| {
        let taken = usize::try_from(parent.turn.progress.foreseen.tokens).unwrap_or(usize::MAX);
        window.saturating_sub(taken).saturating_mul(TOKEN_CHARS) / 2
    });
    let share = free / children.max(1);
    settings.delegation.max_summary_chars.min(share).max(SUMMARY_FLOOR)
}

async fn one(
    rows: &mut Rows<'_>,
    engine: &Engine,
    (child, turn): (&SessionRecord, &TurnRecord),
    room: usize,
    kept: &mut Vec<Kept>,
) -> Result<Value, StoreError> {
    let said = rows.last_answer(child.session_id, turn.turn_id).await?;
    let said = said.map(|message| text_of(&message.content)).unwrap_or_default();
    let (summary, is_cut) = shortened(&said, room);
    let (status, exit_reason) = outcome(turn);
    let trace: Vec<Value> = rows
        .call_trace(turn.turn_id)
        .await?
        .into_iter()
        .map(|call| {
            json!({"tool": call.name, "args_bytes": call.arguments_bytes, "result_bytes": call.result_bytes,
                "status": call.status})
        })
        .collect();
    let model = child.model.as_ref().unwrap_or(&engine.settings().model);
    let mut result = json!({
        "task_index": child.lineage.as_ref().map_or(0, |lineage| lineage.index),
        "status": status,
        "summary": summary,
        "api_calls": turn.usage.steps,
        "duration_seconds": seconds(turn.started_at, turn.finished_at),
        "model": model,
        "exit_reason": exit_reason,
        "tokens": {"input": turn.usage.input_tokens, "output": turn.usage.output_tokens},
        "tool_trace": trace,
        "live_transcript": transcript(child.session_id),
        "child_session_id": child.session_id,
    });
    if let Some(fields) = result.as_object_mut() {
        if is_cut {
            fields.insert("summary_truncated".to_owned(), true.into());
            let name = budget::file_name(&child.session_id.to_string());
            let at = (child.tenant_id, child.home());
            let (whole, path) = dispatch::shelve(engine.host(), at, name, said).await;
            kept.push(whole);
            if let Some(path) = path {
                fields.insert("summary_full_path".to_owned(), path.to_string_lossy().into());
            }
        }
        let error = turn.error.as_ref().map(|error| error.detail.clone());
        if let Some(error) = error {
            fields.insert("error".to_owned(), error.into());
        }
    }
    Ok(result)
}

/// Files that the child or its own children wrote and the parent's model has seen: what it remembers
/// of them is of before.
async fn stale(
    rows: &mut Rows<'_>,
    engine: &Engine,
    parent: &State,
    child: &SessionRecord,
) -> Result<Vec<String>, StoreError> {
    if parent.session.seen_files.is_empty() {
        return Ok(Vec::new());
    }
    let seen = FileViews::parse(&parent.session.seen_files);
    let root = engine.workspace_path(parent.session.tenant_id, parent.session.home());
    let mut paths = rows.paths_written(child.session_id, MOST_WRITTEN).await?;
    paths.sort_unstable();
    paths.retain(|path| seen.knows(&FileKey::of(&root.join(path))));
    Ok(paths)
}

/// Where people follow what a child did, or does: a child is a session with a log of
/// its own.
fn transcript(child: SessionId) -> String {
    format!("/v1/sessions/{child}/stream")
}

/// `status` and `exit_reason` in the words of the original.
fn outcome(turn: &TurnRecord) -> (&'static str, &'static str) {
    match (turn.status, turn.stop_reason) {
        (TurnStatus::Completed, Some(StopReason::MaxSteps)) => ("completed", "max_iterations"),
        (TurnStatus::Completed, Some(StopReason::Budget)) => ("failed", "error"),
        (TurnStatus::Completed, _) => ("completed", "completed"),
        (TurnStatus::Failed, Some(StopReason::Timeout)) => ("timeout", "timeout"),
        (TurnStatus::Failed, _) => ("failed", "error"),
        _ => ("interrupted", "interrupted"),
    }
}

fn seconds(from: Option<Timestamp>, to: Option<Timestamp>) -> f64 {
    let millis = match (from, to) {
        (Some(from), Some(to)) => to.0.saturating_sub(from.0).max(0),
        _ => 0,
    };
    // A duration in milliseconds is far below what a float holds exactly.
    #[allow(clippy::cast_precision_loss, reason = "seconds for display")]
    let seconds = millis as f64 / 1000.0;
    seconds
}

/// Three quarters from the beginning and one from the end of what is too long.
fn shortened(text: &str, room: usize) -> (String, bool) {
    let count = text.chars().count();
    if count <= room {
        return (text.to_owned(), false);
    }
    let (head, tail) = (room * 3 / 4, room / 4);
    let beginning = first_chars(text, head);
    let end: String = text.chars().skip(count - tail).collect();
    let left_out = count - head - tail;
    (
        format!("{beginning}\n[… {left_out} characters left out …]\n{end}"),
        true,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_report_keeps_its_beginning_and_more_so_its_end() {
        assert_eq!(shortened("short", 8), ("short".to_owned(), false));
        let (text, is_cut) = shortened(&format!("{}{}", "a".repeat(90), "é".repeat(10)), 40);
        assert!(
            is_cut && text.starts_with(&"a".repeat(30)) && text.ends_with(&"é".repeat(10)),
            "{text}"
        );
        assert!(text.contains("60 characters left out"));
    }
}
