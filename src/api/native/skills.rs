//! Skills over HTTP: the tenant's own are read and written, the server's are read.
//! A name may be `category%2Fname` or `plugin:name`. Which name may lead where is checked in
//! `tool::skill`; a condition is checked under the lock of the change.

use std::path::PathBuf;

use axum::Json;
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::files::deep;
use super::listing::Listing;
use crate::api::caller::Caller;
use crate::api::conditions::{self, ConditionHeaders};
use crate::api::failure::Failure;
use crate::api::payload::{FileBytes, Payload};
use crate::api::state::ApiState;
use crate::api::surface::{Surface, routes};
use crate::model::precondition::{Precondition, Reading};
use crate::model::principal::Scope;
use crate::model::problem::ProblemCode;
use crate::model::skill::{Skill, SkillEntry, SkillFile, SkillOrigin, SkillText};
use crate::model::version::{Part, Version};
use crate::tool::skill::change::{Alone, Change, Consent, Refusal};
use crate::tool::skill::library::{self, Found, Library};
use crate::tool::skill::name;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(list_skills))
        .routes(routes!(get_skill, put_skill, delete_skill))
        .routes(routes!(pin_skill, unpin_skill))
        .routes(deep(routes!(get_skill_file, put_skill_file, delete_skill_file)))
}

/// Those that clients of other surfaces use as well.
pub(in crate::api) fn shared_routes() -> Surface {
    Surface::new().routes(routes!(list_skills))
}

/// A skill as the path names it, and one of its files.
pub(super) struct InSkills {
    skill: String,
    file: String,
}

impl FromRequestParts<ApiState> for InSkills {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Failure> {
        let Ok(params) = RawPathParams::from_request_parts(parts, state).await else {
            return Err(Failure::not_found("skill"));
        };
        let mut segments = params.iter().map(|(_, segment)| segment.to_owned());
        let skill = segments.next().unwrap_or_default();
        match name::asked(&skill) {
            Ok(_) => Ok(Self {
                skill,
                file: segments.next().unwrap_or_default(),
            }),
            Err(_) => Err(Failure::not_found("skill")),
        }
    }
}

/// List a tenant's skills and those of the server and its plugins, by category and
/// name. Agents see those whose `state` is `available`.
#[utoipa::path(get, path = "/v1/skills", tag = "skills",
    responses((status = 200, description = "All skills.", body = Listing<SkillEntry>)))]
pub(super) async fn list_skills(
    State(state): State<ApiState>,
    caller: Caller,
) -> Result<Json<Listing<SkillEntry>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let listed = on_disk(&state, &caller, |library| Ok(library.list()?)).await?;
    Ok(Json(Listing::of(listed.iter().map(library::Skill::entry).collect())))
}

/// Read a skill: its text, and which files it has.
#[utoipa::path(get, path = "/v1/skills/{name}", tag = "skills",
    params(("name" = String, Path, description = "`name`, or `category%2Fname`."), ConditionHeaders),
    responses((status = 200, description = "The skill.", body = Skill)))]
pub(super) async fn get_skill(
    State(state): State<ApiState>,
    caller: Caller,
    at: InSkills,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let condition = conditions::of(&headers)?;
    let skill = on_disk(&state, &caller, move |library| Ok(found(library, &at.skill)?.shown()?)).await?;
    conditions::read(skill, &condition)
}

/// Write a skill as a whole.
///
/// One of the server's is not changed: the tenant gets its own of the same path,
/// which stands before it. A text that would turn agents against their owner is
/// refused.
#[utoipa::path(put, path = "/v1/skills/{name}", tag = "skills",
    params(("name" = String, Path, description = "`name`, or `category%2Fname`."), ConditionHeaders),
    request_body = SkillText,
    responses((status = 200, description = "The skill as it is now.", body = Skill),
        (status = 201, description = "The skill is new.", body = Skill)))]
pub(super) async fn put_skill(
    State(state): State<ApiState>,
    caller: Caller,
    at: InSkills,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let condition = conditions::of(&headers)?;
    let SkillText { content } = payload.json().await?;
    let written = changed(&state, &caller, move |library| {
        let alone = Alone::with(library)?;
        let before = there(library, &at.skill)?;
        permitted(
            &condition,
            before.as_ref().map(library::Skill::shown).transpose()?.as_ref(),
        )?;
        let made = match before.filter(|skill| skill.origin == SkillOrigin::Tenant) {
            Some(own) => (
                alone.make(&own.path(), &Change::Edit { content }, Consent::Nobody)?,
                StatusCode::OK,
            ),
            None => {
                let new = Change::Create {
                    category: None,
                    content,
                };
                (alone.make(&at.skill, &new, Consent::Nobody)?, StatusCode::CREATED)
            }
        };
        let (made, status) = made;
        Ok((status, found(library, &made.path)?.shown()?))
    });
    let (status, skill) = written.await?;
    let mut answer = conditions::tagged(skill);
    *answer.status_mut() = status;
    Ok(answer)
}

