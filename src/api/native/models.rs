//! The models that can answer, in the list form that clients of chat
//! completions know.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::listing::Listing;
use super::tools::Name;
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::path::InPath;
use crate::api::state::ApiState;
use crate::model::principal::Scope;

pub(in crate::api) fn routes() -> Surface {
    Surface::new().routes(routes!(list_models)).routes(routes!(get_model))
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Model {
    /// What to send as `model`.
    id: String,
    /// `model`.
    object: &'static str,
    /// Seconds since 1970: when this server began to offer it.
    created: u64,
    owned_by: &'static str,
    /// What answers under this name.
    root: String,
    parent: Option<String>,
    /// Always empty.
    permission: Vec<String>,
}

/// List the models that sessions and turns can name.
#[utoipa::path(get, path = "/v1/models", tag = "models",
    responses((status = 200, description = "All models.", body = Listing<Model>)))]
pub(super) async fn list_models(
    State(state): State<ApiState>,
    caller: Caller,
) -> Result<Json<Listing<Model>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    Ok(Json(Listing::of(vec![configured(&state)])))
}

/// Read a model.
#[utoipa::path(get, path = "/v1/models/{model}", tag = "models",
    params(("model" = String, Path, description = "The model's id.")),
    responses((status = 200, description = "The model.", body = Model)))]
pub(super) async fn get_model(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(Name(name)): InPath<Name>,
) -> Result<Json<Model>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let model = configured(&state);
    match model.id == name {
        true => Ok(Json(model)),
        false => Err(Failure::not_found("model")),
    }
}

fn configured(state: &ApiState) -> Model {
    let id = state.engine.settings().model.clone();
    Model {
        root: id.clone(),
        id,
        object: "model",
        created: 0,
        owned_by: "hermes",
        parent: None,
        permission: Vec::new(),
    }
}
