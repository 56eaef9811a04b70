//! The files of a session's workspace: listed, sent, put there, taken away. The
//! environment keeps every path inside; here paths are read and answers written.

use std::io::{Seek, SeekFrom};
use std::path::PathBuf;

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE,
    LAST_MODIFIED, RANGE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::io::ReaderStream;
use utoipa::{IntoParams, ToSchema};

use super::byte_range::Range;
use super::file_state::{permitted, present, tag};
use crate::api::caller::Caller;
use crate::api::conditions::{self, ConditionHeaders};
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::{FromSegments, InPath};
use crate::api::payload::{FileBytes, Payload};
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::api::surface::{Routes, Surface, routes};
use crate::base::Timestamp;
use crate::environment::{EntryKind, FileError, Metadata, Parents, Workspace};
use crate::model::id::SessionId;
use crate::model::principal::Scope;
use crate::model::problem::{Problem, ProblemCode};
use crate::model::record::SessionRecord;

/// As the kernel's own limit.
const MAX_PATH_BYTES: usize = 4_096;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_files))
        .routes(deep(routes!(get_file, put_file, delete_file)))
}

/// A path is one parameter for who reads the document, and any number of
/// segments on the wire.
pub(super) fn deep(mut routes: Routes) -> Routes {
    for (path, _) in &mut routes.handlers {
        *path = path.replace("{path}", "{*path}");
    }
    routes
}

/// A session and a path in its workspace, never absolute and without `..`.
pub(super) struct InWorkspace {
    session: SessionId,
    path: String,
}

impl FromRequestParts<ApiState> for InWorkspace {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Failure> {
        let Ok(params) = RawPathParams::from_request_parts(parts, state).await else {
            // What is no text names no session and no file.
            return Err(Failure::not_found("file"));
        };
        let segments: Vec<&str> = params.iter().map(|(_, segment)| segment).collect();
        let session = SessionId::from_segments(&segments)?;
        let path = relative(segments.get(1).copied().unwrap_or_default())?;
        Ok(Self { session, path })
    }
}

/// A path as clients name it: parts that are names, joined by `/`.
fn relative(text: &str) -> Result<String, Failure> {
    let parts: Vec<&str> = text
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if MAX_PATH_BYTES < text.len() || text.starts_with('/') || text.contains('\0') || parts.contains(&"..") {
        let detail = "expected a path inside the workspace: relative, without `..`";
        return Err(Failure::field("path", detail));
    }
    Ok(parts.join("/"))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FileFilter {
    /// The directory; left out: the workspace itself.
    #[param(max_length = 4096)]
    path: Option<String>,
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileKind {
    File,
    Directory,
    /// It is followed where it leads to something inside the workspace.
    Link,
    /// A pipe, a socket, a device: listed, never sent.
    Other,
}

/// One name in a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FileEntry {
    /// From the workspace's root. What is no UTF-8 in it is marked, and cannot be
    /// asked for.
    path: String,
    kind: FileKind,
    bytes: u64,
    modified_at: Timestamp,
}

/// List a directory of a session's workspace, by name.
#[utoipa::path(get, path = "/v1/sessions/{id}/files", tag = "files", params(("id" = SessionId, Path), FileFilter),
    responses((status = 200, description = "A page of its entries.", body = Page<FileEntry>)))]
pub(super) async fn list_files(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<SessionId>,
    Query(filter): Query<FileFilter>,
) -> Result<Json<Page<FileEntry>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let path = relative(filter.path.as_deref().unwrap_or_default())?;
    let limit = filter.limit;
    let list = state.list(&caller, &json!(["files", id, path]))?;
    let after: Option<String> = list.after(filter.after.as_deref())?;
    let Some(workspace) = existing(&state, &caller, id).await? else {
        // Nothing was put there yet.
        return match path.as_str() {
            "" => Ok(Json(
                list.cut(Vec::new(), limit, |entry: &FileEntry| entry.path.clone()),
            )),
            _ => Err(Failure::not_found("file")),
        };
    };
    let directory = workspace
        .open_directory(&workspace.root().join(&path))
        .await
        .map_err(failed)?;
    let wanted = limit.and_one() as usize;
    let page = tokio::task::spawn_blocking(move || -> std::io::Result<Vec<FileEntry>> {
        let mut entries = directory.entries()?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let shown = entries.into_iter().map(|entry| {
            let name = entry.name.to_string_lossy();
            let shown = if path.is_empty() {
                name.into_owned()
            } else {
                format!("{path}/{name}")
            };
            (shown, entry)
        });
        let page = shown
            .filter(|(shown, _)| after.as_ref().is_none_or(|after| after < shown))
            .take(wanted);
        let told = page.filter_map(|(path, entry)| {
            let (bytes, at) = directory.state(&entry.name).ok()?;
            Some(FileEntry {
                path,
                kind: kind(entry.kind),
                bytes,
                modified_at: Timestamp(at / 1_000_000),
            })
        });
        Ok(told.collect())
    });
    let page = page.await.map_err(Failure::internal)?.map_err(Failure::internal)?;
    Ok(Json(list.cut(page, limit, |entry| entry.path.clone())))
}

