//! `/p/{profile}/…`: any path of the server, for the tenant of that name. The
//! prefix is taken off before a route is sought; a credential of another tenant
//! finds nothing there, as under a name that nobody has.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::Extensions;
use http::uri::{PathAndQuery, Uri};

use crate::model::principal::Principal;
use crate::store::across_tenants;

use super::compat::envelope::without_profile;
use super::failure::Failure;
use super::state::ApiState;

/// The name in the path of a request.
#[derive(Clone)]
struct Profile(String);

/// Before all routes.
pub(super) async fn layer(mut request: Request, next: Next) -> Response {
    if let Some((profile, rest)) = split(request.uri()) {
        let Some(uri) = rewritten(request.uri(), &rest) else {
            return Failure::not_found("path").into_response();
        };
        *request.uri_mut() = uri;
        request.extensions_mut().insert(Profile(profile));
    }
    next.run(request).await
}

fn split(uri: &Uri) -> Option<(String, String)> {
    let (profile, rest) = without_profile(uri.path())?;
    Some((profile.to_owned(), rest.to_owned()))
}

fn rewritten(uri: &Uri, path: &str) -> Option<Uri> {
    let query = uri.query().map_or(String::new(), |query| format!("?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}{query}")).ok()?);
    Uri::from_parts(parts).ok()
}

/// Whether a caller is of the tenant that the path names, if it names one.
pub(super) async fn check(state: &ApiState, extensions: &Extensions, principal: &Principal) -> Result<(), Failure> {
    let Some(Profile(name)) = extensions.get::<Profile>() else {
        return Ok(());
    };
    let tenant = across_tenants::tenant_named(&state.store, name).await?;
    match tenant.is_some_and(|tenant| tenant.tenant_id == principal.tenant) {
        true => Ok(()),
        false => Err(Failure::not_found("profile")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_taken_off_and_nothing_else() {
        let uri: Uri = "/p/acme/v1/runs?after=1".parse().unwrap();
        let (profile, rest) = split(&uri).unwrap();
        assert_eq!(profile, "acme");
        assert_eq!(rewritten(&uri, &rest).unwrap(), "/v1/runs?after=1");
        for other in ["/v1/runs", "/p/acme", "/p", "/pp/acme/v1"] {
            assert!(split(&other.parse().unwrap()).is_none(), "{other}");
        }
    }
}
