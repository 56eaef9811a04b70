//! Turns whose owner is gone: found without locks, taken over one by one, each
//! under its session's lock and only if it is still as it was seen.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::model::id::{NodeId, ProcessId, TurnId};
use crate::store::claims_across_tenants::Claimed;
use crate::store::{StoreError, process};
use crate::turn::engine::Engine;

/// Turns in this process's own name that no task here ran at the last look.
/// Two looks in a row, because a turn that was claimed just now has its task a
/// moment later.
type Idle = HashMap<TurnId, i64>;

/// Turns without an owner whose data directory is not here, since when.
struct Lost {
    since: HashMap<(TurnId, i64), Instant>,
    patience: Duration,
}

pub(super) async fn sweep(engine: Engine, node: NodeId, lease: Duration, stop: CancellationToken) {
    let mut idle = Idle::new();
    let mut lost = Lost {
        since: HashMap::new(),
        patience: lease * 5,
    };
    loop {
        if let Err(error) = once(&engine, node, &mut idle, &mut lost).await {
            tracing::warn!(%error, "looking for turns without an owner failed");
        }
        // The death of another process makes no sound: it has to be looked for.
        tokio::select! {
            () = tokio::time::sleep(lease / 3) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn once(engine: &Engine, node: NodeId, idle: &mut Idle, lost: &mut Lost) -> Result<(), StoreError> {
    let store = engine.store();
    let before = std::mem::take(idle);
    let dead = process::dead(store, engine.process(), node).await?;
    let mut verdicts: HashMap<ProcessId, bool> = dead.iter().map(|process| (*process, true)).collect();
    for turn in store.running_turns_across_tenants(None).await? {
        if engine.is_draining() {
            return Ok(());
        }
        if turn.owner == Some(engine.process()) && !engine.runs(turn.turn_id, turn.epoch) {
            idle.insert(turn.turn_id, turn.epoch);
        }
        if engine.is_elsewhere(turn.node_id) {
            wait_for_its_node(engine, &turn, lost).await?;
            continue;
        }
        let left = before.get(&turn.turn_id) == Some(&turn.epoch) && idle.contains_key(&turn.turn_id);
        if left || is_orphan(engine, &turn, &mut verdicts).await? {
            let taken = engine
                .take_over(turn.tenant_id, turn.session_id, turn.turn_id, turn.epoch)
                .await;
            match taken {
                Ok(true) => tracing::info!(turn = %turn.turn_id, "taken over"),
                Ok(false) => {}
                Err(error) => tracing::warn!(turn = %turn.turn_id, %error, "not taken over"),
            }
        }
    }
    for process in dead {
        process::remove(store, process).await?;
        engine.nudges().departed.notify_one();
    }
    Ok(())
}

/// A turn whose files only another data directory has waits for that one to
/// come back. After five leases without an owner it is given up.
async fn wait_for_its_node(engine: &Engine, turn: &Claimed, lost: &mut Lost) -> Result<(), StoreError> {
    let dead = match turn.owner {
        Some(owner) => process::is_dead(engine.store(), owner).await?,
        None => true,
    };
    let key = (turn.turn_id, turn.epoch);
    if !dead {
        lost.since.remove(&key);
        return Ok(());
    }
    let since = *lost.since.entry(key).or_insert_with(Instant::now);
    if lost.patience <= since.elapsed() {
        lost.since.remove(&key);
        let given_up = engine
            .give_up(turn.tenant_id, turn.session_id, turn.turn_id, turn.epoch)
            .await;
        if let Err(error) = given_up {
            tracing::warn!(turn = %turn.turn_id, %error, "not given up");
        }
    }
    Ok(())
}

async fn is_orphan(
    engine: &Engine,
    turn: &Claimed,
    verdicts: &mut HashMap<ProcessId, bool>,
) -> Result<bool, StoreError> {
    let Some(owner) = turn.owner else { return Ok(true) };
    if owner == engine.process() {
        return Ok(false);
    }
    if let Some(verdict) = verdicts.get(&owner) {
        return Ok(*verdict);
    }
    let verdict = process::is_dead(engine.store(), owner).await?;
    verdicts.insert(owner, verdict);
    Ok(verdict)
}
