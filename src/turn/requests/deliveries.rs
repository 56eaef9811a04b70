//! Answers of jobs' runs, told to the sessions that the jobs are for: each once,
//! in the transaction that says so, as a message of the session's past. A busy
//! session is told later.

use std::sync::atomic::Ordering;

use super::append::{OutsideMessage, append};
use super::{EngineError, Verdict};
use crate::model::id::{JobRunId, SessionId, TenantId, TurnId};
use crate::model::job_task::{Delivery, is_silent};
use crate::model::message::{Part, Role, text_of};
use crate::model::turn::TurnStatus;
use crate::store::{Rows, StoreError};
use crate::turn::engine::Engine;

/// Runs looked at in one go.
const BATCH: u32 = 100;

impl Engine {
    /// Delivers some of what can be delivered now; whether there is more.
    pub async fn deliver_runs(&self) -> Verdict<bool> {
        let batch = self.store().undelivered_across_tenants(BATCH).await?;
        let is_full = u32::try_from(batch.len()).is_ok_and(|some| BATCH <= some);
        let mut settled = 0;
        for (tenant, run) in batch {
            if self.is_draining() {
                return Ok(false);
            }
            settled += u32::from(self.deliver_run(tenant, run).await?);
        }
        let waits = self.store().has_undelivered_across_tenants().await?;
        self.nudges().answers_wait.store(waits, Ordering::Relaxed);
        // Without progress there is nothing to hurry for.
        Ok(is_full && 0 < settled)
    }

    /// Whether it is settled now.
    async fn deliver_run(&self, tenant: TenantId, run: JobRunId) -> Result<bool, EngineError> {
        let (engine, scope) = (self.clone(), self.store().scope(tenant));
        let told = scope.write_anew("deliver_run", move |mut rows| {
            Box::pin(async move {
                let Some(delivery) = deliver(&mut rows, &engine, run).await? else {
                    return Ok(false);
                };
                rows.settle_delivery(run, delivery).await?;
                Ok(true)
            })
        });
        Ok(told.await?)
    }
}

/// What becomes of it; nothing where it has to wait.
async fn deliver(rows: &mut Rows<'_>, engine: &Engine, run: JobRunId) -> Result<Option<Delivery>, StoreError> {
    let Some(waiting) = rows.lock_undelivered(run).await? else {
        return Ok(None);
    };
    if waiting.status.is_some_and(|status| !status.is_terminal()) {
        return Ok(None);
    }
    let (Some(origin), Some(session), Some(turn)) =
        (waiting.job.origin_session_id, waiting.session_id, waiting.turn_id)
    else {
        return Ok(Some(Delivery::Failed));
    };
    if waiting.status != Some(TurnStatus::Completed) {
        return Ok(Some(Delivery::Failed));
    }
    let answer = match answer(rows, session, turn).await? {
        Some(answer) if is_silent(&answer) => return Ok(Some(Delivery::Silent)),
        Some(answer) => answer,
        None => return Ok(Some(Delivery::Failed)),
    };
    let Some(origin) = rows.lock_session(origin).await? else {
        return Ok(Some(Delivery::Failed));
    };
    let is_of_another = origin.user_id != waiting.job.user_id || origin.lineage.is_some();
    if is_of_another {
        return Ok(Some(Delivery::Failed));
    }
    if origin.active_turn_id.is_some() {
        return Ok(None);
    }
    let said = OutsideMessage {
        role: Role::Assistant,
        content: vec![Part::text(format!("[Job {:?}]\n\n{answer}", waiting.job.name))],
        external_id: Some(run.to_string()),
        created_at: None,
    };
    append(rows, engine, origin, &waiting.job.user_id, vec![said]).await?;
    Ok(Some(Delivery::Delivered))
}

async fn answer(rows: &mut Rows<'_>, session: SessionId, turn: TurnId) -> Result<Option<String>, StoreError> {
    let said = rows.last_answer(session, turn).await?;
    let text = said.map(|message| text_of(&message.content));
    Ok(text.filter(|text| !text.trim().is_empty()))
}
