//! What went wrong, as clients see it: an RFC 9457 problem. The same object is
//! the body of an error answer and the `error` of a failed turn. The codes are
//! a closed list; which status goes with a code is decided here and only here.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Every code a client can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    InvalidRequest,
    InvalidCursor,
    ChoiceNotOffered,
    Unauthenticated,
    Forbidden,
    HostNotAllowed,
    OriginNotAllowed,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    SessionBusy,
    ProcessNotReady,
    SessionIsChild,
    TurnNotActive,
    ExternalIdTaken,
    ApprovalResolved,
    ApprovalExpired,
    ApprovalStale,
    QuestionResolved,
    ToolCallNotWaiting,
    ToolCallSettled,
    CheckpointNotRestorable,
    IdempotencyInFlight,
    PreconditionFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    RangeNotSatisfiable,
    EditInvalid,
    EditNotAllowed,
    IdempotencyKeyReused,
    QueueFull,
    KeyTurnLimit,
    TenantTurnLimit,
    ServerTurnLimit,
    KeyRateLimit,
    TenantRateLimit,
    ServerRateLimit,
    RequestTimeout,
    HeadersTooLarge,
    Internal,
    StoreUnavailable,
    IssuerUnavailable,
    Draining,
    UpstreamUnreachable,
    UpstreamAuthentication,
    UpstreamUnknownModel,
    UpstreamRateLimited,
    UpstreamBilling,
    UpstreamTimeout,
    UpstreamInterrupted,
    UpstreamRefused,
    UpstreamContextTooLong,
    UpstreamInvalidRequest,
    UpstreamError,
    ModelAnswerInvalid,
    /// The turn repeated what does not work (`tool_loop_guardrails`).
    ToolLoop,
    RecoveryExhausted,
    EnvironmentLost,
    TurnTimeout,
}

impl ProblemCode {
    /// The HTTP status that goes with the code.
    pub fn status(self) -> u16 {
        use ProblemCode::*;
        match self {
            InvalidRequest | InvalidCursor | ChoiceNotOffered => 400,
            Unauthenticated => 401,
            Forbidden | HostNotAllowed | OriginNotAllowed => 403,
            NotFound => 404,
            MethodNotAllowed => 405,
            NotAcceptable => 406,
            RequestTimeout => 408,
            SessionBusy
            | ProcessNotReady
            | SessionIsChild
            | TurnNotActive
            | ExternalIdTaken
            | ApprovalResolved
            | ApprovalExpired
            | ApprovalStale
            | QuestionResolved
            | ToolCallNotWaiting
            | ToolCallSettled
            | CheckpointNotRestorable
            | IdempotencyInFlight => 409,
            PreconditionFailed => 412,
            PayloadTooLarge => 413,
            UnsupportedMediaType => 415,
            RangeNotSatisfiable => 416,
            EditInvalid | EditNotAllowed | IdempotencyKeyReused => 422,
            QueueFull | KeyTurnLimit | TenantTurnLimit | ServerTurnLimit | KeyRateLimit | TenantRateLimit
            | ServerRateLimit => 429,
            HeadersTooLarge => 431,
            Internal | RecoveryExhausted => 500,
            UpstreamUnreachable
            | UpstreamAuthentication
            | UpstreamUnknownModel
            | UpstreamRateLimited
            | UpstreamBilling
            | UpstreamInterrupted
            | UpstreamRefused
            | UpstreamContextTooLong
            | UpstreamInvalidRequest
            | UpstreamError
            | ModelAnswerInvalid
            | ToolLoop => 502,
            StoreUnavailable | IssuerUnavailable | Draining | EnvironmentLost => 503,
            UpstreamTimeout | TurnTimeout => 504,
        }
    }

