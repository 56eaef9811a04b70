//! A surface is routes with their descriptions. The server needs the routes
//! only, and building all descriptions would be most of its start and of its
//! idle memory; so a description is a function, called by whoever writes the
//! document.

use axum::Router;
use axum::routing::MethodRouter;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::state::ApiState;

/// What [`routes!`] makes: handlers by path, and how to describe them.
pub(super) struct Routes {
    pub handlers: Vec<(String, MethodRouter<ApiState>)>,
    pub describe: fn() -> UtoipaMethodRouter<ApiState>,
}

#[derive(Default)]
pub(super) struct Surface {
    router: Router<ApiState>,
    descriptions: Vec<fn() -> UtoipaMethodRouter<ApiState>>,
}

impl Surface {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds described routes, as [`routes!`] makes them.
    pub(super) fn routes(mut self, routes: Routes) -> Self {
        self.descriptions.push(routes.describe);
        let handlers = routes.handlers.into_iter();
        self.router = handlers.fold(self.router, |router, (path, handler)| router.route(&path, handler));
        self
    }

    pub(super) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.descriptions.extend(other.descriptions);
        self
    }

    /// Adds routes that no document describes.
    pub(super) fn undescribed(mut self, router: Router<ApiState>) -> Self {
        self.router = self.router.merge(router);
        self
    }

    pub(super) fn into_router(self) -> Router<ApiState> {
        self.router
    }

    /// The document, which begins as `about`.
    pub(super) fn document(self, about: OpenApi) -> OpenApi {
        let described = self.descriptions.into_iter();
        let routes = described.fold(OpenApiRouter::new(), |router, describe| router.routes(describe()));
        // What `about` says of a schema stands before what comes with a route.
        OpenApiRouter::with_openapi(about).merge(routes).into_openapi()
    }
}

/// The routes of handlers that have a `utoipa::path`, as `utoipa_axum::routes!`
/// takes them. A macro, because a handler's path is a type whose name only a
/// macro can make from the handler's.
macro_rules! routes {
    ($($handler:ident),+ $(,)?) => {
        utoipa_axum::paste! {
            $crate::api::surface::Routes {
                handlers: vec![$({
                    use utoipa::Path as _;
                    use utoipa_axum::PathItemExt as _;
                    let methods = [<__path_ $handler>]::methods().into_iter();
                    let handler = methods.fold(axum::routing::MethodRouter::new(), |handler, method| {
                        handler.on(method.to_method_filter(), $handler)
                    });
                    ([<__path_ $handler>]::path(), handler)
                }),+],
                describe: || utoipa_axum::routes!($($handler),+),
            }
        }
    };
}

pub(super) use routes;
