//! Changes that wait for a person: let in, or not. A change of the memory is made
//! in the transaction that lets it in. One of a skill is planned before, kept with
//! its plan by that transaction, and carried out after it, while nobody else
//! changes the skills; what a crash leaves in between is finished by the next
//! start.

use super::{EngineError, Verdict, earlier};
use crate::model::audit::{AuditAction, Audited};
use crate::model::id::{PendingWriteId, TenantId};
use crate::model::pending::{PendingKind, PendingWrite, WrittenPending};
use crate::model::problem::{Problem, ProblemCode};
use crate::store::claims_across_tenants::ApprovedWrite;
use crate::store::{Rows, Scope, StoreError};
use crate::tool::memory_entries::{self, Change};
use crate::tool::skill::change::{Alone, AskedChange, Consent, Refusal};
use crate::tool::skill::plan::{Finished, Plan};
use crate::turn::engine::Engine;

const OTHER_VERSION: &str = "it was written by another version of the server";

impl Engine {
    /// Carries a change out that waited.
    pub async fn approve_write(&self, scope: &Scope, id: PendingWriteId) -> Verdict<WrittenPending> {
        let found = scope.read(move |mut rows| Box::pin(async move { rows.pending_write(id).await }));
        let planned = match found.await? {
            Some(pending) if pending.kind == PendingKind::Skill => Some(self.planned(scope.tenant(), pending).await),
            _ => None,
        };
        let (alone, plan) = match planned {
            Some(Ok((alone, plan))) => (Some(alone), Some(Ok(plan))),
            Some(Err(why)) => (None, Some(Err(why))),
            None => (None, None),
        };
        let (engine, decided) = (self.clone(), plan.clone());
        let approved = scope.write_anew("approve_write", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                let Some(pending) = rows.lock_pending_write(id).await? else {
                    return Ok(Err(EngineError::NotFound("pending write")));
                };
                let message = match (pending.kind, decided) {
                    (PendingKind::Memory, _) => match remembered(&mut rows, &engine, &pending).await? {
                        Ok(message) => {
                            rows.remove_pending_write(id).await?;
                            message
                        }
                        Err(why) => return Ok(Err(refused(why))),
                    },
                    (PendingKind::Skill, Some(Ok(plan))) => {
                        rows.approve_pending_write(id, &plan).await?;
                        format!("the skill `{}` was {}", plan.path, plan.done)
                    }
                    (PendingKind::Skill, Some(Err(why))) => return Ok(Err(refused(why))),
                    (PendingKind::Skill, None) => return Ok(Err(EngineError::NotFound("pending write"))),
                };
                let now = engine.clock().now();
                let told = audited(&pending, AuditAction::PendingWriteApproved, "approve");
                rows.audit(&[told], now).await?;
                let written = WrittenPending {
                    id,
                    kind: pending.kind,
                    message,
                };
                rows.remember(&written).await?;
                Ok(Ok(written))
            })
        });
        let approved = approved.await?;
        if let (Ok(_), Some(alone), Some(Ok(plan))) = (&approved, alone, plan) {
            self.put_down(scope.tenant(), id, alone, plan).await;
        }
        approved
    }

    /// Takes a change away that nobody wants.
    pub async fn reject_write(&self, scope: &Scope, id: PendingWriteId) -> Verdict<()> {
        let now = self.clock().now();
        let rejected = scope.write_anew("reject_write", move |mut rows| {
            Box::pin(async move {
                let Some(pending) = rows.lock_pending_write(id).await? else {
                    return Ok(Err(EngineError::NotFound("pending write")));
                };
                rows.remove_pending_write(id).await?;
                let told = audited(&pending, AuditAction::PendingWriteRejected, "deny");
                rows.audit(&[told], now).await?;
                Ok(Ok(()))
            })
        });
        rejected.await?
    }

    /// Finishes what was let in before a server ended; whether nothing is left.
    pub async fn finish_approved_writes(&self) -> Result<bool, StoreError> {
        let mut all = true;
        for ApprovedWrite { tenant_id, id, plan } in self.store().approved_writes_across_tenants().await? {
            let library = self.host().skills(tenant_id);
            let alone = tokio::task::spawn_blocking(move || Alone::with(&library)).await;
            let (Ok(Ok(alone)), Ok(plan)) = (alone, serde_json::from_value(plan)) else {
                tracing::warn!(pending = %id, "a change of a skill that was let in cannot be made");
                all = false;
                continue;
            };
            all &= self.put_down(tenant_id, id, alone, plan).await;
        }
        Ok(all)
    }

    /// The tenant's skills, locked, and what a change of them comes to.
    async fn planned(&self, tenant: TenantId, pending: PendingWrite) -> Result<(Alone, Plan), String> {
        let asked: AskedChange = serde_json::from_value(pending.change).map_err(|_| OTHER_VERSION.to_owned())?;
        let library = self.host().skills(tenant);
        let planned = tokio::task::spawn_blocking(move || -> Result<(Alone, Plan), Refusal> {
            let alone = Alone::with(&library)?;
            // Whoever lets it in was shown all of it.
            let plan = alone.plan(&asked.name, &asked.change, Consent::ToTheChange)?;
            Ok((alone, plan))
        });
        match planned.await {
            Ok(Ok(planned)) => Ok(planned),
            Ok(Err(Refusal::Disk(error))) => {
                tracing::warn!(%error, "a skill cannot be written");
                Err("the skills cannot be written now; the server's log says why".to_owned())
            }
            Ok(Err(refusal)) => Err(refusal.to_string()),
            Err(_) => Err("the change broke off".to_owned()),
        }
    }

    /// Puts a change on the disk and lets go of its row; whether that was done. If
    /// it was not, the row stays, and it is tried again.
    async fn put_down(&self, tenant: TenantId, id: PendingWriteId, alone: Alone, plan: Plan) -> bool {
        let finished = tokio::task::spawn_blocking(move || alone.finish(&plan)).await;
        self.host().skills_changed(tenant);
        match finished {
            Ok(Ok(Finished::Overtaken)) => {
                tracing::warn!(pending = %id, "a skill was changed after its change was let in; the newer stays");
            }
            Ok(Ok(Finished::Before | Finished::Now)) => {}
            failed => {
                tracing::warn!(pending = %id, ?failed, "a change of a skill that was let in is not made yet");
                self.nudges().approved.notify_one();
                return false;
            }
        }
        let scope = self.store().scope(tenant);
        let gone = scope.write("approved_write", move |mut rows| {
            Box::pin(async move { rows.remove_pending_write(id).await })
        });
        match gone.await {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(pending = %id, %error, "a change that was made is not taken off the list yet");
                self.nudges().approved.notify_one();
                false
            }
        }
    }
}

