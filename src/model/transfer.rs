//! A session as a file: one JSON value a line. The first line is the session,
//! then come its turns, each followed by its messages in order, and the last
//! line counts them, so that a file that was cut off is known as such.
//!
//! Ids in a file only say what belongs to what; a session that is made from one
//! has ids of its own.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::{CallStatus, Effect, Execution};
use super::client_tool::ClientTool;
use super::message::{FinishReason, Part, Role};
use super::problem::Problem;
use super::sampling::Sampling;
use super::session::{ApprovalPolicy, EnvironmentSpec, Metadata, ToolsetSelection};
use super::turn::{StopReason, TurnOptions, TurnStatus, Usage};
use crate::base::Timestamp;

/// The form that this server writes and the only one it reads.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TransferLine {
    Session(Box<SessionLine>),
    Turn(Box<TurnLine>),
    Message(Box<MessageLine>),
    End(EndLine),
}

/// The settings of the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionLine {
    pub version: u32,
    /// Becomes the `external_id` of what is made from the file, if that has none.
    pub id: String,
    #[serde(default)]
    pub external_id: Option<String>,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub instructions: Option<String>,
    pub preset: String,
    #[serde(default)]
    pub toolsets: ToolsetSelection,
    #[serde(default)]
    pub environment: EnvironmentSpec,
    #[serde(default)]
    pub approvals: ApprovalPolicy,
    #[serde(default)]
    pub sampling: Sampling,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Metadata,
    /// The task list as the model keeps it.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub todo: Vec<serde_json::Value>,
    #[serde(default)]
    pub created_at: Option<Timestamp>,
}

/// A turn that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnLine {
    pub id: String,
    pub status: TurnStatus,
    #[serde(default)]
    pub stop_reason: Option<StopReason>,
    pub input: Vec<Part>,
    #[serde(default)]
    pub options: TurnOptions,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default)]
    pub error: Option<Problem>,
    pub created_at: Timestamp,
    #[serde(default)]
    pub started_at: Option<Timestamp>,
    #[serde(default)]
    pub finished_at: Option<Timestamp>,
}

/// A message of the turn before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageLine {
    pub id: String,
    pub role: Role,
    pub content: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CallLine>,
    /// Of a result: the call, which is the next one without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// It came while its turn ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steered: bool,
    pub created_at: Timestamp,
}

/// A call, settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallLine {
    pub id: String,
    pub name: String,
    /// The id by which the model knows the call.
    pub provider_id: String,
    /// As the model wrote them.
    pub arguments: String,
    /// As they were read.
    pub parsed: serde_json::Value,
    /// As a person replaced them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<serde_json::Value>,
    pub effect: Effect,
    #[serde(default)]
    pub execution: Execution,
    pub status: CallStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(default)]
    pub segment: u32,
    #[serde(default)]
    pub parallel: bool,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndLine {
    pub turns: u64,
    pub messages: u64,
}

/// A file that was read and found whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    pub session: SessionLine,
    pub turns: Vec<(TurnLine, Vec<MessageLine>)>,
}

/// What is wrong with a file, and in which line from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub line: usize,
    pub pointer: &'static str,
    pub detail: String,
}

impl Transfer {
    /// Puts lines together; nothing of a file with a fault is used.
    pub fn of(lines: Vec<TransferLine>) -> Result<Self, Fault> {
        let mut reader = Reader::default();
        let count = lines.len();
        for (line, value) in lines.into_iter().enumerate() {
            reader.line = line;
            reader.take(value)?;
        }
        reader.line = count.saturating_sub(1);
        match (reader.session, reader.ended) {
            (Some(session), true) => Ok(Self {
                session,
                turns: reader.turns,
            }),
            _ => Err(Fault {
                line: reader.line,
                pointer: "",
                detail: "the file ends without its last line, `end`: it was cut off".to_owned(),
            }),
        }
    }
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    line: usize,
    session: Option<SessionLine>,
    turns: Vec<(TurnLine, Vec<MessageLine>)>,
    turn_ids: HashSet<String>,
    call_ids: HashSet<String>,
    /// Calls without a result, the next one last.
    open: Vec<String>,
    messages: u64,
    ended: bool,
}

