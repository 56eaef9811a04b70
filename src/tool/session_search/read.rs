//! One session: its beginning and its end.

use serde_json::{Value, json};

use super::shown;
use crate::model::id::SessionId;
use crate::store::recall::Span;
use crate::store::{Rows, StoreError};

/// Of the beginning and of the end (Hermes).
const FIRST: u32 = 20;
const LAST: u32 = 10;

pub(super) async fn read(rows: &mut Rows<'_>, session: SessionId) -> Result<Option<Value>, StoreError> {
    let Some(meta) = rows.session(session).await? else {
        return Ok(None);
    };
    let (_, count) = rows.said_around(session, 0).await?;
    let whole = count <= i64::from(FIRST + LAST);
    let mut said = rows
        .said(session, Span::From(0), if whole { FIRST + LAST } else { FIRST })
        .await?;
    if !whole {
        said.extend(rows.said(session, Span::Before(i64::MAX), LAST).await?);
    }
    let mut read = json!({
        "success": true,
        "mode": "read",
        "session_id": session,
        "session_meta": shown::meta(&meta),
        "message_count": count,
        "truncated": !whole,
        "messages": shown::messages(&said),
    });
    if !whole {
        read["message"] = json!(format!(
            "the first {FIRST} and the last {LAST} messages; see what stands between with `around_message_id`"
        ));
    }
    Ok(Some(read))
}
