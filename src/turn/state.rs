//! The record a turn is decided from: the session under its lock, the turn, the
//! calls of its newest answer and their approvals.

use crate::model::approval::{Approval, ApprovalStatus};
use crate::model::budget::Budget;
use crate::model::call::{CallStatus, Execution};
use crate::model::id::CallId;
use crate::model::job::Job;
use crate::model::memory::Memories;
use crate::model::question::{Question, QuestionStatus};
use crate::model::record::{CallRecord, SessionRecord, TurnRecord};
use crate::model::session::RequiredAction;
use crate::model::trace::Trace;

/// Calls of one answer that run at once (Hermes: 8 workers).
const MAX_AT_ONCE: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub session: SessionRecord,
    pub turn: TurnRecord,
    /// Calls of the newest answer that made any, in order; behind them those that
    /// their programs make.
    pub calls: Vec<CallRecord>,
    /// Approvals of this turn, oldest first.
    pub approvals: Vec<Approval>,
    /// What delegated work asks at this turn and nobody has answered.
    pub risen: Vec<Approval>,
    /// Questions of this turn, oldest first, while one of its calls waits for a
    /// person.
    pub questions: Vec<Question>,
    /// How far the turn's budgets are used, as of the transaction that decides.
    pub budgets: Vec<Budget>,
    /// Nothing waited behind this turn when the log ended where the session says;
    /// `false` says nothing.
    pub queue_is_empty: bool,
    /// The jobs of the user; only where something is done with them.
    pub jobs: Vec<Job>,
    /// Changes of the user that wait for a person; only where one is added.
    pub waiting_writes: usize,
    /// What is remembered of the user; only where something is made of it.
    pub memories: Memories,
}

impl State {
    /// A turn that asked the model for nothing yet.
    pub fn fresh(session: SessionRecord, turn: TurnRecord) -> Self {
        Self {
            session,
            turn,
            calls: Vec::new(),
            approvals: Vec::new(),
            risen: Vec::new(),
            questions: Vec::new(),
            budgets: Vec::new(),
            queue_is_empty: false,
            jobs: Vec::new(),
            waiting_writes: 0,
            memories: Memories::default(),
        }
    }

    /// Budgets that the next model call would cross.
    pub fn exceeded(&self) -> impl Iterator<Item = &Budget> {
        let next = self.turn.progress.foreseen;
        self.budgets.iter().filter(move |budget| budget.is_exceeded(next))
    }

    pub fn call(&self, id: CallId) -> Option<&CallRecord> {
        self.calls.iter().find(|call| call.call_id == id)
    }

    /// What hooks did to a call before it was stored.
    pub fn trace_of(&self, id: CallId) -> &[Trace] {
        self.turn.progress.traces.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The newest approval of a call.
    pub fn approval_of(&self, id: CallId) -> Option<&Approval> {
        self.approvals
            .iter()
            .rev()
            .find(|approval| approval.tool_call_id == Some(id))
    }

    pub fn pending(&self) -> impl Iterator<Item = &Approval> {
        self.approvals
            .iter()
            .filter(|approval| approval.status == ApprovalStatus::Pending)
    }

    pub fn pending_questions(&self) -> impl Iterator<Item = &Question> {
        let questions = self.questions.iter();
        questions.filter(|question| question.status == QuestionStatus::Pending)
    }

    /// Calls that the client has.
    pub fn with_client(&self) -> impl Iterator<Item = &CallRecord> {
        let handed_over = |call: &&CallRecord| call.execution == Execution::Client && call.is_handed_over();
        self.calls.iter().filter(handed_over)
    }

    /// Everything that waits for somebody outside, in the order of their ids.
    pub fn required_actions(&self) -> Vec<RequiredAction> {
        let (turn, session) = (self.turn.turn_id, self.session.session_id);
        let approvals = self
            .pending()
            .chain(&self.risen)
            .map(|approval| RequiredAction::approval(approval.id, turn, approval.title.clone(), approval.expires_at));
        let calls = self
            .with_client()
            .map(|call| RequiredAction::client_tool(session, turn, call.call_id, &call.name));
        let questions = self
            .pending_questions()
            .map(|question| RequiredAction::question(question.id, turn, &question.question, question.expires_at));
        approvals.chain(calls).chain(questions).collect()
    }

    pub fn has_open_calls(&self) -> bool {
        self.calls.iter().any(|call| !call.status.is_settled())
    }

    /// Calls that may start now: every earlier segment is settled, and within a
    /// sequential one every earlier call; no more than may run at once.
    pub fn startable(&self) -> Vec<CallId> {
        let ready = |place: usize, call: &CallRecord| {
            // A program waits for each of its calls: nothing is planned.
            if let Some(parent) = call.parent() {
                let runs = self
                    .call(parent)
                    .is_some_and(|parent| parent.status == CallStatus::Running);
                return call.status == CallStatus::Proposed && runs;
            }
            let before = self.calls.iter().take(place);
            call.status == CallStatus::Proposed
                && before
                    .filter(|other| other.segment < call.segment || !call.parallel)
                    .all(|other| other.status.is_settled())
        };
        let running = self.calls.iter().filter(|call| call.status == CallStatus::Running);
        let free = MAX_AT_ONCE.saturating_sub(running.count());
        let calls = self.calls.iter().enumerate();
        calls
            .filter(|(place, call)| ready(*place, call))
            .take(free)
            .map(|(_, call)| call.call_id)
            .collect()
    }
}
