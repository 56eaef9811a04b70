//! What describes this surface: the OpenAPI document and a page that shows it,
//! which works without any other host. Open to everyone; both are the same for
//! all.

use std::sync::Arc;

use crate::api::surface::{Surface, routes};
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use utoipa_swagger_ui::Config;

use crate::api::failure::Failure;

/// The committed document; a test holds it to what the code says.
const DOCUMENT: &str = include_str!("../../../openapi/native.json");

/// The page runs scripts and styles of its own and asks this server only.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

pub(super) fn routes() -> Surface {
    let page = Router::new()
        .route("/docs", get(async || Redirect::permanent("/docs/")))
        .route("/docs/", get(async || page("index.html")))
        .route("/docs/{file}", get(async |Path(file): Path<String>| page(&file)));
    Surface::new().routes(routes!(get_document)).undescribed(page)
}

/// Read this document.
#[utoipa::path(get, path = "/openapi.json", tag = "documents", security(()),
    responses((status = 200, description = "The OpenAPI document.", body = serde_json::Value,
        content_type = "application/json")))]
pub(super) async fn get_document() -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], DOCUMENT).into_response()
}

/// A file of the page that shows the document.
fn page(file: &str) -> Result<Response, Failure> {
    // Without the name of a validator the page asks none of somebody else's.
    let config = Config::from("/openapi.json").validator_url("none");
    let found = utoipa_swagger_ui::serve(file, Arc::new(config))
        .map_err(|error| Failure::internal(format!("the documentation page `{file}`: {error}")))?;
    let found = found.ok_or_else(|| Failure::not_found("file of the documentation"))?;
    let kind = HeaderValue::from_str(&found.content_type).map_err(Failure::internal)?;
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY)),
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600")),
    ];
    let mut response = (StatusCode::OK, headers, found.bytes.into_owned()).into_response();
    if found.gzpipped {
        let headers = response.headers_mut();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}
