//! Sessions as a list for people shows them: what was touched last comes first,
//! each with how much was said and how it began.

use super::scope::Rows;
use super::sessions::session_view;
use super::{Arg, Row, StoreError};
use crate::model::id::SessionId;
use crate::model::message::Part;
use crate::model::session::Session;

/// Which sessions, and which part of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverviewFilter {
    pub id: Option<SessionId>,
    pub title: Option<String>,
    /// Forks as well.
    pub forks: bool,
    /// What was put away as well.
    pub archived: bool,
    pub offset: u32,
    pub limit: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    pub session: Session,
    pub messages: i64,
    pub calls: i64,
    /// What a user said first.
    pub first_said: Vec<Part>,
}

impl Rows<'_> {
    pub async fn overviews(&mut self, filter: &OverviewFilter) -> Result<Vec<Overview>, StoreError> {
        const SQL: &str = "
            select s.session_id, s.external_id, s.user_id, s.title, s.model, s.instructions, s.preset, s.toolsets,
                s.environment, s.approvals, s.sampling, s.tools, s.budget, s.metadata, s.lineage, s.parent_session_id,
                s.parent_message_id,
                s.archived_at, s.status, s.head_seq, s.active_turn_id, s.usage, s.created_at, s.updated_at,
                (select count(*) from message m where m.tenant_id = s.tenant_id and m.session_id = s.session_id)
                    as messages,
                (select count(*) from tool_call c where c.tenant_id = s.tenant_id and c.session_id = s.session_id)
                    as calls,
                (select m.content from message m
                    where m.tenant_id = s.tenant_id and m.session_id = s.session_id and m.role = 'user'
                    order by m.position limit 1) as first_said
            from session s
            where s.tenant_id = $1 and s.user_id = coalesce($2, s.user_id) and s.deleted_at is null
                and s.session_id = coalesce($3, s.session_id) and ($3 is not null or s.root_session_id is null)
                and ($4 = 1 or s.title = $5) and ($6 = 1 or s.parent_session_id is null)
                and ($7 = 1 or s.archived_at is null)
            order by s.updated_at desc, s.session_id desc limit $8 offset $9";
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            filter.id.into(),
            Arg::Int(i64::from(filter.title.is_none())),
            Arg::from(&filter.title),
            Arg::Int(i64::from(filter.forks)),
            Arg::Int(i64::from(filter.archived)),
            filter.limit.into(),
            filter.offset.into(),
        ];
        let rows = self.conn.rows(SQL, &args).await?;
        let ids: Vec<SessionId> = rows.iter().map(|row| row.id("session_id")).collect::<Result<_, _>>()?;
        let mut actions = match (ids.iter().min(), ids.iter().max()) {
            (Some(oldest), Some(newest)) => self.required_actions(*oldest, *newest).await?,
            _ => Vec::new(),
        };
        let view = |(row, id): (&Row, SessionId)| {
            let own = actions.extract_if(.., |(session, _)| *session == id);
            Ok(Overview {
                session: session_view(row, own.map(|(_, action)| action).collect())?,
                messages: row.int("messages")?,
                calls: row.int("calls")?,
                first_said: row.opt_json("first_said")?.unwrap_or_default(),
            })
        };
        rows.iter().zip(ids).map(view).collect()
    }

    /// Whether one of these sessions has the title.
    pub async fn title_is_taken(&mut self, title: &str, except: Option<SessionId>) -> Result<bool, StoreError> {
        const SQL: &str = "
            select session_id from session
            where tenant_id = $1 and user_id = coalesce($2, user_id) and deleted_at is null and title = $3
                and session_id <> coalesce($4, '')
            limit 1";
        let args = [
            self.tenant.into(),
            Arg::from(&self.user),
            Arg::from(title),
            except.into(),
        ];
        Ok(self.conn.row(SQL, &args).await?.is_some())
    }
}
