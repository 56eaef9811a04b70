//! Who watches: a caller as everywhere, or the bearer of a stream token in the
//! query, for browsers, whose `EventSource` sends no headers. Only streams take
//! tokens, and only the stream that a token names.

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::model::id::SessionId;
use crate::model::principal::{Principal, Scope, Scopes};
use crate::model::problem::ProblemCode;

use super::auth::stream_token::{self, Pass, Subject};
use super::caller::Caller;
use super::failure::Failure;
use super::lifetime::Lifetime;
use super::state::ApiState;

/// The name of the parameter.
pub(super) const PARAMETER: &str = "token";

/// Not yet known to be allowed to watch anything.
pub(super) struct Viewer {
    caller: Caller,
    /// Of a token: what it is for.
    subject: Option<Subject>,
}

impl Viewer {
    /// The caller, who may watch this session.
    pub(super) fn of_session(self, session: SessionId) -> Result<Caller, Failure> {
        self.of(Subject::Session(session))
    }

    /// The caller, who may watch what the tenant's lists show.
    pub(super) fn of_tenant(self) -> Result<Caller, Failure> {
        self.of(Subject::Tenant)
    }

    fn of(self, subject: Subject) -> Result<Caller, Failure> {
        if self.subject.is_some_and(|own| own != subject) {
            let detail = "the stream token is for another stream; ask for one for this";
            return Err(Failure::new(ProblemCode::Forbidden, detail));
        }
        self.caller.require(Scope::SessionsRead)?;
        Ok(self.caller)
    }
}

impl FromRequestParts<ApiState> for Viewer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Failure> {
        let query = parts.uri.query().unwrap_or_default();
        let token = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == PARAMETER);
        match token {
            Some((_, token)) if !parts.headers.contains_key(AUTHORIZATION) => of_token(state, &token).await,
            _ => Ok(Self {
                caller: Caller::from_request_parts(parts, state).await?,
                subject: None,
            }),
        }
    }
}

async fn of_token(state: &ApiState, token: &str) -> Result<Viewer, Failure> {
    let refused = |detail: &str| Failure::new(ProblemCode::Unauthenticated, detail);
    let pass = stream_token::read(state.store.cursor_key(), token)?
        .ok_or_else(|| refused("the stream token is not one of this server"))?;
    if pass.expires_at <= state.clock().now() {
        return Err(refused("the stream token has expired; ask for a new one"));
    }
    let subject = pass.subject;
    let caller = caller(state, pass)?;
    if !Lifetime::of(state, &caller).holds().await {
        return Err(refused(
            "the key or token that the stream token was made with has ended",
        ));
    }
    Ok(Viewer {
        caller,
        subject: Some(subject),
    })
}

/// The token's maker, who may do nothing but read.
fn caller(state: &ApiState, pass: Pass) -> Result<Caller, Failure> {
    let all = pass.whole_tenant.then_some(Scope::TenantAll);
    let principal = Principal {
        tenant: pass.tenant,
        user: pass.user,
        scopes: Scopes::from_iter([Scope::SessionsRead].into_iter().chain(all)),
        key: pass.key,
        tools: None,
    };
    Caller::recognised(state, principal, pass.until)
}
