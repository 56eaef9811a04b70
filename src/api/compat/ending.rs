//! How a turn came out, in the words of the original: completed, partial, failed,
//! and the text that stands in for an answer where there is none.

use serde_json::{Value, json};

use super::conversation::WAITS;
use super::{handed, ids, question};
use crate::guard::redact::{Mode, redact};
use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::call::Execution;
use crate::model::message::{FinishReason, Message, Role, text_of};
use crate::model::question::{Question, QuestionStatus};
use crate::model::turn::{StopReason, Turn, TurnStatus, Usage};
use crate::store::Story;

/// What became of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::api) struct Ending {
    /// `stop`, `length` or `error`.
    pub finish_reason: &'static str,
    pub completed: bool,
    pub partial: bool,
    pub failed: bool,
    pub error: Option<String>,
    pub error_code: Option<&'static str>,
}

impl Ending {
    /// Of a turn that is over. `said`: the client was shown some text; `cut`: the
    /// last answer ended at its length limit.
    pub(in crate::api) fn of(turn: &Turn, said: bool, cut: bool) -> Self {
        let whole = Self {
            finish_reason: "stop",
            completed: true,
            partial: false,
            failed: false,
            error: None,
            error_code: None,
        };
        let cut = cut || turn.stop_reason == Some(StopReason::MaxSteps);
        match turn.status {
            TurnStatus::Completed if cut => Self {
                finish_reason: "length",
                completed: false,
                partial: true,
                error: Some("the answer was truncated at a limit".to_owned()),
                error_code: Some("output_truncated"),
                ..whole
            },
            TurnStatus::Completed => whole,
            status => Self {
                finish_reason: "error",
                completed: false,
                partial: said,
                failed: true,
                error: Some(why(turn)),
                error_code: Some(match status {
                    TurnStatus::Failed => "agent_error",
                    TurnStatus::Cancelled => "cancelled",
                    _ => "interrupted",
                }),
            },
        }
    }

    /// The object that strict clients want beside a finish that is not `stop`.
    pub(in crate::api) fn hermes(&self) -> Value {
        json!({"completed": self.completed, "partial": self.partial, "failed": self.failed, "error": self.error,
            "error_code": self.error_code})
    }
}

/// Why a turn did not complete, without secrets.
pub(in crate::api) fn why(turn: &Turn) -> String {
    let text = match (&turn.error, turn.status, turn.stop_reason) {
        (Some(problem), ..) => problem.detail.clone(),
        (None, TurnStatus::Cancelled, Some(StopReason::ClientDisconnected)) => {
            "the turn was cancelled: its client left".to_owned()
        }
        (None, TurnStatus::Cancelled, _) => "the turn was cancelled".to_owned(),
        (None, TurnStatus::Interrupted | TurnStatus::RolledBack, _) => {
            "the turn was interrupted by a new message".to_owned()
        }
        (None, _, Some(reason)) => format!("the turn ended: {}", json!(reason).as_str().unwrap_or("failed")),
        (None, ..) => "the turn failed".to_owned(),
    };
    redact(&text, Mode::Egress)
}

/// The last answer of the model that says something.
pub(in crate::api) fn last_text(messages: &[Message]) -> Option<String> {
    let answers = messages.iter().rev().filter(|message| message.role == Role::Assistant);
    answers
        .filter(|message| message.finish_reason != Some(FinishReason::Incomplete))
        .map(|message| text_of(&message.content))
        .find(|text| !text.is_empty())
}

pub(in crate::api) fn is_cut(messages: &[Message]) -> bool {
    let last = messages.iter().rfind(|message| message.role == Role::Assistant);
    last.is_some_and(|message| message.finish_reason == Some(FinishReason::Length))
}

pub(in crate::api) fn pending(approvals: &[Approval]) -> Vec<&Approval> {
    let pending = approvals
        .iter()
        .filter(|approval| approval.status == ApprovalStatus::Pending);
    pending.collect()
}

/// What is said in place of an answer while somebody is asked.
pub(in crate::api) fn waits(story: &Story) -> String {
    let run = ids::run(story.turn.turn_id);
    let asked = pending(&story.approvals).into_iter().map(|approval| {
        format!(
            "{WAITS}approval {}: {}. Decide with POST /v1/approvals/{}/decision; GET /v1/runs/{run} then has the answer.]",
            approval.id,
            redact(&approval.title, Mode::Egress),
            approval.id,
        )
    });
    let questions = questions(story).into_iter().map(|question| {
        format!(
            "{WAITS}an answer to {}: {}{} Answer with POST /v1/questions/{}/answer; GET /v1/runs/{run} then has what \
             follows.]",
            question.id,
            redact(&question.question, Mode::Egress),
            match question.choices.is_empty() {
                true => String::new(),
                false => format!(" ({})", redact(&question.choices.join(" / "), Mode::Egress)),
            },
            question.id,
        )
    });
    let calls = handed::out(&story.messages).into_iter();
    let calls = calls.filter(|call| call.execution == Execution::Client).map(|call| {
        format!(
            "{WAITS}the result of {} ({}). Give it with POST /v1/sessions/{}/tool-results; GET /v1/runs/{run} then has \
             the answer.]",
            call.id, call.name, story.session.id,
        )
    });
    asked.chain(questions).chain(calls).collect::<Vec<_>>().join("\n")
}

/// The questions that nobody answered yet.
pub(in crate::api) fn questions(story: &Story) -> Vec<&Question> {
    let asked = story.questions.iter();
    asked
        .filter(|question| question.status == QuestionStatus::Pending)
        .collect()
}

/// Whether the turn waits for somebody outside; one that waits for its children
/// goes on by itself.
pub(in crate::api) fn is_at_rest(story: &Story) -> bool {
    let waits = story.turn.status == TurnStatus::Waiting;
    waits && !(pending(&story.approvals).is_empty() && handed::out(&story.messages).is_empty())
}

/// The word for what a turn at rest waits for first.
pub(in crate::api) fn rest_status(story: &Story) -> &'static str {
    match pending(&story.approvals).is_empty() {
        false => "waiting_for_approval",
        true => "waiting_for_input",
    }
}

/// What a turn at rest waits for, in fields of an answer that is not streamed.
pub(in crate::api) fn awaited(story: &Story) -> Value {
    let asked: Vec<Value> = pending(&story.approvals).into_iter().map(question::request).collect();
    let questions: Vec<Value> = questions(story).into_iter().map(handed::question).collect();
    let calls = handed::client_calls(story);
    let code = match (asked.is_empty(), questions.is_empty()) {
        (false, _) => "approval_required",
        (true, false) => "answer_required",
        (true, true) => "tool_results_required",
    };
    json!({"completed": false, "partial": true, "failed": false, "error": null, "error_code": code,
        "approvals": asked, "questions": questions, "tool_calls": calls})
}

/// Names of the style of chat completions.
pub(in crate::api) fn chat_usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    })
}

/// Names of the style of runs and responses.
pub(in crate::api) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}
