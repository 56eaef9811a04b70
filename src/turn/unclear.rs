//! After a request whose COMMIT nobody confirmed: find out whether it happened,
//! and make sure that a turn it may have claimed for this process is run.

use std::time::Duration;

use super::engine::Engine;
use super::requests::{AnswerRequest, CreatedTurn, EngineError};
use super::state::State;
use crate::model::approval::{Approval, Decision};
use crate::model::call::Execution;
use crate::model::id::{ApprovalId, CallId, SessionId, TurnId};
use crate::model::turn::TurnStatus;
use crate::store::{Scope, StoreError};

/// Pause between two looks while the store is away.
const PAUSE: Duration = Duration::from_millis(200);

impl Engine {
    pub(super) async fn after_unclear_create(
        &self,
        scope: &Scope,
        session: SessionId,
        id: TurnId,
        error: StoreError,
    ) -> Result<CreatedTurn, EngineError> {
        self.adopt(scope, session).await;
        let read = scope.read(move |mut rows| {
            Box::pin(async move {
                if let Some((seq, active)) = rows.steered(session, id).await? {
                    return Ok(rows.turn(session, active).await?.map(|turn| (seq, turn, true)));
                }
                let turn = rows.turn(session, id).await?;
                Ok(turn.map(|turn| (turn.first_seq, turn, false)))
            })
        });
        match read.await? {
            Some((first_seq, turn, steered)) => Ok(CreatedTurn {
                first_seq,
                turn: turn.view(),
                steered,
            }),
            None => Err(EngineError::Store(error)),
        }
    }

    pub(super) async fn after_unclear_decision(
        &self,
        scope: &Scope,
        id: ApprovalId,
        given: &AnswerRequest,
        error: StoreError,
    ) -> Result<Approval, EngineError> {
        let found = self
            .look(scope, move |mut rows| Box::pin(async move { rows.approval(id).await }))
            .await?;
        let Some(approval) = found else {
            return Err(EngineError::NotFound("approval"));
        };
        self.adopt(scope, approval.asker().session_id).await;
        let decided = approval.decision.as_ref();
        let ours = |decision: &&Decision| {
            decision.choice == given.choice && decision.by == given.by && decision.edited == given.arguments.is_some()
        };
        match decided.filter(ours).is_some() {
            true => Ok(approval),
            false => Err(EngineError::Store(error)),
        }
    }

    /// Takes over the session's active turn if it is in this process's name and
    /// no task here runs it. What that turn was about to start is not started
    /// again: nobody can tell whether the claim was acted on.
    pub(super) async fn adopt(&self, scope: &Scope, session: SessionId) {
        self.nudges().due.notify_one();
        let tenant = self.store().scope(scope.tenant());
        let found = self.look(&tenant, move |mut rows| {
            Box::pin(async move {
                let Some(record) = rows.session_record_even_deleted(session).await? else {
                    return Ok(None);
                };
                match record.active_turn_id {
                    Some(active) => rows.turn(session, active).await,
                    None => Ok(None),
                }
            })
        });
        let Ok(Some(turn)) = found.await else { return };
        let ours = turn.status == TurnStatus::Running && turn.owner == Some(self.process());
        if ours
            && !self.runs(turn.turn_id, turn.epoch)
            && let Err(error) = self.take_over(scope.tenant(), session, turn.turn_id, turn.epoch).await
        {
            tracing::warn!(turn = %turn.turn_id, %error, "a turn of an unclear commit is left to the next look");
        }
    }

    /// As [`Engine::adopt`], for the sessions above and below one.
    pub(super) async fn adopt_kin(&self, scope: &Scope, state: &State) {
        let mut kin: Vec<SessionId> = Vec::new();
        let parent = state.session.lineage.as_ref().and_then(|lineage| lineage.parent());
        kin.extend(parent.map(|parent| parent.session_id));
        let out = state.calls.iter().filter(|call| call.execution == Execution::Children);
        let out: Vec<CallId> = out.map(|call| call.call_id).collect();
        if !out.is_empty() {
            let children = self.look(scope, move |mut rows| {
                let out = out.clone();
                Box::pin(async move {
                    let mut found = Vec::new();
                    for call in out {
                        found.extend(rows.children_of(call).await?);
                    }
                    Ok(found)
                })
            });
            kin.extend(children.await.into_iter().flatten().map(|child| child.session_id));
        }
        for session in kin {
            // A future within itself would have no end.
            Box::pin(self.adopt(scope, session)).await;
        }
    }

    /// Reads, again and again for as long as commits are retried.
    async fn look<T, F>(&self, scope: &Scope, work: F) -> Result<T, StoreError>
    where
        F: for<'c> FnOnce(crate::store::Rows<'c>) -> futures::future::BoxFuture<'c, Result<T, StoreError>>
            + Clone
            + Send
            + 'static,
        T: Send + 'static,
    {
        let began = tokio::time::Instant::now();
        let stopping = self.stopping();
        loop {
            match scope.read(work.clone()).await {
                Err(error @ StoreError::Unavailable(_)) if began.elapsed() < self.settings().store_retry => {
                    tokio::select! {
                        () = tokio::time::sleep(PAUSE) => {}
                        () = stopping.cancelled() => return Err(error),
                    }
                }
                done => return done,
            }
        }
    }
}
