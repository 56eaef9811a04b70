//! Long calls are judged once before the transaction that judges them, on a
//! thread that may take its time: what is read then is kept, and found there.
//! Nothing is decided here, so whatever is missing is only slower.

use std::path::PathBuf;

use serde_json::Value;

use super::engine::Engine;
use super::step::{Hooked, NestedIn};
use super::world::standing;
use crate::model::approval::ApprovalStatus;
use crate::model::id::{ApprovalId, SessionId, TenantId, TurnId};
use crate::model::record::SessionRecord;
use crate::provider::Answer;
use crate::store::{Scope, StoreError};
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
    /// Reads the long calls of an answer, as hooks left them.
    pub(super) async fn read_ahead(&self, answer: &Answer, hooked: &[Option<Hooked>], session: &SessionRecord) {
        if answer.calls.is_empty() {
            self.read_above(session).await;
        }
        let replaced = |place: usize| hooked.get(place)?.as_ref()?.before.arguments.clone();
        for (place, call) in answer.calls.iter().enumerate() {
            let arguments = match replaced(place) {
                Some(arguments) => arguments,
                None if call.arguments.len() <= LONG => continue,
                None => match arguments::parse(&call.arguments) {
                    Ok(arguments) => arguments,
                    Err(_) => continue,
                },
            };
            self.read_if_long(&call.name, &Value::Object(arguments), session).await;
        }
    }

    /// Reads what stands open in the turn that waits for this child: the child's end
    /// lets it go on.
    async fn read_above(&self, session: &SessionRecord) {
        let Some(parent) = session.lineage.as_ref().and_then(|lineage| lineage.parent()) else {
            return;
        };
        let scope = self.store().scope(session.tenant_id);
        if let Err(error) = self.read_open(&scope, parent.session_id, parent.turn_id).await {
            tracing::warn!(session = %parent.session_id, %error, "what a child's end sets going could not be read ahead");
        }
    }

    /// Reads what is open in the turn that a session is in.
    pub(super) async fn read_active(&self, scope: &Scope, session: SessionId) -> Result<(), StoreError> {
        let read = scope.read(move |mut rows| Box::pin(async move { rows.session_record_even_deleted(session).await }));
        match read.await?.and_then(|session| session.active_turn_id) {
            Some(turn) => self.read_open(scope, session, turn).await,
            None => Ok(()),
        }
    }

    /// Reads what a turn has open that is long: it was proposed before this
    /// process began, or by another.
    pub(super) async fn read_open(&self, scope: &Scope, session: SessionId, turn: TurnId) -> Result<(), StoreError> {
        let read = scope.read(move |mut rows| {
            Box::pin(async move {
                let session = rows.session_record_even_deleted(session).await?;
                let (calls, _) = rows.open_work(turn).await?;
                Ok(session.map(|session| (session, calls)))
            })
        });
        if let Some((session, calls)) = read.await? {
            for call in calls.iter().filter(|call| !call.status.is_settled()) {
                self.read_if_long(&call.name, call.effective_arguments(), &session)
                    .await;
            }
        }
        Ok(())
    }

    /// Reads what stands beside an approval, unless that happened here.
    pub(super) async fn read_asked(&self, scope: &Scope, id: ApprovalId) -> Result<(), StoreError> {
        if self.host().readings().were_read(id) {
            return Ok(());
        }
        let found = scope.read(move |mut rows| Box::pin(async move { rows.approval(id).await }));
        if let Some(approval) = found.await?.filter(|found| found.status == ApprovalStatus::Pending) {
            let asker = approval.asker();
            self.read_open(scope, asker.session_id, asker.turn_id).await?;
            self.host().readings().have_read([id]);
        }
        Ok(())
    }

    /// Reads a call that a program wants.
    pub(super) async fn read_nested(&self, call: &NestedIn, session: &SessionRecord) {
        let arguments = Value::Object(call.arguments.clone());
        self.read_if_long(&call.name, &arguments, session).await;
    }

    async fn read_if_long(&self, tool: &str, arguments: &Value, session: &SessionRecord) {
        let is_long = |value: &Value| value.as_str().is_some_and(|text| LONG < text.len());
        if arguments.as_object().is_some_and(|fields| fields.values().any(is_long)) {
            self.read_call(tool, arguments.clone(), Where::of(session)).await;
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
