//! API keys: made, listed, revoked. The text of a key leaves the server once,
//! in the answer that made it; nobody can hand on more than they may do.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::api::auth::api_key;
use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::path::InPath;
use crate::api::payload::Payload;
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::base::{Secret, Timestamp};
use crate::model::id::KeyId;
use crate::model::principal::{Principal, Scope, Scopes};
use crate::model::problem::ProblemCode;
use crate::store::{self, keys::KeyRecord};
use crate::turn::requests::{EngineError, earlier};

const MAX_NAME_CHARS: usize = 200;
/// As long as an external id of a session.
const MAX_USER_CHARS: usize = 256;
/// More tools than any preset has.
const MAX_TOOLS: usize = 200;

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(create_key, list_keys))
        .routes(routes!(revoke_key))
}

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    /// What the key is for.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// What the key may do; at most what its maker may.
    #[schema(min_items = 1)]
    scopes: Vec<Scope>,
    /// The only tools that turns begun with the key may use; no ceiling when absent.
    #[schema(max_items = 200)]
    tools: Option<Vec<String>>,
    /// Whose sessions the key sees; the maker's when absent. Another user takes
    /// the scope `tenant:all`.
    #[schema(min_length = 1, max_length = 256)]
    user_id: Option<String>,
    /// When the key stops to work; when absent, with the credential that makes
    /// it, or never. It cannot outlive that credential.
    expires_at: Option<Timestamp>,
}

/// An API key without its secret.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct ApiKey {
    id: KeyId,
    name: String,
    user_id: String,
    scopes: Vec<String>,
    tools: Option<Vec<String>>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

/// A key that was just made.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct CreatedKey {
    /// The key itself. It is shown this once and cannot be read again; `null`
    /// when the request was sent before under the same `Idempotency-Key`.
    key: Option<String>,
    #[serde(flatten)]
    about: ApiKey,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct KeyFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

/// Make a key.
#[utoipa::path(post, path = "/v1/keys", tag = "keys",
    request_body = NewKey,
    responses((status = 201, description = "The key, with its text this once.", body = CreatedKey)))]
pub(super) async fn create_key(
    State(state): State<ApiState>,
    caller: Caller,
    payload: Payload,
) -> Result<Response, Failure> {
    caller.require(Scope::KeysWrite)?;
    let (new, once): (NewKey, _) = payload.json_once(&caller.principal).await?;
    let now = state.clock().now();
    check(&new, &caller.principal, now)?;
    let key = api_key::generate().map_err(Failure::internal)?;
    let scopes: Scopes = new.scopes.into_iter().collect();
    let maker = &caller.principal;
    let record = KeyRecord {
        tenant_id: maker.tenant,
        key_id: KeyId::new(state.clock()),
        user_id: new.user_id.unwrap_or_else(|| maker.user.clone()),
        name: new.name.trim().to_owned(),
        hash: api_key::hash(key.expose()),
        scopes: scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        // A ceiling is passed on, never lifted.
        tools: new.tools.or_else(|| maker.tools.clone()),
        created_at: now,
        // So is the end of the credential that makes it.
        expires_at: new.expires_at.or(maker.expires_at),
        revoked_at: None,
    };
    let scope = caller.scope.once(once);
    let made = state.finish_once(async move { add(&scope, record, key).await });
    Ok(made
        .await?
        .answer(|created: CreatedKey| (StatusCode::CREATED, Json(created)).into_response()))
}

/// Keeps everything for a replay but the text of the key: it is nowhere in the
/// store.
async fn add(scope: &store::Scope, record: KeyRecord, key: Secret) -> Result<CreatedKey, EngineError> {
    let added = scope.write("key.created", move |mut rows| {
        Box::pin(async move {
            if let Some(earlier) = earlier(&mut rows).await? {
                return Ok(Err(earlier));
            }
            rows.add_key(&record).await?;
            let mut created = CreatedKey {
                key: None,
                about: record.into(),
            };
            rows.remember(&created).await?;
            created.key = Some(key.expose().to_owned());
            Ok(Ok(created))
        })
    });
    added.await?
}