fn kind(kind: EntryKind) -> FileKind {
    match kind {
        EntryKind::File => FileKind::File,
        EntryKind::Directory => FileKind::Directory,
        EntryKind::Link => FileKind::Link,
        EntryKind::Other => FileKind::Other,
    }
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "says what the headers are; the handler reads them")]
struct RangeHeaders {
    /// One range of bytes, such as `bytes=0-1023`. Several are not taken.
    #[param(rename = "Range")]
    range: Option<String>,
    /// The `ETag` for which the range was meant; of another file all is sent.
    #[param(rename = "If-Range")]
    if_range: Option<String>,
    /// An `ETag`; if the file still has it, 304 is answered.
    #[param(rename = "If-None-Match")]
    if_none_match: Option<String>,
}

/// Send a file of a session's workspace, whole or a part of it.
#[utoipa::path(get, path = "/v1/sessions/{id}/files/{path}", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Path, description = "From the workspace's root; `/` as it is or \
        as `%2F`."), RangeHeaders),
    responses(
        (status = 200, description = "The file.", body = inline(FileBytes), content_type = "application/octet-stream"),
        (status = 206, description = "The range.", body = inline(FileBytes), content_type = "application/octet-stream",
            headers(("Content-Range" = String, description = "Which bytes of how many."))),
        (status = 304, description = "The file is as it was."),
        (status = 416, description = "The range begins behind the end.",
            body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get_file(
    State(state): State<ApiState>,
    caller: Caller,
    at: InWorkspace,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let workspace = existing(&state, &caller, at.session).await?;
    let workspace = workspace.ok_or_else(|| Failure::not_found("file"))?;
    let path = workspace.root().join(&at.path);
    let mut file = workspace.open_read(&path).await.map_err(failed)?;
    let metadata = file.metadata().map_err(Failure::internal)?;
    let (length, tag) = (metadata.len(), tag(&metadata));
    let mut answer = described(&at.path, &tag, &metadata)?;
    if headers
        .get(IF_NONE_MATCH)
        .is_some_and(|given| given.as_bytes() == tag.as_bytes())
    {
        return Ok((StatusCode::NOT_MODIFIED, answer).into_response());
    }
    let is_meant = headers
        .get(IF_RANGE)
        .is_none_or(|given| given.as_bytes() == tag.as_bytes());
    let range = headers
        .get(RANGE)
        .and_then(|range| range.to_str().ok())
        .filter(|_| is_meant);
    let (from, count, status) = match range.map_or(Range::Whole, |range| Range::read(range, length)) {
        Range::Whole => (0, length, StatusCode::OK),
        Range::Part { from, to } => {
            insert(&mut answer, CONTENT_RANGE, &format!("bytes {from}-{to}/{length}"))?;
            (from, to - from + 1, StatusCode::PARTIAL_CONTENT)
        }
        Range::Behind => {
            let detail = format!("the file has {length} bytes");
            return Err(Failure::new(ProblemCode::RangeNotSatisfiable, detail));
        }
    };
    insert(&mut answer, CONTENT_LENGTH, &count.to_string())?;
    file.seek(SeekFrom::Start(from)).map_err(Failure::internal)?;
    // What is added behind while it is sent is left out.
    let part = tokio::io::AsyncReadExt::take(tokio::fs::File::from_std(file), count);
    Ok((status, answer, Body::from_stream(ReaderStream::new(part))).into_response())
}

/// A file is somebody's text: no browser is to run it as a page of this server.
fn described(path: &str, tag: &str, metadata: &std::fs::Metadata) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    insert(&mut headers, CONTENT_TYPE, guess.as_ref())?;
    insert(&mut headers, ETAG, tag)?;
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let name = path.rsplit('/').next().unwrap_or_default();
    insert(&mut headers, CONTENT_DISPOSITION, &attachment(name))?;
    if let Ok(at) = metadata.modified() {
        let at = chrono::DateTime::<chrono::Utc>::from(at);
        insert(
            &mut headers,
            LAST_MODIFIED,
            &at.format("%a, %d %b %Y %H:%M:%S GMT").to_string(),
        )?;
    }
    Ok(headers)
}

/// What a browser is to call the file that it stores.
pub(super) fn attachment(name: &str) -> String {
    let plain: String = name.chars().map(|one| if is_plain(one) { one } else { '_' }).collect();
    let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let encoded = encoded.replace('+', "%20");
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || " .-_()".contains(character)
}

fn insert(headers: &mut HeaderMap, name: http::HeaderName, value: &str) -> Result<(), Failure> {
    headers.insert(name, HeaderValue::from_str(value).map_err(Failure::internal)?);
    Ok(())
}

/// Put a file into a session's workspace, in one step; missing directories are
/// made, a file that is there is replaced. Its length is bounded like that of any
/// body.
#[utoipa::path(put, path = "/v1/sessions/{id}/files/{path}", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Path), ConditionHeaders),
    request_body(content = inline(FileBytes), content_type = "application/octet-stream",
        description = "The bytes of the file; any `Content-Type` is taken."),
    responses(
        (status = 200, description = "The file was replaced; its new `ETag` is in the header.", body = FileEntry),
        (status = 201, description = "The file is new; its `ETag` is in the header.", body = FileEntry)))]
