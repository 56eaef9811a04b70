//! The newest sessions, each with its first words.

use serde_json::{Value, json};

use super::shown;
use crate::model::id::SessionId;
use crate::store::recall::Span;
use crate::store::{Archived, SessionFilter};
use crate::store::{Rows, StoreError};

/// Sessions that are looked at for those of other lines.
const LOOKED_AT: u32 = 50;

pub(super) async fn browse(rows: &mut Rows<'_>, here: SessionId, limit: usize) -> Result<Value, StoreError> {
    let filter = SessionFilter {
        root: None,
        external_id: None,
        status: None,
        archived: Archived::All,
        metadata: Default::default(),
    };
    let own = rows.first_of_line(here).await?;
    let mut results = Vec::new();
    for session in rows.sessions(None, &filter, LOOKED_AT).await? {
        if results.len() == limit {
            break;
        }
        if session.id == here || rows.first_of_line(session.id).await? == own {
            continue;
        }
        let first = rows.said(session.id, Span::From(0), 1).await?;
        let (_, count) = rows.said_around(session.id, 0).await?;
        results.push(json!({
            "session_id": session.id,
            "title": session.title,
            "source": shown::source(&session),
            "started_at": session.created_at,
            "last_active": session.updated_at,
            "message_count": count,
            "preview": shown::preview(first.first()),
        }));
    }
    Ok(json!({
        "success": true,
        "mode": "browse",
        "count": results.len(),
        "results": results,
        "message": "the newest sessions; search with `query`, or read one with `session_id`",
    }))
}
