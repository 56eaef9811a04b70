//! How the server is. The short answer is open and says nothing of what runs; the
//! long one takes a key.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::principal::Scope;
use crate::store::across_tenants;

/// What clients of the original look for.
pub(super) const PLATFORM: &str = "hermes-agent";

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(health))
        .routes(routes!(health_v1))
        .routes(routes!(health_detailed))
}

#[derive(Serialize, ToSchema)]
pub(super) struct Alive {
    /// `ok`.
    status: &'static str,
    /// `hermes-agent`.
    platform: &'static str,
    version: &'static str,
}

fn alive() -> Json<Alive> {
    Json(Alive {
        status: "ok",
        platform: PLATFORM,
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// The process answers.
#[utoipa::path(get, path = "/health", tag = "health", security(()),
    responses((status = 200, description = "The process answers.", body = Alive)))]
pub(super) async fn health() -> Json<Alive> {
    alive()
}

/// The process answers.
#[utoipa::path(get, path = "/v1/health", tag = "health", security(()),
    responses((status = 200, description = "The process answers.", body = Alive)))]
pub(super) async fn health_v1() -> Json<Alive> {
    alive()
}

/// How the parts of the server are. It is 200 also where something is degraded.
#[utoipa::path(get, path = "/health/detailed", tag = "health",
    responses((status = 200, description = "Each part with its state.", body = Value)))]
pub(super) async fn health_detailed(State(state): State<ApiState>, caller: Caller) -> Result<Json<Value>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let store = across_tenants::tenant_count(&state.store).await.is_ok();
    let takes_work = state.takes_work().is_ok();
    let commands = state.engine.host().no_commands();
    let word = |fine: bool| if fine { "ok" } else { "degraded" };
    let whole = word(store && takes_work);
    let gateway = if takes_work { "running" } else { "draining" };
    let executing = state.engine.executing();
    let now = state.clock().now();
    Ok(Json(json!({
        "status": whole,
        "platform": PLATFORM,
        "version": env!("CARGO_PKG_VERSION"),
        "readiness": {"status": whole, "checks": {
            "state_db": {"status": word(store)},
            "config": {"status": "ok"},
            "model": {"status": "ok", "name": state.engine.settings().model},
            "commands": {"status": word(commands.is_none()), "reason": commands},
            "gateway": {"status": word(takes_work), "state": gateway, "connected_platforms": ["api_server"]},
            "background_queues": {"status": "ok", "active_api_runs": executing},
        }},
        "gateway_state": gateway,
        "platforms": {"api_server": {"state": "connected", "error_code": null, "error_message": null,
            "updated_at": now}},
        "active_agents": executing,
        "gateway_busy": 0 < executing,
        "gateway_drainable": takes_work,
        "exit_reason": null,
        "updated_at": now,
        "pid": std::process::id(),
    })))
}
