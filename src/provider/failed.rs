//! Why a model call failed, in the few kinds that callers treat differently. The
//! message may be shown to a client: it never carries the key, credentials of an
//! address, or an upstream page.

use std::time::Duration;

use super::Partial;

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    pub kind: FailureKind,
    pub message: String,
    /// The upstream status, also one named inside a stream that began with 200.
    pub status: Option<u16>,
    /// How long the upstream server asks to wait.
    pub retry_after: Option<Duration>,
    /// Set once anything of an answer had arrived (both texts may still be
    /// empty, if it was only part of a call). Such an attempt is never repeated.
    pub partial: Option<Box<Partial>>,
}

impl Failed {
    /// A failure before anything arrived.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            partial: None,
        }
    }
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// No connection: refused, no such host, no route.
    Unreachable,
    /// Connected, but the certificate does not hold.
    Untrusted,
    /// The key is missing, wrong or not allowed to do this.
    Unauthenticated,
    UnknownModel,
    /// No credit left.
    Billing,
    RateLimited,
    Overloaded,
    ServerError,
    ContextTooLong,
    ContentFiltered,
    InvalidRequest,
    /// Nothing came for longer than the idle timeout.
    Timeout,
    /// The stream broke off before the answer was whole.
    Interrupted,
    /// What came is not what the protocol allows, or more than is accepted.
    Malformed,
}

impl FailureKind {
    /// What an HTTP status says by itself; the body may say it more precisely.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Unauthenticated,
            402 => Self::Billing,
            404 => Self::UnknownModel,
            408 => Self::Timeout,
            // Conflicts and "too early" pass by themselves, as load does; 529 is
            // how some vendors say overloaded.
            409 | 425 | 503 | 529 => Self::Overloaded,
            413 => Self::ContextTooLong,
            429 => Self::RateLimited,
            500..=599 => Self::ServerError,
            _ => Self::InvalidRequest,
        }
    }
}
