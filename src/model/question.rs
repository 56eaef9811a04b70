//! A question that the model asks a person: a parked call with words in place of
//! a decision. It never changes but for its status and answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::id::{CallId, QuestionId, SessionId, TurnId};
use crate::base::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionStatus {
    Pending,
    Answered,
    /// Nobody answered in time; the model was told so.
    Expired,
    /// Its turn ended without an answer.
    Cancelled,
}

impl QuestionStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuestionAnswer {
    pub text: String,
    /// Who answered: the principal's user id.
    pub by: String,
    pub at: Timestamp,
}

/// A question as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Question {
    pub id: QuestionId,
    pub session_id: SessionId,
    pub turn_id: TurnId,
    pub tool_call_id: CallId,
    pub status: QuestionStatus,
    pub question: String,
    /// Answers that the model proposes; another is an answer too.
    pub choices: Vec<String>,
    pub asked_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub answer: Option<QuestionAnswer>,
}
