//! Calls that are not run here: what a call waits for in place of a run. It is
//! said before anything starts, under the session's lock, so that the call is
//! stored as waiting in the very transaction that would have started it: a
//! parked call has no moment in which it might have run.

use super::error_text;
use crate::model::lineage::Task;

/// What a call waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Park {
    /// A person answers.
    Question(Ask),
    /// Child sessions do these tasks.
    Children(Vec<Task>),
    /// The client that brought the tool gives the result.
    Client,
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    pub question: String,
    /// Answers that the model proposes.
    pub choices: Vec<String>,
}

/// What the tool answers where nothing could wait for it: within a program that
/// calls tools, say.
pub fn not_here(tool: &str) -> String {
    error_text::envelope(&format!("{tool} must be handled by the agent loop"))
}
