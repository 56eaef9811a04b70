//! Streams of a tenant's lists: what its sessions and approvals become, and the
//! inbox of what waits for a person. They have no cursor and no `id:`; one that
//! is opened again begins anew.

use crate::api::surface::{Surface, routes};
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde::de::IgnoredAny;
use utoipa::IntoParams;

use crate::api::caller::Caller;
use crate::api::failure::Failure;
use crate::api::leash::Leash;
use crate::api::lifetime::Lifetime;
use crate::api::query::Query;
use crate::api::sse::{self, Watched};
use crate::api::state::ApiState;
use crate::api::viewer::Viewer;
use crate::live::lists::FollowLists;
use crate::model::approval::ApprovalStatus;
use crate::model::event_types::Types;
use crate::model::id::SessionId;
use crate::model::tenant_event::TenantEvent;

use super::stream_filter::{Deltas, shown_of_tenant};

pub(super) fn routes() -> Surface {
    Surface::new()
        .routes(routes!(stream_lists))
        .routes(routes!(stream_approvals))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListsFilter {
    /// Only these types, separated by commas; `approval.*` stands for all that
    /// begin so. Frames of the stream itself always come.
    types: Option<String>,
    /// As on other streams; there are no deltas here.
    #[param(inline)]
    #[serde(rename = "deltas")]
    _deltas: Option<Deltas>,
    /// Read by the viewer.
    #[param(ignore)]
    #[serde(rename = "token")]
    _token: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct InboxFilter {
    /// Only approvals that have this status by the event: with `pending`, those
    /// that are asked and not what becomes of them.
    status: Option<ApprovalStatus>,
    session_id: Option<SessionId>,
    /// Only these types, separated by commas; `approval.*` stands for all that
    /// begin so. Frames of the stream itself always come.
    types: Option<String>,
    /// As on other streams; there are no deltas here.
    #[param(inline)]
    #[serde(rename = "deltas")]
    _deltas: Option<Deltas>,
    /// Read by the viewer.
    #[param(ignore)]
    #[serde(rename = "token")]
    _token: Option<IgnoredAny>,
}

/// Follow the sessions and approvals of the tenant that the caller sees.
///
/// For lists that stay current: open the stream, read the lists after
/// `stream.hello`, then put in what each event brings, whole sessions and
/// approvals; of one session, what has a higher `head_seq` is newer. There is no
/// cursor. After a reconnect, and after `stream.reset` (the reader was too
/// slow), read the lists again.
#[utoipa::path(get, path = "/v1/stream", tag = "streams", params(ListsFilter),
    responses((status = 200, description = "Frames; `data` is an event.",
        body = TenantEvent, content_type = "text/event-stream")))]
pub(super) async fn stream_lists(
    State(state): State<ApiState>,
    viewer: Viewer,
    Query(filter): Query<ListsFilter>,
) -> Result<Response, Failure> {
    let caller = viewer.of_tenant()?;
    let types = shown_of_tenant(filter.types.as_deref())?;
    let follow = follow(&state, &caller, types);
    Ok(answer(state, &caller, follow))
}

/// Follow the approvals that wait for a person.
///
/// After `stream.hello` each pending approval comes as `approval.requested`,
/// then `stream.ready`, then what changes; `session.deleted` takes the
/// session's approvals along. There is no cursor: a stream that is opened again,
/// or that says `stream.reset` (the reader was too slow), begins anew, and what
/// it does not show by `stream.ready` is not pending any more. An approval that
/// changes at that moment may be told twice.
#[utoipa::path(get, path = "/v1/approvals/stream", tag = "approvals", params(InboxFilter),
    responses((status = 200, description = "Frames; `data` is an event.",
        body = TenantEvent, content_type = "text/event-stream")))]
pub(super) async fn stream_approvals(
    State(state): State<ApiState>,
    viewer: Viewer,
    Query(filter): Query<InboxFilter>,
) -> Result<Response, Failure> {
    let caller = viewer.of_tenant()?;
    let types = shown_of_tenant(filter.types.as_deref())?;
    let follow = FollowLists {
        inbox: true,
        session: filter.session_id,
        status: filter.status,
        ..follow(&state, &caller, types)
    };
    Ok(answer(state, &caller, follow))
}

fn follow(state: &ApiState, caller: &Caller, types: Types) -> FollowLists {
    FollowLists {
        scope: caller.scope.clone(),
        inbox: false,
        session: None,
        status: None,
        types,
        heartbeat: state.heartbeat,
    }
}

fn answer(state: ApiState, caller: &Caller, follow: FollowLists) -> Response {
    let lifetime = Lifetime::of(&state, caller);
    let follower = follow.start(state.clock().clone());
    sse::response(state, Watched::Lists(Box::new(follower)), Leash::none(), lifetime)
}
