//! What small events tell: lists that changed, a model that is asked again, a
//! result that says too much.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::guard::threat::Risk;
use crate::model::id::CallId;
use crate::model::memory::Target;
use crate::model::problem::Problem;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TodoData {
    #[schema(value_type = Vec<Object>)]
    pub todos: serde_json::Value,
}

/// A list of the user's memory after a call changed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemoryData {
    pub target: Target,
    pub entries: Vec<String>,
}

/// What a scan says of a result that came from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutputRiskData {
    pub tool_call_id: CallId,
    pub tool: String,
    #[serde(flatten)]
    pub found: Risk,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RetryData {
    /// Attempts of this step that failed, from 1.
    pub attempt: u32,
    pub delay_ms: u64,
    pub error: Problem,
}
