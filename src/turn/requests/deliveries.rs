//! Answers of jobs' runs, told to the sessions that the jobs are for: each once,
//! in the transaction that says so, as a message of the session's past. A busy
//! session is told later.

use super::append::{OutsideMessage, append};
use super::{EngineError, Verdict};
use crate::model::id::{JobRunId, SessionId, TenantId, TurnId};
use crate::model::job_task::{Delivery, is_silent};
use crate::model::message::{Part, Role, text_of};
use crate::model::turn::TurnStatus;
use crate::store::claims_across_tenants::WaitingAnswer;
use crate::store::{Rows, StoreError};
use crate::turn::engine::Engine;

/// Answers that are delivered in one go, and that are looked at for it.
const BATCH: usize = 100;
const LOOKED_AT: u32 = 1_000;

impl Engine {
    /// Delivers some of what can be delivered now; whether to look again at once.
    pub async fn deliver_runs(&self) -> Verdict<bool> {
        let found = self.store().undelivered_across_tenants(LOOKED_AT).await?;
        let busy = found.iter().filter_map(|answer| answer.waits_for).collect();
        let is_new = self.nudges().wait_for_idle(busy);
        let ready: Vec<WaitingAnswer> = found.into_iter().filter(|answer| answer.waits_for.is_none()).collect();
        let mut settled = 0;
        for answer in ready.iter().take(BATCH) {
            if self.is_draining() {
                return Ok(false);
            }
            settled += u32::from(self.deliver_run(answer.tenant_id, answer.run_id).await?);
        }
        // Without progress there is nothing to hurry for.
        Ok(is_new || (BATCH < ready.len() && 0 < settled))
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
