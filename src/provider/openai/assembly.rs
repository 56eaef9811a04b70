//! One answer in the making: chunks go in, deltas come out as they are certain,
//! and the end is an answer or a failure that keeps what had arrived.

use serde_json::Value;

use super::calls::Calls;
use super::channels::Channels;
use super::chunk::{Choice, Chunk, Piece};
use super::refusal::{self, Upstream};
use crate::base::text::without_nul;
use crate::provider::{Answer, Delta, Failed, FailureKind, Finish, TokenUsage};

/// Far above what any model writes at once; a server that sends more is broken.
const MOST_ANSWER_BYTES: usize = 16 << 20;

pub(super) struct Assembly<'a> {
    upstream: &'a Upstream,
    on_delta: &'a mut (dyn FnMut(Delta) + Send),
    channels: Channels,
    calls: Calls,
    call_bytes: usize,
    finish: Option<String>,
    refused: bool,
    usage: Option<TokenUsage>,
    response_id: Option<String>,
    /// Whether any chunk carried a choice: only then is it an answer at all.
    answered: bool,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(upstream: &'a Upstream, on_delta: &'a mut (dyn FnMut(Delta) + Send)) -> Self {
        Self {
            upstream,
            on_delta,
            channels: Channels::default(),
            calls: Calls::default(),
            call_bytes: 0,
            finish: None,
            refused: false,
            usage: None,
            response_id: None,
            answered: false,
        }
    }

    /// Whether the server has said why the model stopped.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered
    }

    /// Takes one JSON object of the stream. `is_error` when the server named the
    /// event so.
    pub(super) fn take(&mut self, data: &str, is_error: bool) -> Result<(), FailedHere> {
        let chunk =
            Chunk::parse(data).map_err(|_| FailedHere::malformed("it holds something that is no part of an answer"))?;
        let says_error = is_error || chunk.object.as_str() == Some("error");
        if says_error || !matches!(chunk.error, Value::Null | Value::Bool(false)) {
            return Err(FailedHere(refusal::in_stream(data, self.upstream)));
        }
        if let (None, Value::String(id)) = (&self.response_id, chunk.id) {
            self.response_id = Some(without_nul(id)).filter(|id| !id.is_empty());
        }
        // Most chunks have none, and each path that is looked up is taken to pieces.
        if chunk.usage.is_object() {
            self.usage = usage(&chunk.usage).or(self.usage);
        }
        // Only one answer is asked for.
        if let Some(choice) = chunk.choices.into_iter().next() {
            self.choice(choice)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice) -> Result<(), FailedHere> {
        self.answered = true;
        if let Some(piece) = choice.delta.or(choice.message) {
            self.piece(piece);
        }
        if MOST_ANSWER_BYTES < self.channels.len() + self.call_bytes {
            return Err(FailedHere::malformed("the answer is longer than 16 MiB"));
        }
        match choice.finish_reason {
            Value::String(reason) if reason == "error" => {
                let message = "the model server broke the answer off with an error";
                Err(FailedHere(Failed::new(FailureKind::ServerError, message)))
            }
            Value::String(reason) if !reason.is_empty() => {
                self.finish = Some(reason);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn piece(&mut self, piece: Piece) {
        self.channels.reasoning(piece.reasoning(), self.on_delta);
        self.channels.text(&piece.text(), self.on_delta);
        self.refused |= piece.refusal.as_str().is_some_and(|refusal| !refusal.is_empty());
        if !piece.tool_calls.is_empty() {
            self.call_bytes += self.calls.add(piece.tool_calls);
        } else if let Some(function) = piece.function_call {
            self.call_bytes += self.calls.add_only(function);
        }
    }

    /// The answer, whole.
    pub(super) fn answer(self) -> Answer {
        let whole = self.channels.finish(self.on_delta);
        let calls = self.calls.finish();
        let finish = match self.finish {
            _ if self.refused => Finish::ContentFilter,
            reason => finish(reason.as_deref(), !calls.is_empty()),
        };
        Answer {
            text: whole.text,
            reasoning: whole.reasoning,
            calls,
            finish,
            usage: self.usage,
            response_id: self.response_id,
        }
    }

    /// The failure, with what had arrived.
    pub(super) fn fail(self, failed: FailedHere) -> Failed {
        let began = self.channels.len() + self.call_bytes != 0;
        let partial = self.channels.finish(self.on_delta);
        Failed {
            partial: began.then(|| Box::new(partial)),
            ..failed.0
        }
    }
}

/// A failure that does not yet know what had arrived: [`Assembly::fail`] adds it.
pub(super) struct FailedHere(pub Failed);

impl FailedHere {
    pub(super) fn malformed(what: &str) -> Self {
        let message = format!("the model server's answer cannot be read: {what}");
        Self(Failed::new(FailureKind::Malformed, message))
    }
}

/// Servers disagree on the words, and some say `stop` after calls.
fn finish(reason: Option<&str>, has_calls: bool) -> Finish {
    match reason {
        Some("length" | "max_tokens" | "MAX_TOKENS") => Finish::Length,
        Some("content_filter" | "refusal" | "safety" | "SAFETY") => Finish::ContentFilter,
        None
        | Some("stop" | "STOP" | "end_turn" | "eos" | "stop_sequence" | "tool_calls" | "function_call" | "tool_use") => {
            if has_calls {
                Finish::ToolCalls
            } else {
                Finish::Stop
            }
        }
        Some(other) => Finish::Unknown(without_nul(other.to_owned())),
    }
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let count = |paths: &[&str]| paths.iter().find_map(|path| usage.pointer(path)?.as_u64());
    let input = count(&["/prompt_tokens", "/input_tokens"]);
    let output = count(&["/completion_tokens", "/output_tokens"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    Some(TokenUsage {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        cached_input: count(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"]).unwrap_or(0),
        reasoning: count(&["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]).unwrap_or(0),
    })
}