impl Reader {
    fn fault<T>(&self, pointer: &'static str, detail: impl Into<String>) -> Result<T, Fault> {
        Err(Fault {
            line: self.line,
            pointer,
            detail: detail.into(),
        })
    }

    fn take(&mut self, value: TransferLine) -> Result<(), Fault> {
        if self.ended {
            return self.fault("", "nothing follows the line `end`");
        }
        let is_first = matches!(value, TransferLine::Session(_));
        if is_first != (self.line == 0) {
            return self.fault("/type", "the first line is the `session`, and no other");
        }
        match value {
            TransferLine::Session(session) if session.version != VERSION => {
                self.fault("/version", format!("this server reads version {VERSION}"))
            }
            TransferLine::Session(session) => {
                self.session = Some(*session);
                Ok(())
            }
            TransferLine::Turn(turn) => self.take_turn(*turn),
            TransferLine::Message(message) => self.take_message(*message),
            TransferLine::End(end) => self.take_end(end),
        }
    }

    fn take_turn(&mut self, turn: TurnLine) -> Result<(), Fault> {
        self.all_have_results()?;
        if !turn.status.is_terminal() {
            return self.fault("/status", "a turn in a file is over");
        }
        if !self.turn_ids.insert(turn.id.clone()) {
            return self.fault("/id", "another turn of the file has this id");
        }
        self.turns.push((turn, Vec::new()));
        Ok(())
    }

    fn take_message(&mut self, message: MessageLine) -> Result<(), Fault> {
        match message.role {
            Role::System => return self.fault("/role", "system texts are the session's `instructions`"),
            Role::Tool => self.take_result(&message)?,
            Role::User | Role::Assistant => {
                self.all_have_results()?;
                if message.tool_call_id.is_some() {
                    return self.fault("/tool_call_id", "only a result answers a call");
                }
            }
        }
        if message.role != Role::Assistant && !message.tool_calls.is_empty() {
            return self.fault("/tool_calls", "only the assistant calls tools");
        }
        for call in &message.tool_calls {
            if !call.status.is_settled() {
                return self.fault("/tool_calls", format!("the call `{}` is not settled", call.id));
            }
            if !self.call_ids.insert(call.id.clone()) {
                return self.fault(
                    "/tool_calls",
                    format!("another call of the file has the id `{}`", call.id),
                );
            }
        }
        let ids = message.tool_calls.iter().rev().map(|call| call.id.clone());
        self.open.extend(ids);
        match self.turns.last_mut() {
            Some((_, messages)) => messages.push(message),
            None => return self.fault("", "a message follows the turn that it belongs to"),
        }
        self.messages += 1;
        Ok(())
    }

    fn take_result(&mut self, message: &MessageLine) -> Result<(), Fault> {
        let expected = self.open.pop();
        if expected.is_some() && expected == message.tool_call_id {
            return Ok(());
        }
        let detail = match expected {
            Some(id) => format!("expected the result of the call `{id}`"),
            None => "no call waits for a result here".to_owned(),
        };
        self.fault("/tool_call_id", detail)
    }

    fn take_end(&mut self, end: EndLine) -> Result<(), Fault> {
        self.all_have_results()?;
        let turns = u64::try_from(self.turns.len()).unwrap_or(u64::MAX);
        if (end.turns, end.messages) != (turns, self.messages) {
            let messages = self.messages;
            return self.fault(
                "",
                format!("lines are missing: {turns} turns and {messages} messages came"),
            );
        }
        self.ended = true;
        Ok(())
    }

