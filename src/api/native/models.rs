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
    Ok(Json(Listing::of(all(&state))))
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
    let found = all(&state).into_iter().find(|model| model.id == name);
    found.map(Json).ok_or_else(|| Failure::not_found("model"))
}

/// The configured model, then the other names of models.
fn all(state: &ApiState) -> Vec<Model> {
    let settings = state.engine.settings();
    let routes = settings.model_routes.iter();
    let others = routes.map(|(alias, root)| model(alias, root, Some(&settings.model)));
    let configured = [model(&settings.model, &settings.model, None)];
    configured
        .into_iter()
        .chain(others.filter(|other| other.id != settings.model))
        .collect()
}

fn model(id: &str, root: &str, parent: Option<&String>) -> Model {
    Model {
        id: id.to_owned(),
        root: root.to_owned(),
        object: "model",
        created: 0,
        owned_by: "hermes",
        parent: parent.cloned(),
        permission: Vec::new(),
    }
}
