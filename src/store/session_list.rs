//! The list of sessions with its filters, newest first. A filter that is absent
//! keeps everything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::scope::Rows;
use super::sessions::session_view;
use super::{Arg, Kind, StoreError};
use crate::model::id::SessionId;
use crate::model::session::{Session, SessionStatus};

/// Whether a list holds what was put away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Archived {
    /// Only what was.
    True,
    /// Only what was not.
    False,
    All,
}

/// Which sessions a list holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFilter {
    pub external_id: Option<String>,
    pub status: Option<SessionStatus>,
    pub archived: Archived,
    /// Entries of the metadata by key. A text is compared as it is; a number,
    /// `true` or `false` as JSON writes it.
    pub metadata: BTreeMap<String, String>,
    /// Those that do delegated work of this session; else those that do their own.
    pub root: Option<SessionId>,
}

impl Rows<'_> {
    /// Sessions older than `before`.
    pub async fn sessions(
        &mut self,
        before: Option<SessionId>,
        filter: &SessionFilter,
        limit: u32,
    ) -> Result<Vec<Session>, StoreError> {
        let archived = match filter.archived {
            Archived::All => None,
            Archived::False => Some(0),
            Archived::True => Some(1),
        };
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            before.into(),
            Arg::Int(i64::from(filter.external_id.is_some())),
            Arg::from(&filter.external_id),
            Arg::OptText(filter.status.map(SessionStatus::name)),
            Arg::OptInt(archived),
            Arg::json(&filter.metadata)?,
            limit.into(),
            filter.root.into(),
        ];
        let sql = match self.conn.dialect() {
            Kind::Sqlite => ON_SQLITE,
            Kind::Postgres => ON_POSTGRES,
        };
        let rows = self.conn.rows(sql, &args).await?;
        let ids: Vec<SessionId> = rows.iter().map(|row| row.id("session_id")).collect::<Result<_, _>>()?;
        let mut actions = match (ids.last(), ids.first()) {
            (Some(oldest), Some(newest)) => self.required_actions(*oldest, *newest).await?,
            _ => Vec::new(),
        };
        rows.iter()
            .zip(ids)
            .map(|(row, id)| {
                let own = actions.extract_if(.., |(session, _)| *session == id);
                session_view(row, own.map(|(_, action)| action).collect())
            })
            .collect()
    }
}

/// Of the wanted entries of the metadata none may be missing. SQLite hands out
/// `true` as 1, so its word is put back.
const ON_SQLITE: &str = "
    select session_id, external_id, user_id, title, model, instructions, preset, toolsets, environment,
        approvals, sampling, tools, metadata, lineage, parent_session_id, parent_message_id, archived_at, status, head_seq,
        active_turn_id, usage, created_at, updated_at
    from session
    where tenant_id = $1 and user_id = coalesce($2, user_id) and deleted_at is null
        and session_id < coalesce($3, 'ses_~') and ($4 = 0 or external_id = $5)
        and status = coalesce($6, status) and (archived_at is not null) = coalesce($7, archived_at is not null)
        and not exists (
            select 1 from json_each($8) as want where not exists (
                select 1 from json_each(session.metadata) as have
                where have.key = want.key and want.value = case
                    when have.type in ('true', 'false') then have.type
                    when have.type in ('text', 'integer', 'real') then cast(have.value as text) end))
        and coalesce(root_session_id, '') = coalesce($10, '')
    order by session_id desc limit $9";

const ON_POSTGRES: &str = "
    select session_id, external_id, user_id, title, model, instructions, preset, toolsets, environment,
        approvals, sampling, tools, metadata, lineage, parent_session_id, parent_message_id, archived_at, status, head_seq,
        active_turn_id, usage, created_at, updated_at
    from session
    where tenant_id = $1 and user_id = coalesce($2, user_id) and deleted_at is null
        and session_id < coalesce($3, 'ses_~') and ($4 = 0 or external_id = $5)
        and status = coalesce($6, status)
        and (archived_at is not null)::int = coalesce($7, (archived_at is not null)::int)
        and not exists (
            select 1 from json_each_text($8::json) as want where not exists (
                select 1 from json_each(session.metadata::json) as have
                where have.key = want.key and json_typeof(have.value) in ('string', 'number', 'boolean')
                    and have.value #>> '{}' = want.value))
        and coalesce(root_session_id, '') = coalesce($10, '')
    order by session_id desc limit $9";