/// Delete one of the tenant's skills, with its files.
#[utoipa::path(delete, path = "/v1/skills/{name}", tag = "skills",
    params(("name" = String, Path, description = "`name`, or `category%2Fname`."), ConditionHeaders),
    responses((status = 204, description = "It is gone.")))]
pub(super) async fn delete_skill(
    State(state): State<ApiState>,
    caller: Caller,
    at: InSkills,
    headers: HeaderMap,
) -> Result<StatusCode, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let condition = conditions::of(&headers)?;
    let deleted = changed(&state, &caller, move |library| {
        let alone = Alone::with(library)?;
        permitted(&condition, Some(&found(library, &at.skill)?.shown()?))?;
        alone.make(&at.skill, &Change::Delete { absorbed_into: None }, Consent::Nobody)?;
        Ok(())
    });
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Keep one of the tenant's skills from being deleted, by agents and people.
#[utoipa::path(put, path = "/v1/skills/{name}/pin", tag = "skills",
    params(("name" = String, Path, description = "`name`, or `category%2Fname`.")),
    responses((status = 204, description = "It is pinned.")))]
pub(super) async fn pin_skill(
    State(state): State<ApiState>,
    caller: Caller,
    at: InSkills,
) -> Result<StatusCode, Failure> {
    pinned(&state, &caller, at, true).await
}

/// Let a skill be deleted again.
#[utoipa::path(delete, path = "/v1/skills/{name}/pin", tag = "skills",
    params(("name" = String, Path, description = "`name`, or `category%2Fname`.")),
    responses((status = 204, description = "It is not pinned.")))]
pub(super) async fn unpin_skill(
    State(state): State<ApiState>,
    caller: Caller,
    at: InSkills,
) -> Result<StatusCode, Failure> {
    pinned(&state, &caller, at, false).await
}

async fn pinned(state: &ApiState, caller: &Caller, at: InSkills, pinned: bool) -> Result<StatusCode, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let pin = move |library: &Library| Ok(Alone::with(library)?.pin(&at.skill, pinned)?);
    changed(state, caller, pin).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Send a file of a skill.
#[utoipa::path(get, path = "/v1/skills/{name}/files/{path}", tag = "skills",
    params(("name" = String, Path, description = "`name`, or `category%2Fname`."),
        ("path" = String, Path, description = "As `files` of the skill names it."),
        ConditionHeaders),
    responses((status = 200, description = "The file.", body = inline(FileBytes),
        content_type = "application/octet-stream")))]
pub(super) async fn get_skill_file(
    State(state): State<ApiState>,
    caller: Caller,
    at: InSkills,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsRead)?;
    let condition = conditions::of(&headers)?;
    let path = name::inside(&at.file).map_err(|_| Failure::not_found("file"))?;
    let kind = mime_guess::from_path(&path).first_or_octet_stream();
    let bytes = on_disk(&state, &caller, move |library| {
        let skill = found(library, &at.skill)?;
        library::support_file(&skill.folder, &path).map_err(|_| Failure::not_found("file"))
    });
    let bytes = bytes.await?;
    let version = Version::of_whole(&bytes);
    let mut described = conditions::etag(&version.tag());
    match condition.reading(&version) {
        Reading::Whole => {
            let kind = HeaderValue::from_str(kind.as_ref()).map_err(Failure::internal)?;
            described.insert(CONTENT_TYPE, kind);
            // Somebody's text: no browser is to run it as a page of this server.
            let saved = HeaderValue::from_static("attachment");
            described.insert(http::header::CONTENT_DISPOSITION, saved);
            Ok((described, bytes).into_response())
        }
        Reading::NotModified => Ok((StatusCode::NOT_MODIFIED, described).into_response()),
        Reading::Failed(problem) => Err(problem.into()),
    }
}

/// Put a file beside a skill's text, in one step.
#[utoipa::path(put, path = "/v1/skills/{name}/files/{path}", tag = "skills",
    params(("name" = String, Path, description = "`name`, or `category%2Fname`."),
        ("path" = String, Path, description = "Below `references/`, `templates/`, `scripts/` or `assets/`."),
        ConditionHeaders),
    request_body(content = inline(FileBytes), content_type = "application/octet-stream",
        description = "The bytes of the file, 1 MiB at most; any `Content-Type` is taken."),
    responses((status = 200, description = "The file was replaced.", body = SkillFile),
        (status = 201, description = "The file is new.", body = SkillFile)))]
