//! What stands around a message.

use serde_json::{Value, json};

use super::shown;
use crate::model::id::{MessageId, SessionId};
use crate::store::recall::Span;
use crate::store::{Rows, StoreError};

/// Why there is nothing to show.
pub(super) enum Nothing {
    NoSession,
    NoMessage,
    /// The model has the session before it already.
    OwnLine,
}

pub(super) async fn scroll(
    rows: &mut Rows<'_>,
    here: SessionId,
    (session, message): (SessionId, MessageId),
    window: u32,
) -> Result<Result<Value, Nothing>, StoreError> {
    let line = rows.first_of_line(session).await?;
    if line == rows.first_of_line(here).await? {
        return Ok(Err(Nothing::OwnLine));
    }
    if rows.session(session).await?.is_none() {
        return Ok(Err(Nothing::NoSession));
    }
    let Some((home, place)) = rows.place_of(message).await? else {
        return Ok(Err(Nothing::NoMessage));
    };
    // A fork's messages are its own; the id of one still finds its place.
    if home != session && rows.first_of_line(home).await? != line {
        return Ok(Err(Nothing::NoMessage));
    }
    let Some(meta) = rows.session(home).await? else {
        return Ok(Err(Nothing::NoSession));
    };
    let mut said = rows.said(home, Span::Before(place), window).await?;
    let first = said.first().map_or(place, |said| said.position);
    said.extend(rows.said(home, Span::From(place), window + 1).await?);
    let last = said.last().map_or(place, |said| said.position);
    let (before, _) = rows.said_around(home, first).await?;
    let (_, after) = rows.said_around(home, last + 1).await?;
    let mut scrolled = json!({
        "success": true,
        "mode": "scroll",
        "session_id": home,
        "around_message_id": message,
        "session_meta": shown::meta(&meta),
        "window": window,
        "messages": shown::messages(&said),
        "messages_before": before,
        "messages_after": after,
    });
    if home != session {
        scrolled["warning"] = json!(format!(
            "the message is in `{home}`, which goes back to the same session"
        ));
    }
    Ok(Ok(scrolled))
}
