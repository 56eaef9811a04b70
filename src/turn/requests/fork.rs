//! A session that goes on from a point of another's transcript. It takes over
//! what was said and settled up to there, and the settings; it gets files of its
//! own, none to begin with (those of the other are as of now and not as of that
//! point), and no grant.

use std::collections::HashSet;

use serde_json::json;

use super::adopt::History;
use super::sessions::{stored, taken};
use super::{CreateSession, EngineError, Verdict, earlier};
use crate::model::id::{CallId, MessageId, SessionId, TurnId};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{CallRecord, MessageRecord, SessionRecord, TurnRecord};
use crate::model::session::{ApprovalMode, Metadata, Parent, Session};
use crate::model::turn::{StopReason, TurnStatus};
use crate::store::sessions::NewSession;
use crate::store::{Rows, Scope, StoreError};
use crate::turn::engine::Engine;

/// Up to where a fork takes over what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// All turns that are over.
    End,
    AfterMessage(MessageId),
    AfterTurn(TurnId),
}

#[derive(Clone, Debug)]
pub struct ForkSession {
    pub user_id: String,
    pub point: ForkPoint,
    pub external_id: Option<String>,
    /// In place of those of the session that is forked.
    pub title: Option<String>,
    pub metadata: Option<Metadata>,
    /// May take over that nobody is asked.
    pub may_settle: bool,
}

/// The session that is forked.
struct Source {
    record: SessionRecord,
    seen: Session,
}

impl Engine {
    pub async fn fork_session(&self, scope: &Scope, from: SessionId, fork: ForkSession) -> Verdict<Session> {
        let engine = self.clone();
        let id = SessionId::new(self.clock());
        let forked = scope.write("fork_session", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                forked_within(&mut rows, &engine, id, (from, fork)).await
            })
        });
        let forked = match forked.await {
            Err(StoreError::Unique(_)) => Err(taken()),
            forked => forked?,
        };
        self.begun(scope, &forked);
        forked
    }
}

/// Stores the fork of a session, within a transaction.
pub(super) async fn forked_within(
    rows: &mut Rows<'_>,
    engine: &Engine,
    id: SessionId,
    (from, fork): (SessionId, ForkSession),
) -> Result<Verdict<Session>, StoreError> {
    let (Some(record), Some(seen)) = (rows.session_record(from).await?, rows.session(from).await?) else {
        return Ok(Err(EngineError::NotFound("session")));
    };
    let source = Source { record, seen };
    let mode = source.record.approvals.mode;
    if matches!(mode, Some(ApprovalMode::Off | ApprovalMode::Smart)) && !fork.may_settle {
        return Ok(Err(unasked()));
    }
    let (messages, calls) = rows.transcript(from).await?;
    let bound = match bound(rows, &source, &messages, fork.point).await? {
        Ok(bound) => bound,
        Err(refused) => return Ok(Err(refused)),
    };
    let (kept, beyond): (Vec<_>, Vec<_>) = messages.into_iter().partition(|message| message.position <= bound);
    let calls = match settled(calls, &kept, &beyond) {
        Ok(calls) => calls,
        Err(refused) => return Ok(Err(refused)),
    };
    let turns = turns_of(rows, engine, from, &kept, &beyond).await?;
    let last = kept.last().map(|message| message.message_id);
    let whole = beyond.is_empty();
    let history = History {
        turns,
        messages: kept,
        calls,
    };
    let history = history.renewed(id, &fork.user_id, engine.clock());
    match forked_row(engine, id, source, fork, (last, whole)) {
        Ok(row) => stored(rows, row, history).await,
        Err(refused) => Ok(Err(refused)),
    }
}

fn forked_row(
    engine: &Engine,
    id: SessionId,
    source: Source,
    fork: ForkSession,
    (last, whole): (Option<MessageId>, bool),
) -> Verdict<NewSession> {
    let Source { record, seen } = source;
    let new = CreateSession {
        user_id: fork.user_id,
        external_id: fork.external_id,
        title: fork.title.or(seen.title),
        model: record.model,
        instructions: record.instructions,
        preset: record.preset,
        toolsets: record.toolsets,
        environment: record.environment,
        approvals: record.approvals,
        sampling: *record.sampling,
        tools: record.tools,
        budget: record.budget,
        metadata: fork.metadata.unwrap_or(seen.metadata),
    };
    let mut row = engine.new_row(record.tenant_id, id, new)?;
    row.parent = Some(Parent {
        session_id: record.session_id,
        message_id: last,
    });
    if whole {
        // The task list of an earlier point is not known any more.
        row.record.todo = record.todo;
    }
    Ok(row)
}

