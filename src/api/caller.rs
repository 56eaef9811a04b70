//! Who calls: an API key or a token in `Authorization` becomes a principal and
//! the part of the store that it may see. Nothing else in a request can name a
//! tenant or a user.

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::base::Timestamp;
use crate::model::audit::Actor;
use crate::model::id::TenantId;
use crate::model::principal::{Principal, Scope, Scopes};
use crate::model::problem::ProblemCode;
use crate::store::keys::KeyRecord;
use crate::store::{self, across_tenants, tenants};

use super::auth::api_key;
use super::auth::jwt::TokenError;
use super::conditions;
use super::failure::Failure;
use super::profiles;
use super::rate;
use super::refusals;
use super::state::ApiState;

/// The user of keys that name none.
const DEFAULT_USER: &str = "default";

/// A recognised caller.
#[derive(Clone)]
pub struct Caller {
    pub principal: Principal,
    /// Only the caller's own rows, unless it sees the whole tenant.
    pub scope: store::Scope,
    /// When the credential expires.
    pub until: Option<Timestamp>,
}

impl Caller {
    /// The caller behind a principal, whatever it was recognised by.
    pub(super) fn recognised(
        state: &ApiState,
        principal: Principal,
        until: Option<Timestamp>,
    ) -> Result<Self, Failure> {
        if let Some(reason) = &state.access.single_tenant
            && principal.tenant != tenants::default_id()
        {
            return Err(Failure::new(
                ProblemCode::Forbidden,
                format!("only the tenant `default` is served here: {reason}"),
            ));
        }
        tracing::Span::current().record("tenant", tracing::field::display(principal.tenant));
        let actor = Actor {
            user: principal.user.clone(),
            key: principal.key,
        };
        let scope = state.store.scope(principal.tenant).by_key(principal.key).acting(actor);
        let scope = if principal.sees_whole_tenant() {
            scope
        } else {
            scope.of_user(principal.user.clone())
        };
        Ok(Self {
            principal,
            scope,
            until,
        })
    }

    /// The first line of every handler.
    pub fn require(&self, scope: Scope) -> Result<(), Failure> {
        if self.principal.scopes.allow(scope) {
            return Ok(());
        }
        Err(Failure::new(
            ProblemCode::Forbidden,
            format!("the key or token lacks the scope `{}`", scope.name()),
        ))
    }

    /// The same caller, for a change that is made only under the request's
    /// conditions.
    pub(super) fn only_if(mut self, headers: &HeaderMap) -> Result<Self, Failure> {
        self.scope = self.scope.only_if(conditions::of(headers)?);
        Ok(self)
    }
}

impl FromRequestParts<ApiState> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Failure> {
        let (principal, until) = principal(state, bearer(&parts.headers)?).await?;
        profiles::check(state, &parts.extensions, &principal).await?;
        let caller = Self::recognised(state, principal, until)?;
        rate::count(state, parts, &caller.principal, &caller.scope).await?;
        Ok(caller)
    }
}

/// A caller, where a credential is shown at all; a wrong one is refused.
pub struct MaybeCaller(pub Option<Caller>);

impl FromRequestParts<ApiState> for MaybeCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Failure> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            return Ok(Self(None));
        }
        Caller::from_request_parts(parts, state)
            .await
            .map(|caller| Self(Some(caller)))
    }
}

fn unauthenticated(detail: impl Into<String>) -> Failure {
    Failure::new(ProblemCode::Unauthenticated, detail)
}

/// The credential of the one `Authorization` header.
fn bearer(headers: &HeaderMap) -> Result<&str, Failure> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (given.next(), given.next()) else {
        return Err(unauthenticated(
            "send an API key or a token in one header `Authorization: Bearer …`",
        ));
    };
    let text = only.to_str().unwrap_or_default();
    let credential = text
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    match credential.map(|(_, credential)| credential.trim()) {
        Some(credential) if !credential.is_empty() => Ok(credential),
        _ => Err(unauthenticated(
            "the header `Authorization` is not of the form `Bearer …`",
        )),
    }
}

/// Who the credential stands for, and until when.
async fn principal(state: &ApiState, credential: &str) -> Result<(Principal, Option<Timestamp>), Failure> {
    let access = &state.access;
    if let Some(key) = &access.environment_key
        && api_key::is_same(credential, key)
    {
        let principal = Principal {
            tenant: tenants::default_id(),
            user: DEFAULT_USER.to_owned(),
            scopes: Scopes::from_iter([Scope::Admin]),
            key: None,
            expires_at: None,
            tools: None,
        };
        return Ok((principal, None));
    }
    if api_key::is_key(credential) {
        return of_key(state, credential).await;
    }
    // A token is three texts joined by dots; a key of the environment may hold
    // dots too, but then it was compared above.
    match &access.verifier {
        Some(verifier) if credential.contains('.') => {
            let (claims, until) = verifier
                .verify_until(credential, state.clock().now())
                .await
                .map_err(|error| match error {
                    TokenError::NoKeys => Failure::new(ProblemCode::IssuerUnavailable, error.to_string()),
                    error => unauthenticated(error.to_string()),
                })?;
            let principal = Principal {
                tenant: tenant_of_token(state, &claims.tenant).await?,
                user: claims.user,
                scopes: claims.scopes,
                key: None,
                expires_at: Some(claims.expires_at),
                tools: None,
            };
            Ok((principal, Some(until)))
        }
        _ => Err(unauthenticated("the key is unknown")),
    }
}

async fn of_key(state: &ApiState, credential: &str) -> Result<(Principal, Option<Timestamp>), Failure> {
    let found = across_tenants::key_with_hash(&state.store, &api_key::hash(credential)).await?;
    let key = found.ok_or_else(|| unauthenticated("the key is unknown"))?;
    let expired = key.expires_at.is_some_and(|expiry| expiry <= state.clock().now());
    if key.revoked_at.is_some() || expired {
        let why = if expired { "expired" } else { "been revoked" };
        refusals::note(state, &key);
        return Err(unauthenticated(format!("the key has {why}")));
    }
    let until = key.expires_at;
    Ok((of_record(key), until))
}

fn of_record(key: KeyRecord) -> Principal {
    Principal {
        tenant: key.tenant_id,
        user: key.user_id,
        scopes: Scopes::from_known_names(key.scopes.iter().map(String::as_str)),
        key: Some(key.key_id),
        expires_at: key.expires_at,
        tools: key.tools,
    }
}

async fn tenant_of_token(state: &ApiState, name: &str) -> Result<TenantId, Failure> {
    let access = &state.access;
    if let Some(tenant) = across_tenants::tenant_named(&state.store, name).await? {
        return Ok(tenant.tenant_id);
    }
    if access.create_tenants && access.single_tenant.is_none() {
        return Ok(tenants::ensure(&state.store, name).await?.tenant_id);
    }
    Err(unauthenticated("the token's tenant is unknown to this server"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        bearer(&headers).ok().map(str::to_owned)
    }

    #[test]
    fn the_credential_stands_in_one_bearer_header() {
        assert_eq!(shown(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(shown(&["bearer  abc "]).as_deref(), Some("abc"));
        for values in [
            &[][..],
            &["abc"],
            &["Bearer"],
            &["Bearer "],
            &["Basic abc"],
            &["Bearer a", "Bearer a"],
        ] {
            assert_eq!(shown(values), None, "{values:?}");
        }
    }
}
