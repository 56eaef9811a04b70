//! Long calls are judged once before the transaction that judges them, on a
//! thread that may take its time: what is read then is kept, and found there.
//! Nothing is decided here, so whatever is missing is only slower.

use std::path::PathBuf;

use serde_json::Value;

use super::engine::Engine;
use super::world::standing;
use crate::model::id::{SessionId, TenantId};
use crate::model::record::SessionRecord;
use crate::provider::Answer;
use crate::tool::readings::LONG;
use crate::tool::{Place, arguments};

/// Where a call would be judged.
pub(super) struct Where {
    pub tenant: TenantId,
    /// The session that holds the files.
    pub home: SessionId,
    pub cwd: Option<String>,
    pub backend: String,
}

impl Where {
    pub(super) fn of(session: &SessionRecord) -> Self {
        Self {
            tenant: session.tenant_id,
            home: session.home(),
            cwd: session.cwd.clone(),
            backend: session.environment.backend.clone(),
        }
    }
}

impl Engine {
    /// Reads the long calls of an answer.
    pub(super) async fn read_ahead(&self, answer: &Answer, session: &SessionRecord) {
        for call in answer.calls.iter().filter(|call| LONG < call.arguments.len()) {
            if let Ok(arguments) = arguments::parse(&call.arguments) {
                self.read_call(&call.name, Value::Object(arguments), Where::of(session))
                    .await;
            }
        }
    }

    pub(super) async fn read_call(&self, tool: &str, arguments: Value, place: Where) {
        let (registry, host, tool) = (self.registry(place.tenant), self.host().clone(), tool.to_owned());
        let workspace: PathBuf = self.workspace_path(place.tenant, place.home);
        let read = tokio::task::spawn_blocking(move || {
            let tool = registry.get(&tool)?;
            let at = Place {
                workspace: &workspace,
                cwd: standing(&workspace, place.cwd.as_deref()),
                backend: &place.backend,
                // They are read with the transaction, and cost little.
                policies: &[],
            };
            Some(tool.judge(&arguments, &at, &host))
        });
        if let Err(error) = read.await {
            tracing::warn!(%error, "a call could not be read ahead");
        }
    }
}