pub(super) async fn put_skill_file(
    State(state): State<ApiState>,
    caller: Caller,
    at: InSkills,
    headers: HeaderMap,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let condition = conditions::of(&headers)?;
    let path = named(&at.file)?;
    let content = payload.raw().await?.to_vec();
    let written = changed(&state, &caller, move |library| {
        let alone = Alone::with(library)?;
        let before = library::support_file(&found(library, &at.skill)?.folder, &path).ok();
        permitted(&condition, before.as_ref())?;
        let status = if before.is_some() {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        let file = SkillFile {
            path: path.to_string_lossy().into_owned(),
            bytes: u64::try_from(content.len()).unwrap_or(u64::MAX),
        };
        let tag = Version::of_whole(&content).tag();
        let write = Change::WriteFile {
            file: file.path.clone(),
            content,
        };
        alone.make(&at.skill, &write, Consent::Nobody)?;
        Ok((status, tag, file))
    });
    let (status, tag, file) = written.await?;
    let tag = HeaderValue::from_str(&tag).map_err(Failure::internal)?;
    Ok((status, [(ETAG, tag)], Json(file)).into_response())
}

/// Take a file from a skill of the tenant.
#[utoipa::path(delete, path = "/v1/skills/{name}/files/{path}", tag = "skills",
    params(("name" = String, Path, description = "`name`, or `category%2Fname`."),
        ("path" = String, Path, description = "Below `references/`, `templates/`, `scripts/` or `assets/`."),
        ConditionHeaders),
    responses((status = 204, description = "It is gone.")))]
pub(super) async fn delete_skill_file(
    State(state): State<ApiState>,
    caller: Caller,
    at: InSkills,
    headers: HeaderMap,
) -> Result<StatusCode, Failure> {
    caller.require(Scope::SessionsWrite)?;
    state.takes_work()?;
    let condition = conditions::of(&headers)?;
    let path = named(&at.file).map_err(|_| Failure::not_found("file"))?;
    let deleted = changed(&state, &caller, move |library| {
        let alone = Alone::with(library)?;
        let before = library::support_file(&found(library, &at.skill)?.folder, &path);
        permitted(&condition, Some(&before.map_err(|_| Failure::not_found("file"))?))?;
        let file = path.to_string_lossy().into_owned();
        alone.make(&at.skill, &Change::RemoveFile { file }, Consent::Nobody)?;
        Ok(())
    });
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}

fn named(file: &str) -> Result<PathBuf, Failure> {
    name::support(file).map_err(|bad| Failure::field("path", bad.to_string()))
}

/// Whether what is there now may be changed under the request's conditions.
fn permitted(condition: &Precondition, now: Option<&impl serde::Serialize>) -> Result<(), Failure> {
    let forbidden = match now {
        Some(now) => condition.forbids(&Version::of_whole(now), Part::Whole),
        None => condition.forbids_new(),
    };
    forbidden.map_or(Ok(()), |problem| Err(problem.into()))
}

fn there(library: &Library, asked: &str) -> Result<Option<library::Skill>, Failure> {
    let (shelf, name) = name::asked(asked).map_err(|_| Failure::not_found("skill"))?;
    match library.find(shelf, name)? {
        Found::One(skill) => Ok(Some(*skill)),
        Found::Several(paths) => Err(Refusal::Several(paths).into()),
        Found::None => Ok(None),
    }
}

fn found(library: &Library, asked: &str) -> Result<library::Skill, Failure> {
    there(library, asked)?.ok_or_else(|| Failure::not_found("skill"))
}

/// Looks at the caller's skills, where waiting for a disk holds nobody up.
async fn on_disk<T: Send + 'static>(
    state: &ApiState,
    caller: &Caller,
    look: impl FnOnce(&Library) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let library = state.engine.host().skills(caller.principal.tenant);
    let looked = tokio::task::spawn_blocking(move || look(&library));
    looked.await.map_err(Failure::internal)?
}

/// Changes them, to the end even if the client leaves.
async fn changed<T: Send + 'static>(
    state: &ApiState,
    caller: &Caller,
    change: impl FnOnce(&Library) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (state, caller) = (state.clone(), caller.clone());
    let finishing = state.clone();
    finishing
        .finish(async move {
            let changed = on_disk(&state, &caller, change).await;
            state.engine.host().skills_changed(caller.principal.tenant);
            changed
        })
        .await
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::internal(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            Refusal::Name(_) | Refusal::Several(_) | Refusal::Exists(_) | Refusal::NotAbsorbed(_) => {
                Self::field("name", detail)
            }
            Refusal::Missing(_) => Self::not_found("skill"),
            Refusal::NoFile(..) => Self::not_found("file"),
            Refusal::NotOurs(_) | Refusal::Pinned(_) => Self::new(ProblemCode::Forbidden, detail),
            Refusal::Malformed(_) | Refusal::Dangerous(_) | Refusal::NoMatch { .. } => Self::field("/content", detail),
            Refusal::Large => Self::new(ProblemCode::PayloadTooLarge, detail),
            Refusal::Full => Self::field("path", detail),
            Refusal::Disk(error) => Self::internal(error),
        }
    }
}
