//! The models that can answer, in the list form that clients of chat
//! completions know.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::listing::Listing;
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::state::ApiState;
use crate::model::principal::Scope;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(list_models))
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Model {
    /// What to send as `model`.
    id: String,
    /// `model`.
    object: &'static str,
    owned_by: &'static str,
}

/// List the models that sessions and turns can name.
#[utoipa::path(get, path = "/v1/models", tag = "models",
    responses((status = 200, description = "All models.", body = Listing<Model>)))]
pub(super) async fn list_models(
    State(state): State<ApiState>,
    caller: Caller,
) -> Result<Json<Listing<Model>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let model = Model {
        id: state.engine.settings().model.clone(),
        object: "model",
        owned_by: "hermes",
    };
    Ok(Json(Listing::of(vec![model])))
}
