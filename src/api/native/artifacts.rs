//! What calls made that is kept whole: results too long for the model, listed
//! with the call they come from, and their content.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::model::artifact::Artifact;
use crate::model::id::{ArtifactId, SessionId};
use crate::model::principal::Scope;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_artifacts))
        .routes(routes!(get_artifact))
        .routes(routes!(download_artifact))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ArtifactPage {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

/// An artifact with what it holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WholeArtifact {
    #[serde(flatten)]
    artifact: Artifact,
    content: String,
}

/// List what the session's calls made, newest first.
#[utoipa::path(get, path = "/v1/sessions/{id}/artifacts", tag = "sessions",
    params(("id" = SessionId, Path), ArtifactPage),
    responses((status = 200, description = "A page of artifacts.", body = Page<Artifact>)))]
pub(super) async fn list_artifacts(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    Query(page): Query<ArtifactPage>,
) -> Result<Json<Page<Artifact>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let list = state.list(&caller, &json!(["artifacts", id]))?;
    let before = list.after(page.after.as_deref())?;
    let limit = page.limit;
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            if rows.session_record(id).await?.is_none() {
                return Ok(None);
            }
            rows.artifacts(id, before, limit.and_one()).await.map(Some)
        })
    });
    let found = found.await?.ok_or_else(|| Failure::not_found("session"))?;
    Ok(Json(list.cut(found, limit, |artifact| artifact.id)))
}

/// Read an artifact with its content.
#[utoipa::path(get, path = "/v1/sessions/{id}/artifacts/{artifact_id}", tag = "sessions",
    params(("id" = SessionId, Path), ("artifact_id" = ArtifactId, Path)),
    responses((status = 200, description = "The artifact.", body = WholeArtifact)))]
pub(super) async fn get_artifact(
    caller: Caller,
    InPath((session, id)): InPath<(SessionId, ArtifactId)>,
) -> Result<Json<WholeArtifact>, Failure> {
    let (artifact, content) = found(&caller, session, id).await?;
    Ok(Json(WholeArtifact { artifact, content }))
}

/// Download the content of an artifact.
#[utoipa::path(get, path = "/v1/sessions/{id}/artifacts/{artifact_id}/content", tag = "sessions",
    params(("id" = SessionId, Path), ("artifact_id" = ArtifactId, Path)),
    responses((status = 200, description = "The content, as a file.", body = String, content_type = "text/plain")))]
pub(super) async fn download_artifact(
    caller: Caller,
    InPath((session, id)): InPath<(SessionId, ArtifactId)>,
) -> Result<Response, Failure> {
    let (artifact, content) = found(&caller, session, id).await?;
    let kind = HeaderValue::from_str(&artifact.media_type).map_err(Failure::internal)?;
    // The name is of letters, digits, dots, dashes and underscores.
    let file = format!("attachment; filename=\"{}\"", artifact.name);
    let headers = [
        (CONTENT_TYPE, kind),
        (
            CONTENT_DISPOSITION,
            HeaderValue::from_str(&file).map_err(Failure::internal)?,
        ),
        (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ];
    Ok((StatusCode::OK, headers, content).into_response())
}

async fn found(caller: &Caller, session: SessionId, id: ArtifactId) -> Result<(Artifact, String), Failure> {
    caller.require(Scope::SessionsRead)?;
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move {
            match rows.session_record(session).await? {
                Some(_) => rows.artifact(session, id).await,
                None => Ok(None),
            }
        })
    });
    found.await?.ok_or_else(|| Failure::not_found("artifact"))
}
