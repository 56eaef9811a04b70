//! What the frames of a stream itself say: where it begins, where the log begins,
//! and that it is alive. Nothing of them is stored.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::Timestamp;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HelloData {
    pub head_seq: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResetData {
    /// The oldest event that is still kept.
    pub oldest_seq: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatData {
    pub at: Timestamp,
}
