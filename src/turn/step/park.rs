//! Calls that are not run here: handed over in the step that would have started
//! them, and settled by whoever has them. Meanwhile they are rows that wait, as
//! a call waits for a decision.

use serde_json::{Value, json};

use super::Step;
use crate::model::approval::OnAsk;
use crate::model::call::{CallStatus, Execution};
use crate::model::event::EventType;
use crate::model::id::{CallId, QuestionId};
use crate::model::question::{Question, QuestionAnswer, QuestionStatus};
use crate::model::record::{CallRecord, NewEvent, QuestionUpdate};
use crate::model::turn::TurnStatus;
use crate::tool::error_text;
use crate::tool::park::{Ask, Park};

/// Nobody is there to be asked.
const UNATTENDED: &str = "clarify is not available in this execution context: nobody is there to answer";

/// What the client says came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientResult {
    pub call_id: CallId,
    pub output: String,
    pub is_error: bool,
}

impl Step<'_> {
    /// What a call that may start now waits for in place of a run; `None` is run
    /// here. The error is its result.
    pub(super) fn waits_for(&self, call: &CallRecord) -> Option<Result<Park, String>> {
        match call.execution {
            Execution::Server => None,
            Execution::Client => Some(Ok(Park::Client)),
            Execution::Person if self.world.rules.on_ask == OnAsk::Deny => Some(Err(error_text::envelope(UNATTENDED))),
            Execution::Children => {
                let tool = self.world.tools.get(&call.name)?;
                Some(
                    tool.park(call.effective_arguments())
                        .and_then(|park| self.delegable(park)),
                )
            }
            Execution::Person => {
                let tool = self.world.tools.get(&call.name)?;
                Some(tool.park(call.effective_arguments()))
            }
        }
    }

    /// Hands a call over: from now on whoever carries it out has it.
    pub(super) fn hand_over(&mut self, id: CallId, park: Park) {
        let now = self.world.now;
        if let Some(call) = self.call_mut(id) {
            call.started_at = Some(now);
        }
        self.mark(id, CallStatus::Waiting);
        self.push_call_event(EventType::ToolCallStarted, id);
        match park {
            Park::Client => {}
            Park::Question(ask) => self.put_question(id, ask),
            Park::Children(tasks) => self.delegate(id, tasks),
        }
    }

    fn put_question(&mut self, call: CallId, ask: Ask) {
        let question = Question {
            id: self.world.id(),
            session_id: self.state.session.session_id,
            turn_id: self.state.turn.turn_id,
            tool_call_id: call,
            status: QuestionStatus::Pending,
            question: ask.question,
            choices: ask.choices,
            asked_at: self.world.now,
            expires_at: self.until(self.world.rules.clarify_timeout_ms),
            answer: None,
        };
        let event = self.question_event(EventType::QuestionAsked, &question);
        self.writes.events.push(event);
        self.writes.new_questions.push(question.clone());
        self.state.questions.push(question);
    }

    fn question_event(&self, kind: EventType, question: &Question) -> NewEvent {
        let state = json!({"status": question.status, "answer": question.answer});
        self.event(kind, json!({"question_id": question.id, "state": state}))
    }

    /// Gives a pending question its answer, and goes on.
    pub fn answer_question(&mut self, id: QuestionId, answer: QuestionAnswer) {
        let Some(question) = self.settle_question(id, QuestionStatus::Answered, Some(answer)) else {
            return;
        };
        let text = told(&question, None);
        self.settle_call(
            question.tool_call_id,
            CallStatus::Succeeded,
            EventType::ToolCallCompleted,
            text,
        );
        self.woken_by = "answered";
        self.settle();
    }

    /// Settles a pending question that nobody answered in time.
    pub fn expire_question(&mut self, id: QuestionId) {
        let Some(question) = self.settle_question(id, QuestionStatus::Expired, None) else {
            return;
        };
        let why = "Nobody answered in time. Go on with your best judgement, and say what you assumed.";
        let text = told(&question, Some(why));
        self.settle_call(
            question.tool_call_id,
            CallStatus::Failed,
            EventType::ToolCallCompleted,
            text,
        );
        self.woken_by = "answered";
        self.settle();
    }

    /// The turn ends: its questions are over.
    pub(super) fn cancel_questions(&mut self) {
        let pending = self.state.pending_questions();
        let pending: Vec<QuestionId> = pending.map(|question| question.id).collect();
        for id in pending {
            self.settle_question(id, QuestionStatus::Cancelled, None);
        }
    }

    /// `None` when the question is not pending.
    fn settle_question(
        &mut self,
        id: QuestionId,
        status: QuestionStatus,
        answer: Option<QuestionAnswer>,
    ) -> Option<Question> {
        let pending = |own: &&mut Question| own.id == id && own.status == QuestionStatus::Pending;
        let question = self.state.questions.iter_mut().find(pending)?;
        (question.status, question.answer) = (status, answer);
        let question = question.clone();
        let kind = match status {
            QuestionStatus::Answered => EventType::QuestionAnswered,
            QuestionStatus::Expired => EventType::QuestionExpired,
            QuestionStatus::Pending | QuestionStatus::Cancelled => EventType::QuestionCancelled,
        };
        let event = self.question_event(kind, &question);
        self.writes.events.push(event);
        self.writes.questions.push(QuestionUpdate {
            question_id: id,
            status,
            answer: question.answer.clone(),
        });
        Some(question)
    }

    /// Stores what the client gave back, and goes on. The calls are its own and
    /// wait for it.
    pub fn client_results(&mut self, results: Vec<ClientResult>) {
        for result in results {
            let status = match result.is_error {
                true => CallStatus::Failed,
                false => CallStatus::Succeeded,
            };
            self.settle_call(result.call_id, status, EventType::ToolCallCompleted, result.output);
        }
        self.woken_by = "tool_results";
        self.settle();
    }

    /// What the transcript says of a call that somebody had when its turn ended.
    pub(super) fn unreturned(&self, call: &CallRecord, ending: TurnStatus, why: &str) -> Option<(CallStatus, String)> {
        if !call.is_handed_over() {
            return None;
        }
        Some(match call.execution {
            Execution::Children => {
                let text = format!("[Interrupted: {why} while the delegated work was under way; it was stopped too.]");
                (CallStatus::Cancelled, text)
            }
            Execution::Client => {
                let text = format!(
                    "[No result: {why} before the client gave one. The effect is unknown: it may have happened.]"
                );
                (CallStatus::Unknown, text)
            }
            _ if ending == TurnStatus::Completed => (CallStatus::Cancelled, "[Not answered.]".to_owned()),
            _ => (CallStatus::Cancelled, format!("[Not answered: {why}.]")),
        })
    }
}

/// The result of a question, as the model reads it.
fn told(question: &Question, error: Option<&str>) -> String {
    let answer = question.answer.as_ref().map(|answer| answer.text.as_str());
    let mut result = json!({"question": question.question, "choices_offered": question.choices,
        "user_response": answer});
    if let (Some(fields), Some(error)) = (result.as_object_mut(), error) {
        fields.insert("error".to_owned(), Value::from(error));
    }
    result.to_string()
}
