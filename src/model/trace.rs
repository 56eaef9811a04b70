//! What hooks did to a call, before it was stored and while it ran: kept with the turn while the
//! call is open, and told to whoever hears of its result.

use serde::{Deserialize, Serialize};

/// One thing that one hook did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The point where it stands.
    pub source: String,
    /// Its own name.
    pub name: String,
    pub action: TraceAction,
    /// Why, in its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceAction {
    /// It put other arguments in the place of the model's, or another result in
    /// that of the call's.
    Replaced,
    /// It refused the call.
    Blocked,
    /// It wants a person to decide.
    Asked,
    /// It answered in the place of the call, which did not run.
    Answered,
    /// It failed and counted for nothing.
    Skipped,
}
