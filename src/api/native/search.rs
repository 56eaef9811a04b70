//! Words, looked for in the titles and messages that the caller may see.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::query::Query;
use crate::api::state::ApiState;
use crate::model::id::SessionId;
use crate::model::principal::Scope;
use crate::model::search::{SearchHit, Terms};

const MAX_CHARS: usize = 200;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(search))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SearchFilter {
    /// One to eight words, of any length and in any script; what stands in
    /// double quotes is one.
    #[param(min_length = 1, max_length = 200)]
    q: String,
    /// Only in this session.
    session_id: Option<SessionId>,
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
}

/// Search titles and messages.
///
/// Finds what holds all the words, also as parts of longer ones; case, width and
/// composition of letters do not count. Titles come first, then messages of
/// users and of the model by how much of them the words are; of equal ones the
/// newer first. Archived sessions are searched too. Of a message the first
/// 65,536 characters are. Arguments and results of tools are not: the session
/// that they belong to has them.
#[utoipa::path(get, path = "/v1/search", tag = "sessions", params(SearchFilter),
    responses((status = 200, description = "A page of hits, best first.", body = Page<SearchHit>)))]
pub(super) async fn search(
    State(state): State<ApiState>,
    caller: Caller,
    Query(filter): Query<SearchFilter>,
) -> Result<Json<Page<SearchHit>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let SearchFilter {
        q,
        session_id,
        limit,
        after,
    } = filter;
    if MAX_CHARS < q.chars().count() {
        return Err(Failure::field("q", format!("it is longer than {MAX_CHARS} characters")));
    }
    let terms = Terms::of(&q).ok_or_else(|| Failure::field("q", "expected one to eight words"))?;
    let list = state.list(&caller, &json!(["search", terms.texts(), session_id]))?;
    let after = list.after(after.as_deref())?;
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.search(&terms, session_id, after, limit.and_one()).await }));
    let page = list.cut(found.await?, limit, |(rank, _)| *rank);
    Ok(Json(page.map(|(_, hit)| hit)))
}
