//! Plugins, for administrators: what was loaded, and loading it anew.

use std::sync::Arc;

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;

use super::listing::Listing;
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::state::ApiState;
use crate::model::principal::Scope;
use crate::tool::plugin::PluginView;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_plugins))
        .routes(routes!(reload_plugins))
}

/// List the plugins of this server and of its tenants, as they were last loaded.
#[utoipa::path(get, path = "/v1/plugins", tag = "plugins",
    responses((status = 200, description = "All plugins.", body = Listing<PluginView>)))]
pub(super) async fn list_plugins(
    State(state): State<ApiState>,
    caller: Caller,
) -> Result<Json<Listing<PluginView>>, Failure> {
    caller.require(Scope::Admin)?;
    Ok(Json(Listing::of(state.engine.plugins().views())))
}

/// Load all plugins anew; what they bring shows at once everywhere.
#[utoipa::path(post, path = "/v1/plugins/reload", tag = "plugins",
    responses((status = 200, description = "All plugins.", body = Listing<PluginView>)))]
pub(super) async fn reload_plugins(
    State(state): State<ApiState>,
    caller: Caller,
) -> Result<Json<Listing<PluginView>>, Failure> {
    caller.require(Scope::Admin)?;
    let engine = state.engine.clone();
    let loaded = state.finish(async move {
        let host = Arc::clone(engine.host());
        Ok::<_, Failure>(engine.plugins().load(engine.tools(), &host).await)
    });
    Ok(Json(Listing::of(loaded.await?)))
}
