//! A child: a session of its own in the parent's workspace, with one turn that
//! begins in the transaction in which the parent's call is handed over.

use super::root::approvals;
use crate::base::text::first_chars;
use crate::model::audit::{AuditAction, Audited};
use crate::model::lineage::NewChild;
use crate::model::message::Part;
use crate::model::record::{SessionRecord, TurnRecord};
use crate::model::session::{Metadata, SessionStatus};
use crate::model::turn::{TurnLimits, TurnOptions, Usage};
use crate::store::sessions::NewSession;
use crate::store::{Rows, StoreError};
use crate::turn::commit;
use crate::turn::engine::Engine;
use crate::turn::state::State;

/// So much of the goal is the child's title.
const TITLE_CHARS: usize = 80;

pub(super) async fn begin(
    rows: &mut Rows<'_>,
    engine: &Engine,
    parent: &State,
    child: &NewChild,
) -> Result<State, StoreError> {
    let record = session(engine, parent, child);
    let now = engine.clock().now();
    rows.add_session(&NewSession {
        record: record.clone(),
        external_id: None,
        title: Some(first_chars(&child.task.goal, TITLE_CHARS).to_owned()),
        metadata: Metadata::default(),
        parent: None,
        created_at: now,
    })
    .await?;
    let created = Audited {
        session_id: Some(record.session_id),
        turn_id: Some(parent.turn.turn_id),
        tool_call_id: Some(child.lineage.tool_call_id),
        ..Audited::new(AuditAction::SessionCreated, &record.user_id)
    };
    rows.audit(&[created], now).await?;
    let turn = turn(engine, parent, child);
    let fresh = State::fresh(record, turn);
    let begun = Box::pin(commit::carry_out_callless(rows, engine, fresh, None, |step| {
        step.tell_created();
        step.begin_new();
    }));
    begun.await.map(|carried| carried.state)
}

fn session(engine: &Engine, parent: &State, child: &NewChild) -> SessionRecord {
    let State { session, turn, .. } = parent;
    let settings = &engine.settings().delegation;
    let options = &turn.options;
    let model = settings.model.clone().or_else(|| options.model.clone());
    let workspace = engine.workspace_path(session.tenant_id, session.home());
    SessionRecord {
        session_id: child.session_id,
        model: model.or_else(|| session.model.clone()),
        instructions: Some(instructions(child, &workspace.to_string_lossy())),
        toolsets: options.toolsets.clone().unwrap_or_else(|| session.toolsets.clone()),
        // What the client carries out it carries out for the root.
        tools: Vec::new(),
        status: SessionStatus::Idle,
        head_seq: 0,
        next_position: 0,
        active_turn_id: None,
        usage: Usage::default(),
        approvals: approvals(settings, &session.approvals),
        todo: "[]".to_owned(),
        seen_files: String::new(),
        memory_block: None,
        context_block: None,
        deleted_at: None,
        lineage: Some(Box::new(child.lineage.clone())),
        ..session.clone()
    }
}

fn turn(engine: &Engine, parent: &State, child: &NewChild) -> TurnRecord {
    let settings = &engine.settings().delegation;
    let options = &parent.turn.options;
    let options = TurnOptions {
        limits: TurnLimits {
            max_steps: Some(settings.max_steps),
            timeout_seconds: settings.timeout.map(|timeout| timeout.as_secs()),
            // What bounds the parent's turn bounds both together.
            max_tokens: options.limits.max_tokens,
            max_cost_nanos: options.limits.max_cost_nanos,
        },
        approvals: options.approvals,
        tool_ceiling: options.tool_ceiling.clone(),
        key_id: options.key_id,
        ..TurnOptions::default()
    };
    let input = vec![Part::text(child.task.goal.clone())];
    let user = parent.turn.user_id.clone();
    let now = engine.clock().now();
    TurnRecord {
        key_id: parent.turn.key_id,
        ..TurnRecord::queued(child.turn_id, child.session_id, user, input, options, now)
    }
}

/// Told to the child before everything else; it knows nothing of the
/// conversation that it works for.
fn instructions(child: &NewChild, workspace: &str) -> String {
    let task = &child.task;
    let context = match &task.context {
        Some(context) => format!("\n\nWhat you have to know:\n{context}"),
        None => String::new(),
    };
    format!(
        "You do one delegated task and nothing else. Nobody can be asked: where something is unclear, choose the \
         likeliest reading and say so.\n\nYour task:\n{}{context}\n\nYour files are in {workspace}. When you are done, \
         say in a short report what you did, what you found, which files you changed and what is still open. Say \
         nothing that you have not checked.",
        task.goal
    )
}