fn audited(pending: &PendingWrite, action: AuditAction, decision: &str) -> Audited {
    Audited {
        session_id: Some(pending.session_id),
        turn_id: Some(pending.turn_id),
        tool_call_id: Some(pending.tool_call_id),
        decision: Some(decision.to_owned()),
        fields: vec![pending.kind.name().to_owned()],
        ..Audited::new(action, pending.user_id.clone())
    }
}

/// What was done, or why it could not be: the world moved since it was asked.
async fn remembered(
    rows: &mut Rows<'_>,
    engine: &Engine,
    pending: &PendingWrite,
) -> Result<Result<String, String>, StoreError> {
    let Ok(change) = serde_json::from_value::<Change>(pending.change.clone()) else {
        return Ok(Err(OTHER_VERSION.to_owned()));
    };
    let now = engine.clock().now();
    let (user, target) = (&pending.user_id, change.target);
    let before = rows.lock_memories(user, now).await?;
    let limit = engine.settings().memory.of(target);
    match memory_entries::after(before.of(target), &change.operations, limit) {
        Ok(after) => {
            rows.write_memory(user, target, &after, now).await?;
            Ok(Ok(memory_entries::usage(&after, limit)))
        }
        Err(refusal) => Ok(Err(refusal.to_string())),
    }
}

fn refused(why: String) -> EngineError {
    EngineError::Refused(Problem::new(ProblemCode::InvalidRequest, why))
}