/// The last place that the fork takes over; -1 takes nothing.
async fn bound(
    rows: &mut Rows<'_>,
    source: &Source,
    messages: &[MessageRecord],
    point: ForkPoint,
) -> Result<Verdict<i64>, StoreError> {
    let active = source.record.active_turn_id;
    Ok(match point {
        ForkPoint::End => Ok(messages
            .iter()
            .rfind(|message| Some(message.turn_id) != active)
            .map_or(-1, |message| message.position)),
        ForkPoint::AfterMessage(id) => messages
            .iter()
            .find(|message| message.message_id == id)
            .map(|message| message.position)
            .ok_or_else(|| {
                refused(
                    "/after_message",
                    "the session has no such message, or it was rolled back",
                )
            }),
        ForkPoint::AfterTurn(id) => {
            let turn = rows.turn(source.record.session_id, id).await?;
            if turn.is_some_and(|turn| !turn.status.is_terminal()) {
                let detail = "the turn is not over; wait for its end, or fork after one of its messages";
                let problem = Problem::new(ProblemCode::SessionBusy, detail).with_field("/after_turn", detail);
                return Ok(Err(EngineError::Refused(problem.with_context(json!({"turn_id": id})))));
            }
            messages
                .iter()
                .rfind(|message| message.turn_id == id)
                .map(|message| message.position)
                .ok_or_else(|| refused("/after_turn", "the session has no such turn, or nothing is left of it"))
        }
    })
}

/// The calls of what is taken over. Each has to have its result in it.
fn settled(calls: Vec<CallRecord>, kept: &[MessageRecord], beyond: &[MessageRecord]) -> Verdict<Vec<CallRecord>> {
    let made: HashSet<MessageId> = kept.iter().map(|message| message.message_id).collect();
    let results: HashSet<CallId> = kept.iter().filter_map(|message| message.call_id).collect();
    let calls: Vec<CallRecord> = calls
        .into_iter()
        .filter(|call| made.contains(&call.message_id))
        .collect();
    let Some(open) = calls.iter().rfind(|call| !results.contains(&call.call_id)) else {
        return Ok(calls);
    };
    let result = beyond.iter().find(|message| message.call_id == Some(open.call_id));
    let detail = match result {
        Some(result) => format!(
            "a fork never parts a call from its result; the next message that can be forked after is `{}`",
            result.message_id
        ),
        None => "a fork never parts a call from its result, and a call of this message has none yet".to_owned(),
    };
    Err(refused("/after_message", &detail))
}

/// The turns of what is taken over; one that goes on beyond it was interrupted,
/// as the fork tells it.
async fn turns_of(
    rows: &mut Rows<'_>,
    engine: &Engine,
    session: SessionId,
    kept: &[MessageRecord],
    beyond: &[MessageRecord],
) -> Result<Vec<TurnRecord>, StoreError> {
    let later: HashSet<TurnId> = beyond.iter().map(|message| message.turn_id).collect();
    let mut seen: HashSet<TurnId> = HashSet::new();
    let mut turns = Vec::new();
    for message in kept {
        if !seen.insert(message.turn_id) {
            continue;
        }
        let Some(mut turn) = rows.turn(session, message.turn_id).await? else {
            continue;
        };
        if later.contains(&turn.turn_id) || !turn.status.is_terminal() {
            turn.status = TurnStatus::Interrupted;
            turn.stop_reason = Some(StopReason::Superseded);
            (turn.error, turn.finished_at) = (None, Some(engine.clock().now()));
        }
        turn.steers.clear();
        (turn.owner, turn.active_since, turn.cancel_reason) = (None, None, None);
        turns.push(turn);
    }
    Ok(turns)
}

fn refused(pointer: &str, detail: &str) -> EngineError {
    let problem = Problem::new(ProblemCode::InvalidRequest, format!("`{pointer}`: {detail}"));
    EngineError::Refused(problem.with_field(pointer, detail))
}

fn unasked() -> EngineError {
    EngineError::Refused(Problem::new(
        ProblemCode::Forbidden,
        "the session asks nobody before a call runs; to fork it takes the scope `approvals:decide`",
    ))
}
