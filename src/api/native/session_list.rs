//! The list of sessions with its filters.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::query::WithMetadata;
use crate::api::state::ApiState;
use crate::model::id::SessionId;
use crate::model::principal::Scope;
use crate::model::session::{Session, SessionStatus};
use crate::store::{Archived, SessionFilter};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListFilter {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
    /// Only the session of this name.
    external_id: Option<String>,
    status: Option<SessionStatus>,
    /// Whether archived sessions are listed: `false` unless the filter names one
    /// by its `external_id`.
    #[param(inline)]
    archived: Option<Archived>,
    /// The sessions that do delegated work of this one; they are in no other list.
    root_session_id: Option<SessionId>,
}

/// List sessions, newest first.
///
/// `metadata.KEY=VALUE` (or `metadata[KEY]=VALUE`) keeps those whose metadata
/// has this entry; several have to hold together. A text is compared as it is, a
/// number, `true` or `false` as JSON writes it.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions", params(ListFilter,
    ("metadata" = Option<std::collections::BTreeMap<String, String>>, Query, style = DeepObject, explode,
        description = "Entries that the metadata has, by key, at most 16: `metadata[KEY]=VALUE`.")),
    responses((status = 200, description = "A page of sessions.", body = Page<Session>)))]
pub(super) async fn list_sessions(
    State(state): State<ApiState>,
    caller: Caller,
    WithMetadata(filter, metadata): WithMetadata<ListFilter>,
) -> Result<Json<Page<Session>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let named = filter.external_id.is_some();
    let limit = filter.limit;
    let after = filter.after;
    let filter = SessionFilter {
        archived: filter
            .archived
            .unwrap_or(if named { Archived::All } else { Archived::False }),
        external_id: filter.external_id,
        status: filter.status,
        metadata,
        root: filter.root_session_id,
    };
    let what = json!([
        "sessions",
        filter.external_id,
        filter.status,
        filter.archived,
        filter.metadata,
        filter.root
    ]);
    let list = state.list(&caller, &what)?;
    let before: Option<SessionId> = list.after(after.as_deref())?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.sessions(before, &filter, limit.and_one()).await }));
    Ok(Json(list.cut(found.await?, limit, |session| session.id)))
}
