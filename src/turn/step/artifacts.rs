//! What calls made that is kept whole beside their results.

use serde_json::json;

use super::Step;
use crate::model::artifact::{Artifact, Kept, NewArtifact};
use crate::model::event::EventType;
use crate::model::id::CallId;

impl Step<'_> {
    pub(super) fn keep_artifact(&mut self, id: CallId, kept: Kept) {
        let Some(call) = self.state.call(id) else { return };
        let artifact = Artifact {
            id: self.world.id(),
            session_id: self.state.session.session_id,
            turn_id: call.turn_id,
            tool_call_id: id,
            tool: call.name.clone(),
            name: kept.name.clone(),
            media_type: kept.media_type.clone(),
            size: i64::try_from(kept.content.len()).unwrap_or(i64::MAX),
            sha256: kept.sha256(),
            created_at: self.world.now,
        };
        let event = self.event(EventType::ArtifactCreated, json!({"artifact": artifact}));
        self.writes.events.push(event);
        self.writes.artifacts.push(NewArtifact {
            artifact,
            content: kept.content,
        });
    }
}
