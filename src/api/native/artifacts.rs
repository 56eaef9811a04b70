//! What calls made: results too long for the model and files that were written,
//! listed with the call they come from, and their content.

use std::io::Seek;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::io::ReaderStream;
use utoipa::{IntoParams, ToSchema};

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::payload::FileBytes;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::artifact::Artifact;
use crate::model::id::{ArtifactId, SessionId};
use crate::model::principal::Scope;
use crate::tool::artifacts::digest;

use super::files::attachment;

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
    /// Of a result; that of a file is downloaded.
    content: Option<String>,
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

/// Download the content of an artifact. A file that is not as the call left it is
/// not sent.
#[utoipa::path(get, path = "/v1/sessions/{id}/artifacts/{artifact_id}/content", tag = "sessions",
    params(("id" = SessionId, Path), ("artifact_id" = ArtifactId, Path)),
    responses((status = 200, description = "The content, as a file.", body = inline(FileBytes),
        content_type = "application/octet-stream")))]
pub(super) async fn download_artifact(
    State(state): State<ApiState>,
    caller: Caller,
    InPath((session, id)): InPath<(SessionId, ArtifactId)>,
) -> Result<Response, Failure> {
    let (artifact, content) = found(&caller, session, id).await?;
    let body = match content {
        Some(content) => Body::from(content),
        None => file(&state, &caller, &artifact)
            .await
            .ok_or_else(|| Failure::not_found("artifact's content, for the file was changed or removed since"))?,
    };
    let size = artifact.size.to_string();
    let headers = [
        (CONTENT_TYPE, artifact.media_type.clone()),
        (CONTENT_LENGTH, size),
        (CONTENT_DISPOSITION, attachment(&artifact.name)),
        (CACHE_CONTROL, "private, no-cache".to_owned()),
    ];
    let mut answer = body.into_response();
    for (name, value) in headers {
        let value = HeaderValue::from_str(&value).map_err(Failure::internal)?;
        answer.headers_mut().insert(name, value);
    }
    Ok(answer)
}

/// The file if it still is what the call wrote.
async fn file(state: &ApiState, caller: &Caller, artifact: &Artifact) -> Option<Body> {
    let id = artifact.session_id;
    let record = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.session_record(id).await }));
    // Delegated work is done where its root's files are.
    let home = record.await.ok().flatten()?.home();
    let (host, tenant) = (state.engine.host(), caller.principal.tenant);
    let there = tokio::fs::try_exists(host.workspace_path(tenant, home)).await;
    if !there.unwrap_or(false) {
        return None;
    }
    let workspace = host.workspace(tenant, home).await.ok()?;
    let path = workspace.root().join(artifact.path.as_deref()?);
    let mut file = workspace.open_read(&path).await.ok()?;
    let size = file.metadata().ok()?.len();
    if i64::try_from(size).ok()? != artifact.size {
        return None;
    }
    let hashed = tokio::task::spawn_blocking(move || {
        let (_, sha256) = digest(&mut file)?;
        file.rewind()?;
        Ok::<_, std::io::Error>((file, sha256))
    });
    let (file, sha256) = hashed.await.ok()?.ok()?;
    let part = tokio::io::AsyncReadExt::take(tokio::fs::File::from_std(file), size);
    (sha256 == artifact.sha256).then(|| Body::from_stream(ReaderStream::new(part)))
}

async fn found(caller: &Caller, session: SessionId, id: ArtifactId) -> Result<(Artifact, Option<String>), Failure> {
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
