//! A turn as plain text, for people with curl and for scripts: what the model
//! says, and nothing else, while it says it. The body ends as it should only if
//! the turn completed; otherwise it says why in a line in brackets and breaks
//! off, so that no script takes a part for the whole.

use std::io;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};

use crate::live::follow::Follower;
use crate::model::call::Execution;
use crate::model::event::EventBody;
use crate::model::id::MessageId;
use crate::model::message::{Role, text_of};
use crate::model::problem::{Problem, ProblemCode};
use crate::model::turn::Turn;

use super::failure::Failure;
use super::leash::Leash;
use super::lifetime::Lifetime;
use super::state::ApiState;

/// What an event adds to the text.
#[derive(Debug, PartialEq)]
enum Piece {
    Nothing,
    Text(String),
    /// The turn completed.
    Whole(String),
    /// The turn ended otherwise.
    Broken(String, Box<Problem>),
}

/// What was said so far, as far as it matters for what follows.
#[derive(Debug, Default)]
struct Said {
    /// The message that is being said, and how many bytes of it were.
    message: Option<(MessageId, usize)>,
    /// It is not stored yet and may still be void.
    open: bool,
    begun: bool,
    /// The text ends with a line break.
    at_line_start: bool,
}

struct Source {
    state: ApiState,
    follower: Follower,
    leash: Leash,
    lifetime: Lifetime,
    said: Said,
}