pub(super) async fn put_file(
    State(state): State<ApiState>,
    caller: Caller,
    at: InWorkspace,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let condition = conditions::of(&headers)?;
    is_here(&state, &caller, at.session).await?;
    let bytes = payload.raw().await?;
    let tenant = caller.principal.tenant;
    let workspace = state
        .engine
        .host()
        .workspace(tenant, at.session)
        .await
        .map_err(Failure::internal)?;
    let path = workspace.root().join(&at.path);
    // To its end even if the client leaves.
    let (put, place, shared) = (workspace.clone(), path.clone(), state.clone());
    let written = state.finish(async move {
        let _alone = shared.one_change_of_files(&condition).await;
        let before = present(&put, &place).await.map_err(failed)?;
        permitted(&condition, before.as_deref())?;
        let written = put.write_atomic(&place, bytes.to_vec(), Parents::Create).await;
        written.map_err(failed)?;
        let after = present(&put, &place).await.map_err(failed)?;
        Ok::<_, Failure>((before.is_none(), after))
    });
    let (is_new, tag) = written.await?;
    let metadata = workspace.metadata(&path).await.map_err(failed)?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let tag = conditions::etag(&tag.unwrap_or_default());
    Ok((status, tag, Json(entry(at.path, &metadata))).into_response())
}

fn entry(path: String, metadata: &Metadata) -> FileEntry {
    FileEntry {
        path,
        kind: kind(metadata.kind),
        bytes: metadata.bytes,
        modified_at: metadata.modified_at,
    }
}

/// Take a file, a link or an empty directory out of a session's workspace.
#[utoipa::path(delete, path = "/v1/sessions/{id}/files/{path}", tag = "files",
    params(("id" = SessionId, Path), ("path" = String, Path), ConditionHeaders),
    responses((status = 204, description = "It is gone.")))]
pub(super) async fn delete_file(
    State(state): State<ApiState>,
    caller: Caller,
    at: InWorkspace,
    headers: HeaderMap,
) -> Result<StatusCode, Failure> {
    caller.require(Scope::SessionsWrite)?;
    let condition = conditions::of(&headers)?;
    let workspace = existing(&state, &caller, at.session).await?;
    let workspace = workspace.ok_or_else(|| Failure::not_found("file"))?;
    let path = workspace.root().join(&at.path);
    let _alone = state.one_change_of_files(&condition).await;
    if !condition.is_empty() {
        let present = present(&workspace, &path).await.map_err(failed)?;
        permitted(&condition, present.as_deref())?;
    }
    let removed = workspace.remove_one(&path).await;
    removed.map_err(failed)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The session is the caller's, and its files are in this server's reach.
pub(super) async fn is_here(state: &ApiState, caller: &Caller, id: SessionId) -> Result<SessionRecord, Failure> {
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.session_record(id).await }));
    let record = found.await?.ok_or_else(|| Failure::not_found("session"))?;
    if state.engine.is_elsewhere(record.node_id) {
        let detail = "the session's files belong to another server of this database";
        return Err(Failure::new(ProblemCode::EnvironmentLost, detail));
    }
    Ok(record)
}

/// The session's workspace, if there is one yet: reading makes none.
pub(in crate::api) async fn existing(
    state: &ApiState,
    caller: &Caller,
    id: SessionId,
) -> Result<Option<Workspace>, Failure> {
    is_here(state, caller, id).await?;
    let (host, tenant) = (state.engine.host(), caller.principal.tenant);
    let path: PathBuf = host.workspace_path(tenant, id);
    if !tokio::fs::try_exists(&path).await.unwrap_or(false) {
        return Ok(None);
    }
    host.workspace(tenant, id).await.map(Some).map_err(Failure::internal)
}

fn failed(error: FileError) -> Failure {
    let detail = match &error {
        FileError::Missing { .. } | FileError::NotDirectory { .. } => return Failure::not_found("file"),
        FileError::Outside { .. } => "the path leads out of the workspace",
        FileError::ReadOnly { .. } => "it may be read but not changed",
        FileError::IsDirectory { .. } => "it is a directory; `?path=` of the listing shows what is in it",
        FileError::NotFile { .. } => "it is no ordinary file",
        FileError::Exists { .. } => "it is there already",
        FileError::TooLong { .. } => "it is too long",
        FileError::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::DirectoryNotEmpty => "the directory is not empty",
            std::io::ErrorKind::InvalidFilename => "a part of the path is too long",
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "there is no room for it",
            _ => return Failure::internal(error),
        },
    };
    Failure::field("path", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside() {
        for (given, path) in [
            ("a/b.txt", "a/b.txt"),
            ("./a//b/", "a/b"),
            ("..a/b..", "..a/b.."),
            ("", ""),
        ] {
            assert_eq!(relative(given).unwrap(), path);
        }
        for given in ["/etc/passwd", "../x", "a/../../x", "a/..", "a\0b"] {
            assert!(relative(given).is_err(), "{given}");
        }
    }
}
