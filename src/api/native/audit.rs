//! The audit trail: read in pages, and exported whole for proof without a server.

use crate::api::surface::{Surface, routes};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::page::{Limit, Page};
use crate::api::payload::JsonLines;
use crate::api::query::{Query, instant};
use crate::api::state::ApiState;
use crate::base::Timestamp;
use crate::model::audit::{AuditAction, AuditEntry, Link};
use crate::model::id::{CallId, SessionId, TurnId};
use crate::model::principal::Scope;
use crate::store::AuditExport;
use crate::store::audit::{AuditFilter, Chained};

pub(super) fn routes() -> Surface {
    Surface::new().routes(routes!(list_audit)).routes(routes!(export_audit))
}

/// An entry of the audit trail.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditRecord {
    #[serde(flatten)]
    entry: AuditEntry,
    /// Its place in the tenant's chain; it has one within a second.
    link: Option<Link>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    #[serde(default)]
    #[param(required = false)]
    limit: Limit,
    /// The `next_cursor` of the page before.
    after: Option<String>,
    action: Option<AuditAction>,
    /// The user who did it; `system` for the server itself.
    actor: Option<String>,
    session_id: Option<SessionId>,
    turn_id: Option<TurnId>,
    tool_call_id: Option<CallId>,
    /// At this instant or later: an RFC 3339 time, or a day of UTC.
    #[serde(default, deserialize_with = "instant")]
    #[param(value_type = Option<String>, example = "2026-01-01")]
    since: Option<Timestamp>,
    /// Before this instant: an RFC 3339 time, or a day of UTC.
    #[serde(default, deserialize_with = "instant")]
    #[param(value_type = Option<String>, example = "2026-02-01")]
    until: Option<Timestamp>,
}

/// List entries of the audit trail, newest first.
///
/// Without the scope `tenant:all` those about the caller's own sessions, keys
/// and grants.
#[utoipa::path(get, path = "/v1/audit", tag = "audit",
    params(AuditQuery),
    responses((status = 200, description = "A page of entries.", body = Page<AuditRecord>)))]
pub(super) async fn list_audit(
    State(state): State<ApiState>,
    caller: Caller,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Page<AuditRecord>>, Failure> {
    caller.require(Scope::AuditRead)?;
    let filters = json!([
        "audit",
        query.action,
        query.actor,
        query.session_id,
        query.turn_id,
        query.tool_call_id,
        query.since,
        query.until
    ]);
    let list = state.list(&caller, &filters)?;
    let before = list.after(query.after.as_deref())?;
    let limit = query.limit;
    let filter = AuditFilter {
        action: query.action,
        actor: query.actor,
        session: query.session_id,
        turn: query.turn_id,
        call: query.tool_call_id,
        since: query.since,
        until: query.until,
    };
    let found = caller
        .scope
        .read(move |mut rows| Box::pin(async move { rows.audit_entries(&filter, before, limit.and_one()).await }));
    let page = list.cut(found.await?, limit, |chained| chained.entry.id);
    Ok(Json(page.map(|Chained { entry, link }| AuditRecord { entry, link })))
}

/// Export the audit trail as lines of JSON.
///
/// For `hermes-server audit verify`, which proves without a server that nothing
/// was changed, dropped or moved. Entries that the caller may not see are
/// withheld; their digests keep the chain whole.
#[utoipa::path(get, path = "/v1/audit/export", tag = "audit",
    responses((status = 200, description = "The export, one object a line: a head, the entries, an end.",
        body = inline(JsonLines), content_type = "application/x-ndjson")))]
pub(super) async fn export_audit(caller: Caller) -> Result<Response, Failure> {
    caller.require(Scope::AuditRead)?;
    let mut export = AuditExport::new(caller.scope);
    // What fails before the first byte is a problem like any other.
    let head = export.next().await?.unwrap_or_default();
    let rest = futures::stream::try_unfold(export, async |mut export| {
        let part = export.next().await?;
        Ok::<_, crate::store::StoreError>(part.map(|part| (part, export)))
    });
    let all = futures::StreamExt::chain(futures::stream::iter([Ok(head)]), rest);
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(all)).into_response())
}
