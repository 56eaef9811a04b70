//! How often callers may ask: every recognised caller is counted here, before
//! its request is looked at. What a request left is told in the header fields
//! `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers). A
//! request that was carried out before under its key is not counted.

pub mod bucket;
pub mod limiter;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::json;

use crate::model::principal::Principal;
use crate::model::problem::{Problem, ProblemCode};
use crate::store;

use super::failure::Failure;
use super::once;
use super::state::ApiState;
use limiter::{Judged, Limiter, Rate, Whose};

pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
pub(super) const RATE: HeaderName = HeaderName::from_static("ratelimit");

/// What the answer tells of the rates, once the caller is known.
#[derive(Clone, Default)]
struct Told(Arc<OnceLock<HeaderMap>>);

/// Puts what was found out about the rates on the answer.
pub(super) async fn layer(State(state): State<ApiState>, mut request: Request, next: Next) -> Response {
    if state.rates.is_none() {
        return next.run(request).await;
    }
    let told = Told::default();
    request.extensions_mut().insert(told.clone());
    let mut response = next.run(request).await;
    for (name, value) in told.0.get().into_iter().flatten() {
        response.headers_mut().insert(name.clone(), value.clone());
    }
    response
}

/// Counts the request of a caller, or refuses it.
pub(super) async fn count(
    state: &ApiState,
    parts: &Parts,
    principal: &Principal,
    scope: &store::Scope,
) -> Result<(), Failure> {
    let Some(limiter) = &state.rates else { return Ok(()) };
    if was_carried_out(parts, principal, scope).await? {
        return Ok(());
    }
    judge(limiter, state, parts, principal)
}

fn judge(limiter: &Limiter, state: &ApiState, parts: &Parts, principal: &Principal) -> Result<(), Failure> {
    let judged = limiter.judge(principal, state.clock().now());
    if let Some(told) = parts.extensions.get::<Told>() {
        // A request has one caller.
        let _first = told.0.set(headers(&judged));
    }
    match judged.refused {
        Some(rate) => Err(refused(&rate).into()),
        None => Ok(()),
    }
}

/// Whether the request is sent again under a key that stands for something.
async fn was_carried_out(parts: &Parts, principal: &Principal, scope: &store::Scope) -> Result<bool, Failure> {
    if parts.method != Method::POST {
        return Ok(false);
    }
    // A key of the wrong form is the handler's to refuse.
    let Ok(Some(key)) = once::key(&parts.headers) else {
        return Ok(false);
    };
    // Its body is still on the way, and does not matter: another one under the
    // same key is refused without effect.
    let known = once::once(principal, parts.uri.path(), key, b"");
    let scope = scope.clone().once(Some(known));
    let found = scope.read(move |mut rows| Box::pin(async move { rows.is_known().await }));
    Ok(found.await?)
}

fn name(whose: Whose) -> &'static str {
    match whose {
        Whose::Key => "key",
        Whose::Tenant => "tenant",
        Whose::Server => "server",
    }
}

/// How much the others use of the server is nobody's to read off.
fn is_told(rate: &Rate) -> bool {
    rate.whose != Whose::Server || rate.standing.left == 0
}

fn headers(judged: &Judged) -> HeaderMap {
    let told = || judged.rates.iter().filter(|rate| is_told(rate));
    let policies = told().map(|rate| {
        let (requests, window) = (rate.quota.requests, rate.quota.window.as_secs());
        format!("\"{}\";q={requests};w={window}", name(rate.whose))
    });
    let rates = told().map(|rate| {
        let Rate { whose, standing, .. } = rate;
        // Until there is one again; where some are left, until all are.
        let time = if standing.left == 0 {
            standing.wait
        } else {
            standing.full_in
        };
        format!("\"{}\";r={};t={}", name(*whose), standing.left, seconds(time))
    });
    let fields = [
        (POLICY, policies.collect::<Vec<_>>().join(", ")),
        (RATE, rates.collect::<Vec<_>>().join(", ")),
        (
            RETRY_AFTER,
            judged
                .refused
                .map_or(String::new(), |rate| seconds(rate.standing.wait).to_string()),
        ),
    ];
    let filled = fields.into_iter().filter(|(_, value)| !value.is_empty());
    filled
        .filter_map(|(name, value)| Some((name, HeaderValue::from_str(&value).ok()?)))
        .collect()
}

/// Rounded up: who waits so long does not come too early.
fn seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(0 < span.subsec_nanos())
}

fn refused(rate: &Rate) -> Problem {
    let code = match rate.whose {
        Whose::Key => ProblemCode::KeyRateLimit,
        Whose::Tenant => ProblemCode::TenantRateLimit,
        Whose::Server => ProblemCode::ServerRateLimit,
    };
    let (requests, window, name) = (rate.quota.requests, rate.quota.window.as_secs(), name(rate.whose));
    let detail = format!(
        "the {name} may send {requests} requests in {window} s (`limits.{name}.requests`); nothing was done, `Retry-After` \
         says when there is room"
    );
    Problem::new(code, detail).with_context(json!({"requests": requests, "window_seconds": window}))
}

#[cfg(test)]
mod tests {
    use super::bucket::Standing;
    use super::*;
    use crate::config::Quota;

    fn rate(whose: Whose, left: u32, wait: u64, full_in: u64) -> Rate {
        Rate {
            whose,
            quota: Quota {
                requests: 100,
                window: Duration::from_secs(60),
            },
            standing: Standing {
                left,
                wait: Duration::from_millis(wait),
                full_in: Duration::from_millis(full_in),
            },
        }
    }

    fn told(rates: Vec<Rate>, refused: Option<Rate>) -> [Option<String>; 3] {
        let headers = headers(&Judged { rates, refused });
        [POLICY, RATE, RETRY_AFTER].map(|name| Some(headers.get(name)?.to_str().unwrap().to_owned()))
    }

    #[test]
    fn the_fields_are_lists_of_quoted_names_with_parameters() {
        let rates = vec![rate(Whose::Key, 99, 0, 600), rate(Whose::Tenant, 0, 1_500, 60_000)];
        assert_eq!(
            told(rates.clone(), None),
            [
                Some("\"key\";q=100;w=60, \"tenant\";q=100;w=60".to_owned()),
                Some("\"key\";r=99;t=1, \"tenant\";r=0;t=2".to_owned()),
                None
            ]
        );
        assert_eq!(told(rates.clone(), Some(rates[1]))[2].as_deref(), Some("2"));
    }

    #[test]
    fn what_is_left_of_the_server_is_told_only_where_it_refuses() {
        assert_eq!(told(vec![rate(Whose::Server, 5, 0, 1)], None), [None, None, None]);
        let full = rate(Whose::Server, 0, 1, 1);
        assert_eq!(
            told(vec![full], Some(full)),
            [
                Some("\"server\";q=100;w=60".to_owned()),
                Some("\"server\";r=0;t=1".to_owned()),
                Some("1".to_owned())
            ]
        );
    }
}