/// List keys without their secrets, newest first, revoked ones too.
#[utoipa::path(get, path = "/v1/keys", tag = "keys",
    params(KeyFilter),
    responses((status = 200, description = "A page of keys.", body = Page<ApiKey>)))]
pub(super) async fn list_keys(
    State(state): State<ApiState>,
    caller: Caller,
    Query(filter): Query<KeyFilter>,
) -> Result<Json<Page<ApiKey>>, Failure> {
    caller.require(Scope::KeysWrite)?;
    let list = state.list(&caller, &json!(["keys"]))?;
    let before = list.after(filter.after.as_deref())?;
    let limit = filter.limit;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.keys(before, limit.and_one()).await }));
    Ok(Json(list.cut(found.await?, limit, |key| key.key_id).map(ApiKey::from)))
}

/// Revoke a key.
///
/// It stops to work at once. To revoke it again changes nothing.
#[utoipa::path(delete, path = "/v1/keys/{id}", tag = "keys",
    params(("id" = KeyId, Path)),
    responses((status = 204, description = "The key no longer works.")))]
pub(super) async fn revoke_key(
    State(state): State<ApiState>,
    caller: Caller,
    InPath(id): InPath<KeyId>,
) -> Result<StatusCode, Failure> {
    caller.require(Scope::KeysWrite)?;
    let now = state.clock().now();
    let revoked = caller.scope.write("key.revoked", move |mut rows| {
        Box::pin(async move { rows.revoke_key(id, now).await })
    });
    match revoked.await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Failure::not_found("key")),
    }
}

/// Whether the maker may make such a key.
fn check(new: &NewKey, maker: &Principal, now: Timestamp) -> Result<(), Failure> {
    let fits = |text: &str, most: usize| !text.trim().is_empty() && text.chars().count() <= most;
    if !fits(&new.name, MAX_NAME_CHARS) {
        return Err(Failure::field(
            "/name",
            format!("expected 1 to {MAX_NAME_CHARS} characters"),
        ));
    }
    if new.scopes.is_empty() {
        return Err(Failure::field(
            "/scopes",
            "a key without scopes can do nothing; name one",
        ));
    }
    if new.expires_at.is_some_and(|at| at <= now) {
        return Err(Failure::field("/expires_at", "it lies in the past"));
    }
    if new.user_id.as_ref().is_some_and(|user| !fits(user, MAX_USER_CHARS)) {
        return Err(Failure::field(
            "/user_id",
            format!("expected 1 to {MAX_USER_CHARS} characters"),
        ));
    }
    if new.tools.as_ref().is_some_and(|tools| MAX_TOOLS < tools.len()) {
        return Err(Failure::field("/tools", format!("more than {MAX_TOOLS} names")));
    }
    within_the_makers_rights(new, maker)
}

fn within_the_makers_rights(new: &NewKey, maker: &Principal) -> Result<(), Failure> {
    let refused = |detail: String| Err(Failure::new(ProblemCode::Forbidden, detail));
    if !maker.scopes.cover(new.scopes.iter().copied().collect()) {
        let lacking: Vec<&str> = new
            .scopes
            .iter()
            .filter(|scope| !maker.scopes.allow(**scope))
            .map(|scope| scope.name())
            .collect();
        return refused(format!(
            "a key can hand on only what it may do itself; it lacks: {}",
            lacking.join(", ")
        ));
    }
    let other_user = new.user_id.as_ref().is_some_and(|user| *user != maker.user);
    if other_user && !maker.sees_whole_tenant() {
        return refused("a key for another user takes the scope `tenant:all`".to_owned());
    }
    if let Some(end) = maker.expires_at
        && new.expires_at.is_some_and(|at| end < at)
    {
        return refused(format!(
            "a key cannot outlive the credential that makes it, which expires at {end}"
        ));
    }
    match new.tools.iter().flatten().find(|tool| !maker.may_use(tool)) {
        Some(tool) => refused(format!("the maker may not use the tool `{tool}` itself")),
        None => Ok(()),
    }
}

