//! Putting sessions away and taking them back. It only changes what lists show.

use serde_json::json;

use super::conditions::forbid_session;
use super::sessions::{merged, told, visible_state};
use super::{EngineError, Verdict, earlier};
use crate::model::event::EventType;
use crate::model::id::SessionId;
use crate::model::session::Session;
use crate::model::version::Part;
use crate::store::Scope;
use crate::turn::engine::Engine;

impl Engine {
    /// Archives a session or takes it back; one that is so already stays as it is.
    pub async fn archive_session(&self, scope: &Scope, id: SessionId, archived: bool) -> Verdict<Session> {
        let now = self.clock().now();
        let kept = scope.write("archive_session", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                let Some(mut record) = rows.lock_session(id).await? else {
                    return Ok(Err(EngineError::NotFound("session")));
                };
                let Some(seen) = rows.session(id).await? else {
                    return Ok(Err(EngineError::NotFound("session")));
                };
                if let Some(refused) = forbid_session(&mut rows, id, Part::Settings).await? {
                    return Ok(Err(refused));
                }
                if seen.archived_at.is_some() != archived {
                    let at = archived.then_some(now);
                    rows.archive_session(id, at).await?;
                    let state = merged(visible_state(&seen, now), json!({"archived_at": at}));
                    let kind = match archived {
                        true => EventType::SessionArchived,
                        false => EventType::SessionUpdated,
                    };
                    rows.apply(&mut record, &told(kind, &state), now).await?;
                }
                let Some(session) = rows.session(id).await? else {
                    return Ok(Err(EngineError::NotFound("session")));
                };
                rows.remember(&session).await?;
                Ok(Ok(session))
            })
        });
        kept.await?
    }
}
