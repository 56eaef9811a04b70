//! Changes that wait for a person: let in, or not. One that is let in is carried
//! out in the transaction that takes it away; a crash in between leaves it
//! waiting, and what it did to a skill is done.

use super::{EngineError, Verdict, earlier};
use crate::model::id::{PendingWriteId, TenantId};
use crate::model::pending::{PendingKind, PendingWrite, WrittenPending};
use crate::model::problem::{Problem, ProblemCode};
use crate::store::{Rows, Scope, StoreError};
use crate::tool::memory_entries::{self, Change};
use crate::tool::skill::change::{Alone, AskedChange, Consent, Made, Refusal};
use crate::turn::engine::Engine;

impl Engine {
    /// Carries a change out that waited.
    pub async fn approve_write(&self, scope: &Scope, id: PendingWriteId) -> Verdict<WrittenPending> {
        let engine = self.clone();
        let approved = scope.write_anew("approve_write", move |mut rows| {
            Box::pin(async move {
                if let Some(earlier) = earlier(&mut rows).await? {
                    return Ok(Err(earlier));
                }
                let Some(pending) = rows.lock_pending_write(id).await? else {
                    return Ok(Err(EngineError::NotFound("pending write")));
                };
                let message = match carried_out(&mut rows, &engine, &pending).await? {
                    Ok(message) => message,
                    Err(why) => return Ok(Err(refused(why))),
                };
                rows.remove_pending_write(id).await?;
                let written = WrittenPending {
                    id,
                    kind: pending.kind,
                    message,
                };
                rows.remember(&written).await?;
                Ok(Ok(written))
            })
        });
        let approved = approved.await;
        self.host().skills_changed(scope.tenant());
        approved?
    }

    /// Takes a change away that nobody wants.
    pub async fn reject_write(&self, scope: &Scope, id: PendingWriteId) -> Verdict<()> {
        let rejected = scope.write_anew("reject_write", move |mut rows| {
            Box::pin(async move {
                Ok(match rows.remove_pending_write(id).await? {
                    true => Ok(()),
                    false => Err(EngineError::NotFound("pending write")),
                })
            })
        });
        rejected.await?
    }
}

/// What was done, or why it could not be: the world moved since it was asked.
async fn carried_out(
    rows: &mut Rows<'_>,
    engine: &Engine,
    pending: &PendingWrite,
) -> Result<Result<String, String>, StoreError> {
    match pending.kind {
        PendingKind::Memory => remembered(rows, engine, pending).await,
        PendingKind::Skill => Ok(skill(rows.tenant(), engine, pending).await),
    }
}

async fn remembered(
    rows: &mut Rows<'_>,
    engine: &Engine,
    pending: &PendingWrite,
) -> Result<Result<String, String>, StoreError> {
    let Ok(change) = serde_json::from_value::<Change>(pending.change.clone()) else {
        return Ok(Err("it was written by another version of the server".to_owned()));
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

async fn skill(tenant: TenantId, engine: &Engine, pending: &PendingWrite) -> Result<String, String> {
    let asked: AskedChange = serde_json::from_value(pending.change.clone())
        .map_err(|_| "it was written by another version of the server".to_owned())?;
    let library = engine.host().skills(tenant);
    let made = tokio::task::spawn_blocking(move || -> Result<Made, Refusal> {
        // Whoever lets it in was shown all of it.
        Alone::with(&library)?.make(&asked.name, &asked.change, Consent::ToTheChange)
    });
    match made.await {
        Ok(Ok(made)) => Ok(format!("the skill `{}` was {}", made.path, made.done)),
        Ok(Err(Refusal::Disk(error))) => {
            tracing::warn!(%error, "a skill cannot be written");
            Err("the skills cannot be written now; the server's log says why".to_owned())
        }
        Ok(Err(refusal)) => Err(refusal.to_string()),
        Err(_) => Err("the change broke off".to_owned()),
    }
}

fn refused(why: String) -> EngineError {
    EngineError::Refused(Problem::new(ProblemCode::InvalidRequest, why))
}
