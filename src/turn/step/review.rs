//! What follows from a model's review of a pending approval. It answers like a
//! person, for one call; where it does not allow, a person is asked.

use super::{DecisionIn, Step};
use crate::guard::smart::Answer;
use crate::model::approval::{Approval, Choice, HUMAN, Review, ReviewVerdict, SMART};
use crate::model::event::EventType;
use crate::model::id::ApprovalId;
use crate::model::record::ReviewUpdate;
use crate::model::usage::{Spent, UsageRecord};

/// A review that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewIn {
    pub approval: ApprovalId,
    pub model: String,
    /// Nothing when it did not answer in time, or not at all.
    pub answer: Option<Answer>,
    pub spent: Option<Spent>,
}

impl Step<'_> {
    pub fn review(&mut self, input: ReviewIn) {
        self.touched = true;
        let pending = self.state.pending().find(|approval| approval.id == input.approval);
        let reviewed = pending.filter(|approval| approval.reviewer == SMART).cloned();
        self.spend_on_review(input.spent);
        // Somebody was faster.
        let Some(approval) = reviewed else { return };
        let review = Review {
            verdict: match input.answer {
                Some(Answer::Approve) => ReviewVerdict::Approve,
                Some(Answer::Deny) => ReviewVerdict::Deny,
                Some(Answer::Escalate) => ReviewVerdict::Escalate,
                None => ReviewVerdict::Failed,
            },
            model: input.model,
            at: self.world.now,
        };
        let approves = input.answer == Some(Answer::Approve);
        let denies = input.answer == Some(Answer::Deny);
        let narrow = [Choice::Once, Choice::Deny];
        let choices = approval.choices.iter().copied();
        let after = Approval {
            reviewer: if approves { SMART } else { HUMAN }.to_owned(),
            choices: choices.filter(|choice| !denies || narrow.contains(choice)).collect(),
            review: Some(review.clone()),
            ..approval
        };
        self.writes.reviews.push(ReviewUpdate {
            approval_id: after.id,
            reviewer: after.reviewer.clone(),
            choices: after.choices.clone(),
            review,
        });
        if let Some(own) = self.state.approvals.iter_mut().find(|own| own.id == after.id) {
            *own = after.clone();
        }
        if approves {
            self.decide(after.id, by_review());
        } else {
            // Asked anew, of a person now.
            let event = self.approval_event(EventType::ApprovalRequested, &after);
            self.writes.events.push(event);
        }
    }

    /// A turn that is over has told its sums; what came too late is only counted.
    fn spend_on_review(&mut self, spent: Option<Spent>) {
        let Some(spent) = spent else { return };
        if !self.state.turn.status.is_terminal() {
            return self.spend(spent);
        }
        self.touched = false;
        self.writes.usage.push(UsageRecord {
            usage_id: self.world.id(),
            session_id: self.state.session.session_id,
            turn_id: self.state.turn.turn_id,
            user_id: self.state.turn.user_id.clone(),
            spent,
            at: self.world.now,
        });
    }
}

fn by_review() -> DecisionIn {
    DecisionIn {
        choice: Choice::Once,
        reason: None,
        by: SMART.to_owned(),
        stop_turn: false,
        edit: None,
        limits: None,
    }
}