    fn all_have_results(&self) -> Result<(), Fault> {
        match self.open.last() {
            None => Ok(()),
            Some(id) => self.fault("", format!("the call `{id}` has no result")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(lines: &[Value]) -> Result<Transfer, Fault> {
        let lines = lines.iter().map(|line| serde_json::from_value(line.clone()).unwrap());
        Transfer::of(lines.collect())
    }

    fn session() -> Value {
        json!({"type": "session", "version": 1, "id": "s", "preset": "p"})
    }

    fn turn(id: &str) -> Value {
        json!({"type": "turn", "id": id, "status": "completed", "input": [], "created_at": "2026-01-01T00:00:00.000Z"})
    }

    fn message(role: &str, more: &Value) -> Value {
        let mut line = json!({"type": "message", "id": "m", "role": role, "content": [],
            "created_at": "2026-01-01T00:00:00.000Z"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    }

    fn calls(ids: &[&str], status: &str) -> Value {
        let call = |id: &&str| {
            json!({"id": id, "name": "todo", "provider_id": id, "arguments": "{}", "parsed": {},
                "effect": "read", "status": status, "created_at": "2026-01-01T00:00:00.000Z"})
        };
        message(
            "assistant",
            &json!({"tool_calls": ids.iter().map(call).collect::<Vec<_>>()}),
        )
    }

    fn result(id: &str) -> Value {
        message("tool", &json!({"tool_call_id": id}))
    }

    fn end(turns: u64, messages: u64) -> Value {
        json!({"type": "end", "turns": turns, "messages": messages})
    }

    #[test]
    fn a_whole_file_is_taken() {
        let user = message("user", &json!({}));
        let lines = [
            session(),
            turn("a"),
            user.clone(),
            calls(&["1", "2"], "succeeded"),
            result("1"),
            result("2"),
            turn("b"),
            user,
            end(2, 5),
        ];
        let file = read(&lines).unwrap();
        let counts: Vec<usize> = file.turns.iter().map(|(_, messages)| messages.len()).collect();
        assert_eq!(counts, [4, 1]);
        assert!(read(&[session(), end(0, 0)]).unwrap().turns.is_empty());
    }

    #[test]
    fn what_is_not_whole_is_refused_where_it_breaks() {
        let user = || message("user", &json!({}));
        let mut newer = session();
        newer["version"] = json!(2);
        let mut runs = turn("a");
        runs["status"] = json!("running");
        for (lines, line, pointer) in [
            (vec![], 0, ""),
            (vec![turn("a")], 0, "/type"),
            (vec![session(), session()], 1, "/type"),
            (vec![newer], 0, "/version"),
            (vec![session(), turn("a"), user()], 2, ""),
            (vec![session(), turn("a"), user(), end(1, 2)], 3, ""),
            (vec![session(), end(0, 0), turn("a")], 2, ""),
            (vec![session(), user()], 1, ""),
            (vec![session(), runs], 1, "/status"),
            (vec![session(), turn("a"), turn("a")], 2, "/id"),
            (vec![session(), turn("a"), message("system", &json!({}))], 2, "/role"),
            (vec![session(), turn("a"), result("1")], 2, "/tool_call_id"),
            (
                vec![session(), turn("a"), calls(&["1", "2"], "failed"), result("2")],
                3,
                "/tool_call_id",
            ),
            (vec![session(), turn("a"), calls(&["1"], "failed"), user()], 3, ""),
            (vec![session(), turn("a"), calls(&["1"], "failed"), turn("b")], 3, ""),
            (vec![session(), turn("a"), calls(&["1"], "failed"), end(1, 1)], 3, ""),
            (
                vec![session(), turn("a"), calls(&["1", "1"], "failed")],
                2,
                "/tool_calls",
            ),
            (vec![session(), turn("a"), calls(&["1"], "running")], 2, "/tool_calls"),
        ] {
            let fault = read(&lines).unwrap_err();
            assert_eq!((fault.line, fault.pointer), (line, pointer), "{fault:?}");
        }
    }
}
