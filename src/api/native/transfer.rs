//! Sessions as files, JSON Lines: written as they are read from the store, and
//! read as a whole before anything is stored.

use crate::api::surface::{Surface, routes};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::json;
use crate::api::path::InPath;
use crate::api::payload::{JsonLines, NDJSON, Payload};
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::model::id::{SessionId, TurnId};
use crate::model::principal::Scope;
use crate::model::problem::Problem;
use crate::model::record::{CallRecord, MessageRecord, TurnRecord};
use crate::model::session::Session;
use crate::model::transfer::{CallLine, EndLine, MessageLine, SessionLine, Transfer, TransferLine, TurnLine, VERSION};
use crate::store::transfer::{Past, Remembered};
use crate::store::{self, StoreError};
use crate::turn::requests::{CreateSession, ImportSession};

use super::fork::made;
use super::{answers, bounds, sessions};

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(export_session))
        .routes(routes!(import_session))
}

/// The rights to a file end with the last read, not with the first.
struct Export {
    scope: store::Scope,
    session: SessionId,
    /// Places that are still to come.
    places: (i64, i64),
    /// Of the message before.
    turn: Option<TurnId>,
    count: EndLine,
    /// Nothing follows.
    ended: bool,
}

/// Write a session into a file.
///
/// JSON Lines: the session, its turns that are over, each followed by its
/// messages, and an `end` that counts them. What runs or waits is not in it. The
/// file comes as it is read; one that breaks off has no `end`.
#[utoipa::path(get, path = "/v1/sessions/{id}/export", tag = "sessions", params(("id" = SessionId, Path)),
    responses((status = 200, description = "The file; each line is a `TransferLine`.",
        body = inline(JsonLines), content_type = "application/x-ndjson",
        headers(("Content-Disposition" = String, description = "A name for the file.")))))]
pub(super) async fn export_session(caller: Caller, InPath(id): InPath<SessionId>) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.past(id).await }));
    let past = found.await?.ok_or_else(|| Failure::not_found("session"))?;
    let export = Export {
        scope: caller.scope,
        session: id,
        places: (0, past.end),
        turn: None,
        count: EndLine { turns: 0, messages: 0 },
        ended: false,
    };
    let mut head = Vec::new();
    push(&mut head, &TransferLine::Session(Box::new(session_line(past)?)))?;
    let head = stream::once(async move { Ok::<_, Failure>(Bytes::from(head)) });
    let rest = stream::unfold(export, |mut export| async move {
        let piece = export.next().await.transpose()?;
        export.ended |= piece.is_err();
        Some((piece, export))
    });
    let body = head
        .chain(rest)
        .map(|piece| piece.map_err(|failure| failure.problem().detail.clone()));
    let name = format!("attachment; filename=\"{id}.jsonl\"");
    let headers = [(CONTENT_TYPE, NDJSON.to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(body)).into_response())
}

impl Export {
    /// Some lines; `None` behind the last.
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.ended {
            return Ok(None);
        }
        let (session, places, turn) = (self.session, self.places, self.turn);
        let found = self.scope.read(move |mut rows| {
            Box::pin(async move {
                // Deleted meanwhile: the file breaks off.
                match rows.session_record(session).await? {
                    Some(_) => rows.remembered(session, places, turn).await,
                    None => Err(StoreError::Lost),
                }
            })
        });
        let mut text = Vec::new();
        for Remembered { message, calls, turn } in found.await? {
            self.places.0 = message.position + 1;
            self.turn = Some(message.turn_id);
            if let Some(turn) = turn {
                self.count.turns += 1;
                push(&mut text, &TransferLine::Turn(Box::new(turn_line(turn))))?;
            }
            self.count.messages += 1;
            push(
                &mut text,
                &TransferLine::Message(Box::new(message_line(message, calls))),
            )?;
        }
        if self.places.1 <= self.places.0 {
            self.ended = true;
            push(&mut text, &TransferLine::End(self.count))?;
        }
        Ok(Some(Bytes::from(text)))
    }
}

