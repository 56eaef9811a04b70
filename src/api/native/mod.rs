//! The native surface: one file for each resource, each with its routes. Adding
//! a route is adding a function and its name in that file's `routes!`.

#![allow(unused_qualifications, reason = "the macro that describes a route writes them")]

mod bounds;
mod health;
mod history;
mod new_turn;
mod sessions;
mod streams;
mod turns;

use utoipa_axum::router::OpenApiRouter;

use super::state::ApiState;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .merge(health::routes())
        .merge(sessions::routes())
        .merge(history::routes())
        .merge(streams::routes())
        .merge(turns::routes())
}
