//! Events of a tenant's list streams: what happens to its sessions and
//! approvals, as their own logs say, and frames of the stream itself. Whole
//! objects, so that a list shows them without asking again.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::approval::Approval;
use super::event::{ApprovalData, EventBody, SessionData};
use super::event_types::SESSION_DELETED;
use super::id::{SessionId, TurnId};
use crate::base::Timestamp;

/// How many there are, of those that the caller sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Approvals that wait for a person.
    pub pending: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionDeletedData {
    pub session_id: SessionId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CountsData {
    pub counts: Counts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TenantHeartbeatData {
    pub at: Timestamp,
    pub counts: Counts,
}

/// What happened, by type. The last four are frames of the stream itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", content = "data")]
pub enum TenantEventBody {
    #[serde(rename = "session.created")]
    SessionCreated(SessionData),
    #[serde(rename = "session.updated")]
    SessionUpdated(SessionData),
    #[serde(rename = "session.archived")]
    SessionArchived(SessionData),
    #[serde(rename = "session.status")]
    SessionStatus(SessionData),
    /// With its turns and approvals.
    #[serde(rename = "session.deleted")]
    SessionDeleted(SessionDeletedData),
    #[serde(rename = "approval.requested")]
    ApprovalRequested(ApprovalData),
    #[serde(rename = "approval.resolved")]
    ApprovalResolved(ApprovalData),
    #[serde(rename = "approval.expired")]
    ApprovalExpired(ApprovalData),
    #[serde(rename = "approval.superseded")]
    ApprovalSuperseded(ApprovalData),
    #[serde(rename = "approval.cancelled")]
    ApprovalCancelled(ApprovalData),

    /// The stream begins.
    #[serde(rename = "stream.hello")]
    StreamHello(CountsData),
    /// What was there has been sent; changes follow.
    #[serde(rename = "stream.ready")]
    StreamReady(CountsData),
    /// The reader fell behind: it begins anew, as after the greeting.
    #[serde(rename = "stream.reset")]
    StreamReset(CountsData),
    #[serde(rename = "heartbeat")]
    Heartbeat(TenantHeartbeatData),
}

impl TenantEventBody {
    /// An event of a session's log, if a tenant's lists show it.
    pub fn of(body: EventBody) -> Option<Self> {
        Some(match body {
            EventBody::SessionCreated(data) => Self::SessionCreated(data),
            EventBody::SessionUpdated(data) => Self::SessionUpdated(data),
            EventBody::SessionArchived(data) => Self::SessionArchived(data),
            EventBody::SessionStatus(data) => Self::SessionStatus(data),
            EventBody::ApprovalRequested(data) => Self::ApprovalRequested(data),
            EventBody::ApprovalResolved(data) => Self::ApprovalResolved(data),
            EventBody::ApprovalExpired(data) => Self::ApprovalExpired(data),
            EventBody::ApprovalSuperseded(data) => Self::ApprovalSuperseded(data),
            EventBody::ApprovalCancelled(data) => Self::ApprovalCancelled(data),
            _ => return None,
        })
    }

    /// The name of the type on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionCreated(_) => "session.created",
            Self::SessionUpdated(_) => "session.updated",
            Self::SessionArchived(_) => "session.archived",
            Self::SessionStatus(_) => "session.status",
            Self::SessionDeleted(_) => SESSION_DELETED,
            Self::ApprovalRequested(_) => "approval.requested",
            Self::ApprovalResolved(_) => "approval.resolved",
            Self::ApprovalExpired(_) => "approval.expired",
            Self::ApprovalSuperseded(_) => "approval.superseded",
            Self::ApprovalCancelled(_) => "approval.cancelled",
            Self::StreamHello(_) => "stream.hello",
            Self::StreamReady(_) => "stream.ready",
            Self::StreamReset(_) => "stream.reset",
            Self::Heartbeat(_) => "heartbeat",
        }
    }

    /// The approval that it is about.
    pub fn approval(&self) -> Option<&Approval> {
        match self {
            Self::ApprovalRequested(data)
            | Self::ApprovalResolved(data)
            | Self::ApprovalExpired(data)
            | Self::ApprovalSuperseded(data)
            | Self::ApprovalCancelled(data) => Some(&data.approval),
            _ => None,
        }
    }
}

/// An event of a tenant's stream. It has no place to come back to: a stream
/// that is opened anew begins anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TenantEvent {
    /// Number of the event in its session; `null` for frames of the stream and
    /// for what was there when it began.
    pub seq: Option<i64>,
    #[serde(flatten)]
    pub body: TenantEventBody,
    pub session_id: Option<SessionId>,
    pub turn_id: Option<TurnId>,
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema;

    use super::*;
    use crate::model::event_types::{Types, is_of_tenant};

    /// Every event that lists show has its place here, and nothing else.
    #[test]
    fn what_lists_show_is_told() {
        let schema = |schema: utoipa::openapi::RefOr<utoipa::openapi::Schema>| serde_json::to_value(schema).unwrap();
        let durable = schema(crate::model::event::EventType::schema());
        let durable = durable["enum"].as_array().unwrap().iter();
        let mut expected: Vec<&str> = durable.map(|name| name.as_str().unwrap()).collect();
        expected.retain(|name| is_of_tenant(name));
        expected.extend([
            SESSION_DELETED,
            "stream.hello",
            "stream.ready",
            "stream.reset",
            "heartbeat",
        ]);
        let told = schema(TenantEventBody::schema());
        let told = told["oneOf"].as_array().unwrap().iter();
        let mut told: Vec<&str> = told
            .map(|one| one["properties"]["type"]["enum"][0].as_str().unwrap())
            .collect();
        expected.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, expected);
        assert!(told.iter().all(|name| Types::of_tenant(name).is_ok()));
    }
}
