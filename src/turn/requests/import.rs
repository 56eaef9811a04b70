//! A session out of a file. The file was found whole before; here it gets ids
//! and becomes rows, all of them or none.

use std::collections::HashMap;

use super::adopt::History;
use super::sessions::{stored, taken};
use super::{CreateSession, EngineError, Verdict, earlier};
use crate::model::id::{CallId, MessageId, SessionId, TenantId, TurnId};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::{CallRecord, MessageRecord, TurnRecord};
use crate::model::session::Session;
use crate::model::transfer::{CallLine, MessageLine, TurnLine};
use crate::store::sessions::NewSession;
use crate::store::{Scope, StoreError};
use crate::tool::todo_list;
use crate::turn::engine::Engine;

#[derive(Clone, Debug)]
pub struct ImportSession {
    pub new: CreateSession,
    pub todo: Vec<serde_json::Value>,
    pub turns: Vec<(TurnLine, Vec<MessageLine>)>,
}

impl Engine {
    pub async fn import_session(&self, scope: &Scope, import: ImportSession) -> Verdict<Session> {
        let id = SessionId::new(self.clock());
        let (row, history) = self.with_past(scope.tenant(), id, import)?;
        let imported = scope.write("import_session", move |mut rows| {
            Box::pin(async move {
                match earlier(&mut rows).await? {
                    Some(earlier) => Ok(Err(earlier)),
                    None => stored(&mut rows, row, history).await,
                }
            })
        });
        let imported = match imported.await {
            Err(StoreError::Unique(_)) => Err(taken()),
            imported => imported?,
        };
        self.begun(scope, &imported);
        imported
    }

    /// A session with its past before they are stored, checked.
    pub(super) fn with_past(
        &self,
        tenant: TenantId,
        id: SessionId,
        import: ImportSession,
    ) -> Verdict<(NewSession, History)> {
        let todo = readable(import.todo)?;
        let user = import.new.user_id.clone();
        let mut row = self.new_row(tenant, id, import.new)?;
        row.record.todo = todo;
        Ok((row, self.history(id, &user, import.turns)))
    }

    fn history(&self, session_id: SessionId, user: &str, turns: Vec<(TurnLine, Vec<MessageLine>)>) -> History {
        let mut history = History::default();
        let mut position = 0;
        for (turn, messages) in turns {
            let turn_id = TurnId::new(self.clock());
            history.turns.push(turn_record(turn_id, session_id, user, turn));
            let mut ids: HashMap<String, CallId> = HashMap::new();
            for message in messages {
                let message_id = MessageId::new(self.clock());
                for (index, call) in (0..).zip(message.tool_calls) {
                    let call_id = CallId::new(self.clock());
                    ids.insert(call.id.clone(), call_id);
                    let place = position + 1 + i64::from(index);
                    history
                        .calls
                        .push(call_record((call_id, turn_id, message_id), index, place, call));
                }
                history.messages.push(MessageRecord {
                    position,
                    message_id,
                    turn_id,
                    role: message.role,
                    content: message.content,
                    reasoning: message.reasoning,
                    finish_reason: message.finish_reason,
                    call_id: message.tool_call_id.and_then(|id| ids.get(&id).copied()),
                    steered: message.steered,
                    external_id: message.external_id,
                    created_at: message.created_at,
                });
                position += 1;
            }
        }
        history
    }
}

fn turn_record(turn_id: TurnId, session_id: SessionId, user: &str, turn: TurnLine) -> TurnRecord {
    let made = turn.created_at;
    let record = TurnRecord::queued(turn_id, session_id, user.to_owned(), turn.input, turn.options, made);
    TurnRecord {
        status: turn.status,
        stop_reason: turn.stop_reason,
        epoch: 1,
        usage: turn.usage,
        error: turn.error,
        started_at: turn.started_at,
        finished_at: turn.finished_at,
        ..record
    }
}

fn call_record(
    (call_id, turn_id, message_id): (CallId, TurnId, MessageId),
    batch_index: u32,
    position: i64,
    call: CallLine,
) -> CallRecord {
    CallRecord {
        call_id,
        turn_id,
        message_id,
        batch_index,
        position,
        name: call.name,
        provider_id: call.provider_id,
        arguments_raw: call.arguments,
        arguments: call.parsed,
        edited: call.edited,
        effect: call.effect,
        execution: call.execution,
        segment: call.segment,
        parallel: call.parallel,
        status: call.status,
        exit_code: call.exit_code,
        created_at: call.created_at,
        started_at: call.started_at,
        finished_at: call.finished_at,
        nested: None,
    }
}

/// The task list as the store keeps it.
fn readable(todo: Vec<serde_json::Value>) -> Verdict<String> {
    let todo = serde_json::Value::Array(todo);
    match serde_json::from_value::<Vec<todo_list::Item>>(todo.clone()) {
        Ok(_) => Ok(todo.to_string()),
        Err(error) => {
            let problem = Problem::new(ProblemCode::InvalidRequest, format!("`/0/todo`: {error}"));
            Err(EngineError::Refused(problem.with_field("/0/todo", error.to_string())))
        }
    }
}
