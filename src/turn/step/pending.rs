//! Changes that a person lets in: written down with the result of the call that
//! wants them, and carried out when somebody says so.

use serde_json::json;

use super::Step;
use crate::model::id::CallId;
use crate::model::pending::{MAX_PENDING, PendingWrite, Staged};

impl Step<'_> {
    /// Lets a change wait; what the model is told, and whether that is a failure.
    pub(super) fn stage(&mut self, call: CallId, staged: Staged) -> (String, bool) {
        if MAX_PENDING <= self.state.waiting_writes {
            let error = format!("{MAX_PENDING} changes wait for a person already; nothing more is taken");
            return (json!({"success": false, "error": error}).to_string(), true);
        }
        let pending = PendingWrite {
            id: self.world.id(),
            user_id: self.state.session.user_id.clone(),
            session_id: self.state.session.session_id,
            turn_id: self.state.turn.turn_id,
            tool_call_id: call,
            kind: staged.kind,
            subject: staged.subject,
            change: staged.change,
            created_at: self.world.now,
        };
        self.state.waiting_writes += 1;
        let told = json!({
            "success": true,
            "staged": true,
            "pending_id": pending.id,
            "message": "The change waits until a person lets it in; go on without it.",
        });
        self.writes.pending.push(pending);
        (told.to_string(), false)
    }
}
