//! Whether the server lives and whether it may be sent work. Open to everyone:
//! what asks is a load balancer without a key.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::failure::Failure;
use crate::api::state::ApiState;
use crate::model::problem::Problem;
use crate::store::across_tenants;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(health_live))
        .routes(routes!(health_ready))
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: String,
}

fn ok() -> Json<Health> {
    Json(Health {
        status: "ok".to_owned(),
    })
}

/// The process answers.
#[utoipa::path(get, path = "/health/live", tag = "health", security(()),
    responses((status = 200, description = "The process answers.", body = Health)))]
pub(super) async fn health_live() -> Json<Health> {
    ok()
}

/// The server can take work: the store answers and it is not shutting down.
#[utoipa::path(get, path = "/health/ready", tag = "health", security(()),
    responses(
        (status = 200, description = "The server can take work.", body = Health),
        (status = 503, description = "The store is away, or the server is shutting down.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn health_ready(State(state): State<ApiState>) -> Result<Json<Health>, Failure> {
    state.takes_work()?;
    across_tenants::tenant_count(&state.store).await?;
    Ok(ok())
}