impl From<KeyRecord> for ApiKey {
    fn from(key: KeyRecord) -> Self {
        Self {
            id: key.key_id,
            name: key.name,
            user_id: key.user_id,
            scopes: key.scopes,
            tools: key.tools,
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tenants;

    const NOW: Timestamp = Timestamp(1_000);

    fn maker(scopes: &[Scope], tools: Option<&[&str]>) -> Principal {
        Principal {
            tenant: tenants::default_id(),
            user: "ada".to_owned(),
            scopes: scopes.iter().copied().collect(),
            key: None,
            expires_at: None,
            tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        }
    }

    fn wanted(scopes: &[Scope]) -> NewKey {
        NewKey {
            name: "ci".to_owned(),
            scopes: scopes.to_vec(),
            tools: None,
            user_id: None,
            expires_at: None,
        }
    }

    fn status(new: &NewKey, maker: &Principal) -> u16 {
        check(new, maker, NOW).map_or_else(|failure| failure.problem().status, |()| 201)
    }

    #[test]
    fn nobody_hands_on_more_than_they_have() {
        let keeper = maker(&[Scope::KeysWrite, Scope::TurnsWrite], None);
        assert_eq!(status(&wanted(&[Scope::TurnsWrite]), &keeper), 201);
        for scope in [Scope::ApprovalsDecide, Scope::TenantAll, Scope::Admin] {
            assert_eq!(status(&wanted(&[Scope::TurnsWrite, scope]), &keeper), 403, "{scope:?}");
        }
        assert_eq!(status(&wanted(&Scope::ALL), &maker(&[Scope::Admin], None)), 201);
    }

    #[test]
    fn another_users_key_takes_the_whole_tenant() {
        let for_bob = NewKey {
            user_id: Some("bob".to_owned()),
            ..wanted(&[Scope::KeysWrite])
        };
        assert_eq!(status(&for_bob, &maker(&[Scope::KeysWrite], None)), 403);
        assert_eq!(
            status(&for_bob, &maker(&[Scope::KeysWrite, Scope::TenantAll], None)),
            201
        );
        let for_ada = NewKey {
            user_id: Some("ada".to_owned()),
            ..wanted(&[Scope::KeysWrite])
        };
        assert_eq!(status(&for_ada, &maker(&[Scope::KeysWrite], None)), 201);
    }

    #[test]
    fn a_ceiling_is_never_lifted() {
        let maker = maker(&[Scope::KeysWrite], Some(&["read_file"]));
        let with = |tools: &[&str]| NewKey {
            tools: Some(tools.iter().map(|tool| (*tool).to_owned()).collect()),
            ..wanted(&[Scope::KeysWrite])
        };
        assert_eq!(status(&with(&["read_file"]), &maker), 201);
        assert_eq!(status(&with(&[]), &maker), 201);
        assert_eq!(status(&with(&["read_file", "terminal"]), &maker), 403);
    }

    #[test]
    fn a_key_does_not_outlive_the_credential_that_makes_it() {
        let end = Timestamp(NOW.0 + 1000);
        let maker = Principal {
            expires_at: Some(end),
            ..maker(&[Scope::KeysWrite], None)
        };
        let until = |at: i64| NewKey {
            expires_at: Some(Timestamp(at)),
            ..wanted(&[Scope::KeysWrite])
        };
        assert_eq!(status(&until(end.0), &maker), 201);
        assert_eq!(status(&until(end.0 + 1), &maker), 403);
        assert_eq!(status(&wanted(&[Scope::KeysWrite]), &maker), 201);
    }

    #[test]
    fn a_key_that_could_never_work_is_refused() {
        let keeper = maker(&[Scope::KeysWrite], None);
        let expired = NewKey {
            expires_at: Some(NOW),
            ..wanted(&[Scope::KeysWrite])
        };
        let nameless = NewKey {
            name: "  ".to_owned(),
            ..wanted(&[Scope::KeysWrite])
        };
        for new in [expired, nameless, wanted(&[])] {
            assert_eq!(status(&new, &keeper), 400, "{new:?}");
        }
    }
}
