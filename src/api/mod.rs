//! HTTP only: who calls, what is asked, how it is answered. No SQL, no tool
//! logic: a handler reads the request, calls the engine or the store once, and
//! converts. Layers around every route are put together in [`router`].

mod accept;
pub mod auth;
#[cfg(any(test, fuzzing))] // cargo-fuzz sets the latter
pub mod border;
pub mod caller;
mod compat;
mod compat_describe;
mod conditions;
mod describe;
pub mod failure;
mod form;
mod hermes;
pub mod hosts;
mod json;
mod leash;
mod lifetime;
pub mod listen;
mod native;
pub mod once;
mod openai;
mod opening;
pub mod origins;
pub mod page;
pub mod path;
pub mod payload;
mod profiles;
pub mod query;
pub mod rate;
mod refusals;
mod request_id;
mod security;
mod sse;
pub mod state;
mod surface;
mod text;
mod ui_stream;
mod viewer;
mod wait;

use std::any::Any;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::AUTHORIZATION;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;

use crate::model::problem::ProblemCode;

use failure::Failure;
use state::ApiState;

/// The whole HTTP surface. Layers apply from the last to the first.
pub fn router(state: ApiState) -> Router {
    let routes = native::routes()
        .merge(openai::routes())
        .merge(hermes::routes())
        .merge(ui_stream::routes())
        .into_router()
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(state.clone());
    // Around the routes, so that a path can change before one is sought.
    Router::new()
        .fallback_service(routes)
        .layer(from_fn(profiles::layer))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(state.clone(), rate::layer))
        .layer(from_fn_with_state(state.clone(), origins::layer))
        .layer(from_fn_with_state(state.clone(), hosts::layer))
        .layer(from_fn(failure::as_problem))
        .layer(state.origins.cors())
        .layer(from_fn(security::layer))
        .layer(from_fn_with_state(state, request_id::layer))
        .layer(SetSensitiveRequestHeadersLayer::new([AUTHORIZATION]))
}

/// The OpenAPI document of the native surface.
pub fn document() -> utoipa::openapi::OpenApi {
    describe::complete(native::routes().document(describe::about()))
}

/// The OpenAPI document of the surface for clients of OpenAI.
pub fn openai_document() -> utoipa::openapi::OpenApi {
    openai::document()
}

/// The OpenAPI document of the surface for clients of the original.
pub fn hermes_document() -> utoipa::openapi::OpenApi {
    hermes::document()
}

async fn no_such_path() -> Failure {
    Failure::new(
        ProblemCode::NotFound,
        "there is nothing at this path; `/openapi.json` lists what there is",
    )
}

async fn no_such_method(request: Request) -> Failure {
    Failure::new(
        ProblemCode::MethodNotAllowed,
        format!(
            "`{}` is not possible here; the header `Allow` lists what is",
            request.method()
        ),
    )
}

fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let said = match panic.downcast::<String>() {
        Ok(said) => *said,
        Err(other) => other
            .downcast::<&str>()
            .map_or("no message".to_owned(), |said| (*said).to_owned()),
    };
    Failure::internal(format!("a handler panicked: {said}")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_that_shows_nothing_of_it() {
        for panic in [
            Box::new("secret") as Box<dyn Any + Send>,
            Box::new("secret".to_owned()),
            Box::new(5),
        ] {
            let response = panicked(panic);
            let failure = response.extensions().get::<Failure>().unwrap();
            assert_eq!(
                (response.status().as_u16(), failure.problem().code),
                (500, ProblemCode::Internal)
            );
            assert!(!failure.problem().detail.contains("secret"));
        }
    }
}
