//! What calls made that is kept whole beside their results.

use serde_json::json;

use super::Step;
use crate::model::artifact::{Artifact, ArtifactKind, Held, Kept, NewArtifact};
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
            kind: match &kept.held {
                Held::Text(_) => ArtifactKind::Result,
                Held::File { .. } => ArtifactKind::File,
            },
            name: kept.name,
            path: kept.held.path().map(str::to_owned),
            media_type: kept.media_type,
            size: kept.held.size(),
            sha256: kept.held.sha256(),
            created_at: self.world.now,
        };
        let event = self.event(EventType::ArtifactCreated, json!({"artifact": artifact}));
        self.writes.events.push(event);
        self.writes.artifacts.push(NewArtifact {
            artifact,
            content: match kept.held {
                Held::Text(content) => Some(content),
                Held::File { .. } => None,
            },
        });
    }
}