    /// A few words for `title`.
    pub fn title(self) -> &'static str {
        use ProblemCode::*;
        match self {
            InvalidRequest => "The request is not valid",
            InvalidCursor => "The cursor is not valid",
            ChoiceNotOffered => "The choice is not offered",
            Unauthenticated => "No valid credentials",
            Forbidden => "Not permitted",
            HostNotAllowed => "The Host header is not allowed",
            OriginNotAllowed => "The Origin header is not allowed",
            NotFound => "Not found",
            MethodNotAllowed => "The method is not allowed here",
            NotAcceptable => "No acceptable representation",
            SessionBusy => "The session is busy",
            ProcessNotReady => "The process takes no input",
            RangeNotSatisfiable => "The range is not in the file",
            SessionIsChild => "The session does delegated work",
            TurnNotActive => "The turn has ended or is being cancelled",
            ExternalIdTaken => "The external id is in use",
            ApprovalResolved => "The approval was decided already",
            ApprovalExpired => "The approval has expired",
            ApprovalStale => "The approval no longer matches what was shown",
            QuestionResolved => "The question is settled already",
            ToolCallNotWaiting => "The call does not wait for a result of the client",
            ToolCallSettled => "The call has its result already",
            CheckpointNotRestorable => "The checkpoint cannot be restored",
            IdempotencyInFlight => "The same request is still being carried out",
            PreconditionFailed => "The precondition does not hold",
            PayloadTooLarge => "The body is too large",
            UnsupportedMediaType => "The media type is not supported",
            EditInvalid => "The edited arguments do not fit the tool",
            EditNotAllowed => "The edited arguments may not be run",
            IdempotencyKeyReused => "The idempotency key belongs to another request",
            QueueFull => "The session's queue is full",
            KeyTurnLimit => "The key has as many executing turns as it may",
            TenantTurnLimit => "The tenant has as many executing turns as it may",
            ServerTurnLimit => "The server has as many executing turns as it may",
            KeyRateLimit => "The key sends requests too fast",
            TenantRateLimit => "The tenant sends requests too fast",
            ServerRateLimit => "The server gets requests too fast",
            RequestTimeout => "The request took too long to arrive",
            HeadersTooLarge => "The headers are too large",
            Internal => "Internal error",
            StoreUnavailable => "The store is unavailable",
            IssuerUnavailable => "The keys of the token's issuer cannot be read",
            Draining => "The server is shutting down",
            UpstreamUnreachable => "The model server cannot be reached",
            UpstreamAuthentication => "The model server refused the credentials",
            UpstreamUnknownModel => "The model server does not know the model",
            UpstreamRateLimited => "The model server limits requests",
            UpstreamBilling => "The model account has no credit",
            UpstreamTimeout => "The model server went silent",
            UpstreamInterrupted => "The model's answer broke off",
            UpstreamRefused => "The model server filtered the content",
            UpstreamContextTooLong => "The conversation exceeds the model's window",
            UpstreamInvalidRequest => "The model server rejected the request",
            UpstreamError => "The model server failed",
            ModelAnswerInvalid => "The model's answer cannot be used",
            ToolLoop => "The turn went round in circles",
            RecoveryExhausted => "The turn could not be recovered",
            EnvironmentLost => "The session's environment is gone",
            TurnTimeout => "The turn exceeded its time",
        }
    }
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldProblem {
    /// JSON pointer into the body, or the name of a parameter or header.
    pub pointer: String,
    pub detail: String,
}

/// A problem object (`application/problem+json`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Stable URI reference of the code.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    pub code: ProblemCode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// What else the code carries: the running turn, pending approvals, the
    /// winning decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<serde_json::Value>,
}

impl Problem {
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        let name = serde_json::to_value(code).ok();
        let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or("internal");
        Self {
            kind: format!("/problems/{name}"),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code,
            request_id: None,
            errors: Vec::new(),
            context: None,
        }
    }

    pub fn with_field(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.errors.push(FieldProblem {
            pointer: pointer.into(),
            detail: detail.into(),
        });
        self
    }

    pub fn with_context(mut self, context: serde_json::Value) -> Self {
        self.context = Some(context);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_code_everywhere() {
        let problem = Problem::new(ProblemCode::SessionBusy, "busy");
        assert_eq!((problem.status, problem.kind.as_str()), (409, "/problems/session_busy"));
    }
}
