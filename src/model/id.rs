//! The kinds of ids there are. The prefix is the wire form's.

use crate::base::Id;
use crate::base::id::Kind;

/// Marker types: one for each thing that has an id.
pub mod kinds {
    #[derive(Debug)]
    pub struct Tenant;
    #[derive(Debug)]
    pub struct Session;
    #[derive(Debug)]
    pub struct Turn;
    #[derive(Debug)]
    pub struct Message;
    #[derive(Debug)]
    pub struct Call;
    #[derive(Debug)]
    pub struct Approval;
    #[derive(Debug)]
    pub struct Question;
    #[derive(Debug)]
    pub struct PendingWrite;
    #[derive(Debug)]
    pub struct Job;
    #[derive(Debug)]
    pub struct JobRun;
    #[derive(Debug)]
    pub struct Grant;
    #[derive(Debug)]
    pub struct Key;
    #[derive(Debug)]
    pub struct Process;
    /// A process in the background of a session.
    #[derive(Debug)]
    pub struct Background;
    #[derive(Debug)]
    pub struct Node;
    #[derive(Debug)]
    pub struct Request;
    #[derive(Debug)]
    pub struct Artifact;
    #[derive(Debug)]
    pub struct Checkpoint;
    #[derive(Debug)]
    pub struct Audit;
    pub struct Usage;
}

impl Kind for kinds::Tenant {
    const PREFIX: &'static str = "ten";
}
impl Kind for kinds::Session {
    const PREFIX: &'static str = "ses";
}
impl Kind for kinds::Turn {
    const PREFIX: &'static str = "turn";
}
impl Kind for kinds::Message {
    const PREFIX: &'static str = "msg";
}
impl Kind for kinds::Call {
    const PREFIX: &'static str = "call";
}
impl Kind for kinds::Approval {
    const PREFIX: &'static str = "apr";
}
impl Kind for kinds::Question {
    const PREFIX: &'static str = "qst";
}
impl Kind for kinds::PendingWrite {
    const PREFIX: &'static str = "pend";
}
impl Kind for kinds::Job {
    const PREFIX: &'static str = "job";
}
impl Kind for kinds::JobRun {
    const PREFIX: &'static str = "jrun";
}
impl Kind for kinds::Grant {
    const PREFIX: &'static str = "grant";
}
impl Kind for kinds::Key {
    const PREFIX: &'static str = "key";
}
impl Kind for kinds::Process {
    const PREFIX: &'static str = "proc";
}
impl Kind for kinds::Background {
    const PREFIX: &'static str = "proc";
}
impl Kind for kinds::Node {
    const PREFIX: &'static str = "node";
}
impl Kind for kinds::Audit {
    const PREFIX: &'static str = "aud";
}
impl Kind for kinds::Artifact {
    const PREFIX: &'static str = "art";
}
impl Kind for kinds::Checkpoint {
    const PREFIX: &'static str = "chk";
}
impl Kind for kinds::Request {
    const PREFIX: &'static str = "req";
}
impl Kind for kinds::Usage {
    const PREFIX: &'static str = "use";
}

pub type TenantId = Id<kinds::Tenant>;
pub type SessionId = Id<kinds::Session>;
pub type TurnId = Id<kinds::Turn>;
pub type MessageId = Id<kinds::Message>;
pub type CallId = Id<kinds::Call>;
pub type ApprovalId = Id<kinds::Approval>;
pub type QuestionId = Id<kinds::Question>;
pub type PendingWriteId = Id<kinds::PendingWrite>;
pub type JobId = Id<kinds::Job>;
pub type JobRunId = Id<kinds::JobRun>;
pub type GrantId = Id<kinds::Grant>;
pub type KeyId = Id<kinds::Key>;
/// One run of the server.
pub type ProcessId = Id<kinds::Process>;
/// A process in the background of a session.
pub type BackgroundId = Id<kinds::Background>;
/// One data directory; outlives the processes that open it one after another.
pub type NodeId = Id<kinds::Node>;
pub type ArtifactId = Id<kinds::Artifact>;
pub type CheckpointId = Id<kinds::Checkpoint>;
pub type AuditId = Id<kinds::Audit>;
pub type RequestId = Id<kinds::Request>;
/// One call of a model.
pub type UsageId = Id<kinds::Usage>;