fn push(text: &mut Vec<u8>, line: &TransferLine) -> Result<(), Failure> {
    serde_json::to_writer(&mut *text, line).map_err(Failure::internal)?;
    text.push(b'\n');
    Ok(())
}

fn session_line(past: Past) -> Result<SessionLine, Failure> {
    let Session {
        id,
        external_id,
        title,
        model,
        instructions,
        preset,
        toolsets,
        environment,
        approvals,
        sampling,
        tools,
        metadata,
        created_at,
        ..
    } = past.session;
    Ok(SessionLine {
        version: VERSION,
        id: id.to_string(),
        external_id,
        title,
        model,
        instructions,
        preset,
        toolsets,
        environment,
        approvals,
        sampling,
        tools,
        metadata,
        todo: serde_json::from_str(&past.todo).map_err(Failure::internal)?,
        created_at: Some(created_at),
    })
}

fn turn_line(turn: TurnRecord) -> TurnLine {
    TurnLine {
        id: turn.turn_id.to_string(),
        status: turn.status,
        stop_reason: turn.stop_reason,
        input: turn.input,
        options: turn.options,
        usage: turn.usage,
        error: turn.error,
        created_at: turn.created_at,
        started_at: turn.started_at,
        finished_at: turn.finished_at,
    }
}

fn message_line(message: MessageRecord, calls: Vec<CallRecord>) -> MessageLine {
    MessageLine {
        id: message.message_id.to_string(),
        role: message.role,
        content: message.content,
        reasoning: message.reasoning,
        finish_reason: message.finish_reason,
        tool_calls: calls.into_iter().map(call_line).collect(),
        tool_call_id: message.call_id.map(|id| id.to_string()),
        steered: message.steered,
        created_at: message.created_at,
    }
}

