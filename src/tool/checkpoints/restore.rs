//! Putting a checkpoint back: only where nobody works in the workspace, and only
//! where it can be undone.

use std::io;
use std::sync::Arc;

use super::{RestoreError, blank, blocking, locked, take};
use crate::base::Clock;
use crate::environment::snapshot::PutBack;
use crate::model::checkpoint::{Checkpoint, CheckpointState, NotRestored, Restored};
use crate::model::id::{CheckpointId, SessionId, TenantId};
use crate::tool::Host;

/// Names that the answer tells of.
const MOST_TOLD: usize = 100;

/// Makes the workspace what it was. What is there now is kept before, so that
/// this can be undone, and what cannot be kept is left as it is.
pub async fn restore(
    host: &Arc<Host>,
    clock: &Clock,
    (tenant, home): (TenantId, SessionId),
    id: CheckpointId,
) -> Result<Restored, RestoreError> {
    let checkpoints = host.checkpoints();
    let shelf = checkpoints.shelf(tenant, home);
    let there = shelf.clone();
    let heads = blocking(move || there.heads()).await?;
    let wanted = heads.into_iter().find(|head| head.id == id);
    let wanted = wanted.ok_or(RestoreError::NotFound)?;
    if wanted.state == CheckpointState::Skipped {
        let reason = wanted.reason.unwrap_or_default();
        return Err(RestoreError::Nothing { reason });
    }
    let there = shelf.clone();
    let still = blocking(move || there.hold_alone()).await?.ok_or(RestoreError::Busy)?;
    let alone = locked(&shelf).await?;
    let there = shelf.clone();
    // Before another is made it cannot be the one that goes for it.
    let then = blocking(move || there.tree(id)).await.map_err(absent)?;
    let undo = Checkpoint {
        restores: Some(id),
        ..blank(clock, home)
    };
    let (undo, now) = take(host, (tenant, home), undo).await?;
    if undo.state == CheckpointState::Skipped {
        let reason = undo.reason.unwrap_or_default();
        return Err(RestoreError::NoWayBack { reason });
    }
    let workspace = host.workspace(tenant, home).await?;
    let done = workspace.put_back(shelf.vault_to_read(), now, then).await?;
    let most = checkpoints.settings.max_snapshots;
    blocking(move || shelf.prune(most)).await?;
    drop((alone, still));
    Ok(told(id, undo.id, &done))
}

/// It may have gone since it was listed.
fn absent(error: io::Error) -> RestoreError {
    match error.kind() {
        io::ErrorKind::NotFound => RestoreError::NotFound,
        _ => error.into(),
    }
}

fn told(id: CheckpointId, undo: CheckpointId, done: &PutBack) -> Restored {
    let not_restored = done.left.iter().take(MOST_TOLD).map(|(path, reason)| NotRestored {
        path: path.to_string_lossy().replace('\0', "\u{FFFD}"),
        reason: reason.clone(),
    });
    Restored {
        checkpoint_id: id,
        undo_checkpoint_id: undo,
        written: done.written,
        removed: done.removed,
        not_restored: not_restored.collect(),
        not_restored_count: done.left.len() as u64,
    }
}
