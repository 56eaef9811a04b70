//! The native surface: one file for each resource, each with its routes. Adding
//! a route is adding a function and its name in that file's `routes!`.

mod health;

use utoipa_axum::router::OpenApiRouter;

use super::state::ApiState;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().merge(health::routes())
}