/// The answer, once there is a first word: a turn that fails before it is
/// answered with its problem.
pub(super) async fn response(
    state: ApiState,
    follower: Follower,
    leash: Leash,
    lifetime: Lifetime,
) -> Result<Response, Failure> {
    let mut source = Source {
        state,
        follower,
        leash,
        lifetime,
        said: Said::default(),
    };
    let first = match source.next().await {
        None => return Err(Failure::draining()),
        Some(Piece::Broken(_, problem)) => {
            source.leash.let_go();
            return Err((*problem).into());
        }
        Some(piece) => piece,
    };
    let body = stream::unfold((source, Next::Piece(Some(first))), |(source, next)| next.done(source))
        .filter_map(|item| async { item.transpose() });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// What the body does next.
enum Next {
    /// Sends this, or what comes.
    Piece(Option<Piece>),
    Break,
    End,
}

type Item = Result<Option<Bytes>, io::Error>;

impl Next {
    async fn done(self, mut source: Source) -> Option<(Item, (Source, Self))> {
        let piece = match self {
            Self::End => return None,
            Self::Break => {
                // What was sent before leaves first.
                tokio::task::yield_now().await;
                return Some((Err(io::Error::other("the turn did not complete")), (source, Self::End)));
            }
            Self::Piece(Some(piece)) => Some(piece),
            Self::Piece(None) => source.next().await,
        };
        let (text, next) = match piece {
            Some(Piece::Nothing) => (String::new(), Self::Piece(None)),
            Some(Piece::Text(text)) => (text, Self::Piece(None)),
            Some(Piece::Whole(text)) => (text, Self::End),
            Some(Piece::Broken(text, _)) => (text, Self::Break),
            None => (
                source.said.line("[the server ended this stream; the turn goes on]"),
                Self::Break,
            ),
        };
        if !matches!(next, Self::Piece(_)) {
            source.leash.let_go();
        }
        let bytes = Some(Bytes::from(text)).filter(|text| !text.is_empty());
        Some((Ok(bytes), (source, next)))
    }
}

impl Source {
    /// The next piece that is something; `None` when the stream ends early.
    async fn next(&mut self) -> Option<Piece> {
        let closing = self.state.closing.clone();
        loop {
            if self.lifetime.is_due() && !self.lifetime.holds().await {
                self.leash.let_go();
                return None;
            }
            let next = tokio::select! {
                next = self.follower.next() => next,
                () = self.lifetime.due() => continue,
                () = closing.cancelled() => None,
            };
            let Some(Ok(frame)) = next else {
                self.leash.let_go();
                return None;
            };
            match self.said.take(&frame.event.body) {
                Piece::Nothing => {}
                piece => return Some(piece),
            }
        }
    }
}

impl Said {
    fn take(&mut self, body: &EventBody) -> Piece {
        match body {
            EventBody::MessageDelta(data) => Piece::Text(self.more(data.message_id, &data.text)),
            EventBody::MessageCompleted(data) if data.message.role == Role::Assistant => {
                let whole = text_of(&data.message.content);
                let said = self.message.filter(|(message, _)| *message == data.message.id);
                let rest = whole.get(said.map_or(0, |(_, bytes)| bytes)..).unwrap_or_default();
                let piece = match rest.is_empty() {
                    true => Piece::Nothing,
                    false => Piece::Text(self.more(data.message.id, rest)),
                };
                self.open = false;
                piece
            }
            // What was not completed is void, and cannot be taken back here.
            EventBody::TurnResumed(_) | EventBody::ModelRetrying(_) if self.open => {
                (self.message, self.open) = (None, false);
                Piece::Text(self.line("[this broke off; what follows begins again]"))
            }
            EventBody::QuestionAsked(data) => {
                let id = data.question.id;
                let question = data.question.question.replace(char::is_control, " ");
                Piece::Text(self.line(&format!("[question {id}: {question}; POST /v1/questions/{id}/answer]")))
            }
            EventBody::ToolCallStarted(data) if data.tool_call.execution == Execution::Client => {
                let call = &data.tool_call;
                Piece::Text(self.line(&format!(
                    "[{} waits for its result, {}: POST …/tool-results]",
                    call.name, call.id
                )))
            }
            EventBody::ApprovalRequested(data) => {
                let approval = &data.approval;
                Piece::Text(self.line(&format!(
                    "[waits for POST /v1/approvals/{}/decision: {}]",
                    approval.id, approval.title
                )))
            }
            EventBody::StreamReset(_) => {
                let detail = "the events of this turn are not kept any more; read its messages";
                let line = self.line(&format!("[{detail}]"));
                Piece::Broken(line, Box::new(Problem::new(ProblemCode::NotFound, detail)))
            }
            EventBody::TurnCompleted(_) => Piece::Whole(self.last_line_break()),
            EventBody::TurnFailed(data) => {
                let unknown = || Problem::new(ProblemCode::Internal, "the turn failed");
                self.broken("failed", data.turn.error.clone().unwrap_or_else(unknown), &data.turn)
            }
            EventBody::TurnCancelled(data) => self.broken_off("was cancelled", &data.turn),
            EventBody::TurnInterrupted(data) => self.broken_off("was interrupted", &data.turn),
            EventBody::TurnRolledBack(data) => self.broken_off("was rolled back", &data.turn),
            _ => Piece::Nothing,
        }
    }

    /// More of a message; a new one begins a new paragraph.
    fn more(&mut self, message: MessageId, text: &str) -> String {
        let mut out = String::new();
        match &mut self.message {
            Some((own, bytes)) if *own == message => *bytes += text.len(),
            _ => {
                if self.begun {
                    out.push_str(if self.at_line_start { "\n" } else { "\n\n" });
                }
                self.message = Some((message, text.len()));
            }
        }
        out.push_str(text);
        (self.begun, self.open) = (true, true);
        self.at_line_start = out.ends_with('\n');
        out
    }

    /// A line of the server's own.
    fn line(&mut self, text: &str) -> String {
        let out = format!("{}{text}\n", self.last_line_break());
        (self.begun, self.at_line_start) = (true, true);
        out
    }

    fn last_line_break(&self) -> String {
        let open = self.begun && !self.at_line_start;
        if open { "\n".to_owned() } else { String::new() }
    }

    fn broken_off(&mut self, how: &str, turn: &Turn) -> Piece {
        let detail = format!("the turn {how} before it was complete");
        self.broken(how, Problem::new(ProblemCode::TurnNotActive, detail), turn)
    }

    fn broken(&mut self, how: &str, problem: Problem, turn: &Turn) -> Piece {
        let line = self.line(&format!("[the turn {how}: {}]", problem.detail));
        let place = serde_json::json!({"session_id": turn.session_id, "turn_id": turn.id});
        let context = problem.context.clone().unwrap_or(place);
        Piece::Broken(line, Box::new(problem.with_context(context)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::TextData;

    fn delta(message: u128, text: &str) -> EventBody {
        EventBody::MessageDelta(TextData {
            message_id: MessageId::from_bits(message),
            text: text.to_owned(),
        })
    }

    fn completed(message: u128, text: &str) -> EventBody {
        let message = serde_json::json!({"id": MessageId::from_bits(message), "turn_id": crate::model::id::TurnId::from_bits(1),
            "role": "assistant", "content": [{"type": "text", "text": text}], "created_at": "2026-01-31T09:30:00.000Z"});
        EventBody::MessageCompleted(serde_json::from_value(serde_json::json!({"message": message})).unwrap())
    }

    fn retrying() -> EventBody {
        let error = Problem::new(ProblemCode::UpstreamError, "x");
        let data = serde_json::json!({"attempt": 1, "delay_ms": 1, "error": error});
        EventBody::ModelRetrying(serde_json::from_value(data).unwrap())
    }

    fn said(events: &[EventBody]) -> String {
        let mut said = Said::default();
        let texts = events.iter().map(|event| match said.take(event) {
            Piece::Nothing => String::new(),
            Piece::Text(text) | Piece::Whole(text) | Piece::Broken(text, _) => text,
        });
        texts.collect()
    }

    #[test]
    fn pieces_join_to_the_stored_text_wherever_they_were_cut() {
        let whole = completed(1, "héllo");
        for pieces in [&[][..], &["h"], &["h", "é"], &["h", "é", "llo"]] {
            let mut events: Vec<EventBody> = pieces.iter().map(|piece| delta(1, piece)).collect();
            events.push(whole.clone());
            assert_eq!(said(&events), "héllo", "{pieces:?}");
        }
    }

    #[test]
    fn messages_are_paragraphs_and_what_broke_off_is_told() {
        assert_eq!(
            said(&[completed(1, "a"), delta(2, "b"), completed(2, "b\n"), completed(3, "c")]),
            "a\n\nb\n\nc"
        );
        assert_eq!(said(&[completed(1, "")]), "");
        assert_eq!(
            said(&[delta(1, "ab"), retrying(), delta(1, "abc")]),
            "ab\n[this broke off; what follows begins again]\n\nabc"
        );
        assert_eq!(said(&[completed(1, "a"), retrying(), completed(2, "b")]), "a\n\nb");
    }
}
