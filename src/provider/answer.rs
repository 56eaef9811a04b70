//! What a language model answers, while it streams ([`Delta`]) and when it is
//! whole ([`Answer`]). The joined deltas of a channel equal the answer's text of
//! that channel byte for byte, whatever the upstream server did.

use super::Call;
pub use crate::model::usage::TokenUsage;

/// A piece of the answer, handed over the moment it is known to belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// May be empty: the model said nothing, or only repeated its reasoning.
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<Call>,
    pub finish: Finish,
    /// `None` when the upstream server does not count.
    pub usage: Option<TokenUsage>,
    /// The upstream server's own id, for its support desk.
    pub response_id: Option<String>,
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    Stop,
    /// Cut by the length limit: the last call, if any, may be incomplete.
    Length,
    ToolCalls,
    ContentFilter,
    /// A reason this server does not know, as the upstream server wrote it.
    Unknown(String),
}

/// What had arrived when an attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    pub text: String,
    pub reasoning: String,
}