fn call_line(call: CallRecord) -> CallLine {
    CallLine {
        id: call.call_id.to_string(),
        name: call.name,
        provider_id: call.provider_id,
        arguments: call.arguments_raw,
        parsed: call.arguments,
        edited: call.edited,
        effect: call.effect,
        execution: call.execution,
        status: call.status,
        exit_code: call.exit_code,
        segment: call.segment,
        parallel: call.parallel,
        created_at: call.created_at,
        started_at: call.started_at,
        finished_at: call.finished_at,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ImportFilter {
    /// In place of the file's own; where neither has one, the file's session id.
    #[param(max_length = 256)]
    external_id: Option<String>,
}

/// Make a session from a file.
///
/// Takes what an export writes. Everything is checked before anything is stored,
/// and all of it is stored or nothing. The session and what is in it get new
/// ids; its `external_id` leads from the old one to it, and keeps a file from
/// being taken twice.
#[utoipa::path(post, path = "/v1/sessions/import", tag = "sessions", params(ImportFilter),
    request_body(content = inline(JsonLines), content_type = "application/x-ndjson",
        description = "JSON Lines: each line is a `TransferLine`, as an export writes them. A fault is told with the number of \
            its line, from 0, before the pointer into it.",
        example = json!("{\"type\":\"session\",\"version\":1,\"id\":\"example\",\"preset\":\"hermes-api-server\"}\n\
            {\"type\":\"end\",\"turns\":0,\"messages\":0}\n")),
    responses(
        (status = 201, description = "The session.", body = Session,
            headers(("Location" = String, description = "Path of the session."))),
        (status = 409, description = "The `external_id` is in use.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn import_session(
    State(state): State<ApiState>,
    caller: Caller,
    Query(filter): Query<ImportFilter>,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let (bytes, once) = payload.lines_once(&caller.principal).await?;
    let import = read(&bytes, filter.external_id, &caller)?;
    let engine = state.engine.clone();
    let scope = caller.scope.once(once);
    let imported = state.finish_once(async move { engine.import_session(&scope, import).await });
    Ok(imported.await?.answer(made))
}

/// The whole file, checked.
fn read(bytes: &[u8], external_id: Option<String>, caller: &Caller) -> Result<ImportSession, Failure> {
    let left = json::values_of_a_file();
    let lines = bytes.trim_ascii_end().split(|byte| *byte == b'\n').enumerate();
    let lines = lines.map(|(place, line)| {
        let read = json::value(line, &left).and_then(typed).and_then(|line| {
            bounded(&line)?;
            Ok(line)
        });
        read.map_err(|failure| within(&format!("/{place}"), &failure))
    });
    let Transfer { session, turns } = Transfer::of(lines.collect::<Result<_, _>>()?)
        .map_err(|fault| Failure::field(&format!("/{}{}", fault.line, fault.pointer), fault.detail))?;
    sessions::may_settle(caller, &session.approvals)?;
    let external_id = match external_id {
        Some(name) => {
            let name = Some(name);
            bounds::name("external_id", &name, 256)?;
            name
        }
        None => session.external_id.or(Some(session.id)),
    };
    let new = CreateSession {
        user_id: caller.principal.user.clone(),
        external_id,
        title: session.title,
        model: session.model,
        instructions: session.instructions,
        preset: session.preset,
        toolsets: session.toolsets,
        environment: session.environment,
        approvals: session.approvals,
        sampling: session.sampling,
        tools: session.tools,
        metadata: session.metadata,
    };
    Ok(ImportSession {
        new,
        todo: session.todo,
        turns,
    })
}

/// A line by its type; the pointer of a fault leads into the line.
fn typed(value: serde_json::Value) -> Result<TransferLine, Failure> {
    let serde_json::Value::Object(mut fields) = value else {
        return Err(Failure::field("", "expected a JSON object"));
    };
    let kind = fields.remove("type");
    let fields = serde_json::Value::Object(fields);
    match kind.as_ref().and_then(serde_json::Value::as_str) {
        Some("session") => json::typed(fields).map(|line| TransferLine::Session(Box::new(line))),
        Some("turn") => json::typed(fields).map(|line| TransferLine::Turn(Box::new(line))),
        Some("message") => json::typed(fields).map(|line| TransferLine::Message(Box::new(line))),
        Some("end") => json::typed(fields).map(TransferLine::End),
        _ => Err(Failure::field(
            "/type",
            "expected `session`, `turn`, `message` or `end`",
        )),
    }
}

/// What holds for everything that clients set holds in a file too.
fn bounded(line: &TransferLine) -> Result<(), Failure> {
    match line {
        TransferLine::Session(session) => {
            bounds::name("/id", &Some(session.id.clone()), 256)?;
            bounds::session_texts(
                &session.title,
                &session.external_id,
                &session.model,
                &session.instructions,
            )?;
            bounds::environment(&session.environment)?;
            bounds::metadata(&session.metadata)?;
            bounds::toolsets(&session.toolsets)?;
            bounds::tools(&session.tools)?;
            answers::check(&session.sampling).map_err(|failure| within("/sampling", &failure))
        }
        TransferLine::Turn(turn) => {
            bounds::images("/input", &turn.input)?;
            bounds::tools(&turn.options.tools).map_err(|failure| within("/options", &failure))?;
            bounds::metadata(&turn.options.metadata).map_err(|failure| within("/options", &failure))
        }
        TransferLine::Message(message) => bounds::images("/content", &message.content),
        TransferLine::End(_) => Ok(()),
    }
}

/// The same fault, told from further above.
fn within(above: &str, failure: &Failure) -> Failure {
    let problem = failure.problem();
    let (pointer, detail) = match problem.errors.first() {
        Some(error) => (error.pointer.as_str(), &error.detail),
        None => ("", &problem.detail),
    };
    Failure::field(&format!("{above}{pointer}"), detail.clone())
}
