//! What was spent, summed up by what the client asks for.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::query::{Query, instant};
use crate::api::state::ApiState;
use crate::base::Timestamp;
use crate::model::id::SessionId;
use crate::model::principal::Scope;
use crate::model::usage::{Purpose, UsageGroup, UsageSum};
use crate::store::usage::UsageFilter;

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(list_usage))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageQuery {
    /// What each entry is the sum of.
    #[serde(default)]
    #[param(required = false, inline)]
    group_by: UsageGroup,
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
    /// Calls from this instant on: an RFC 3339 time, or a day of UTC.
    #[serde(default, deserialize_with = "instant")]
    #[param(value_type = Option<String>, example = "2026-01-01")]
    since: Option<Timestamp>,
    /// Calls before this instant: an RFC 3339 time, or a day of UTC.
    #[serde(default, deserialize_with = "instant")]
    #[param(value_type = Option<String>, example = "2026-02-01")]
    until: Option<Timestamp>,
    session_id: Option<SessionId>,
    /// Only of turns that this user created.
    user: Option<String>,
    model: Option<String>,
    #[param(inline)]
    purpose: Option<Purpose>,
}

/// Model calls of one group, summed up.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsageEntry {
    #[serde(flatten)]
    sum: UsageSum,
    /// What `cost_nanos` has billionths of.
    currency: String,
}

/// Sum up model calls by day, model, session, user, purpose or turn.
///
/// The greatest key comes first, which is the newest day, session or turn. Calls
/// of deleted sessions count. Costs are by the prices at the time of the call.
#[utoipa::path(get, path = "/v1/usage", tag = "usage", params(UsageQuery),
    responses((status = 200, description = "A page of sums.", body = Page<UsageEntry>)))]
pub(super) async fn list_usage(
    State(state): State<ApiState>,
    caller: Caller,
    Query(query): Query<UsageQuery>,
) -> Result<Json<Page<UsageEntry>>, Failure> {
    caller.require(Scope::SessionsRead)?;
    let filters = json!([
        "usage",
        query.group_by,
        query.since,
        query.until,
        query.session_id,
        query.user,
        query.model,
        query.purpose
    ]);
    let list = state.list(&caller, &filters)?;
    let before: Option<String> = list.after(query.after.as_deref())?;
    let (group, limit) = (query.group_by, query.limit);
    let filter = UsageFilter {
        since: query.since,
        until: query.until,
        session: query.session_id,
        user: query.user,
        model: query.model,
        purpose: query.purpose,
    };
    let found = caller.scope.read(move |mut rows| {
        Box::pin(async move { rows.usage_by(group, &filter, before.as_deref(), limit.and_one()).await })
    });
    let page = list.cut(found.await?, limit, |sum| sum.key.clone());
    let currency = state.engine.settings().currency.clone();
    Ok(Json(page.map(|sum| UsageEntry {
        sum,
        currency: currency.clone(),
    })))
}
