//! Workspaces as they were before calls that could take something away: which
//! calls those are, that there is one checkpoint for each answer of a model, and
//! putting one back. A checkpoint never fails the call that it is made for. Calls
//! hold a session's files while they run, so that none runs while files are put
//! back; that they are held is a lock on a file, so all servers of a directory see
//! it.

mod restore;
mod shelf;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::Host;
use super::command_line::overwrites;
use crate::base::Clock;
use crate::config;
use crate::environment::snapshot::{Bounds, LeftOut, Taken, Tree, What};
use crate::environment::{EnvironmentError, FileError};
use crate::model::checkpoint::{Checkpoint, CheckpointState};
use crate::model::id::{CallId, CheckpointId, MessageId, SessionId, TenantId, TurnId};
pub use restore::restore;
use shelf::Shelf;

/// How checkpoints are made here, and where they are.
#[derive(Debug)]
pub struct Checkpoints {
    settings: config::Checkpoints,
    bounds: Arc<Bounds>,
    root: PathBuf,
}

/// A call that is about to run.
#[derive(Clone, Debug)]
pub struct Moment {
    pub tenant: TenantId,
    /// Whose workspace it runs in.
    pub home: SessionId,
    pub session: SessionId,
    pub turn: TurnId,
    pub answer: MessageId,
    pub call: CallId,
    pub tool: String,
    /// It is one of those that could take something away.
    pub is_due: bool,
}

/// Why nothing was put back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("no such checkpoint")]
    NotFound,
    #[error("there is nothing in it: {reason}")]
    Nothing { reason: String },
    /// Somebody works in the workspace.
    #[error("a call of the session is still running, or another checkpoint is being restored")]
    Busy,
    #[error("it could not be undone, since there is no snapshot of how things are: {reason}")]
    NoWayBack { reason: String },
    #[error("the checkpoint cannot be read or written")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Files(#[from] FileError),
    #[error(transparent)]
    Workspace(#[from] EnvironmentError),
}

/// Whether the call is one of those before which there is a checkpoint.
pub fn is_due(tool: &str, arguments: &Value) -> bool {
    match tool {
        "write_file" | "patch" => true,
        "terminal" => arguments.get("command").and_then(Value::as_str).is_some_and(overwrites),
        _ => false,
    }
}

impl Checkpoints {
    pub(super) fn new(settings: config::Checkpoints, data_dir: &std::path::Path) -> Self {
        let bounds = Bounds {
            files: settings.max_files,
            file_bytes: settings.max_file_bytes,
            bytes: settings.max_bytes,
            without: settings.exclude.iter().map(OsString::from).collect(),
        };
        Self {
            settings,
            bounds: Arc::new(bounds),
            root: data_dir.join("checkpoints"),
        }
    }

    fn shelf(&self, tenant: TenantId, home: SessionId) -> Shelf {
        Shelf::at(self.root.join(tenant.to_string()).join(home.to_string()))
    }

    /// All of a workspace, newest first.
    pub async fn list(&self, tenant: TenantId, home: SessionId) -> io::Result<Vec<Checkpoint>> {
        let shelf = self.shelf(tenant, home);
        blocking(move || shelf.heads()).await
    }

    /// Takes away all that is kept of a workspace.
    pub async fn remove(&self, tenant: TenantId, home: SessionId) -> io::Result<()> {
        let shelf = self.shelf(tenant, home);
        blocking(move || shelf.remove()).await
    }
}

/// Makes the checkpoint, if one is due; what comes back is held while the call
/// runs.
pub async fn ahead(host: Arc<Host>, clock: Clock, moment: Moment) -> Option<File> {
    let checkpoints = host.checkpoints();
    let shelf = checkpoints.shelf(moment.tenant, moment.home);
    let is_due = moment.is_due && checkpoints.settings.enabled;
    if !is_due && !shelf.is_there() {
        return None;
    }
    let held = blocking(move || match is_due {
        true => shelf.make().and_then(|()| shelf.hold()),
        false => shelf.hold(),
    });
    let held = match held.await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(session = %moment.home, %error, "the checkpoints of a session cannot be used");
            return None;
        }
    };
    if is_due {
        let (home, new) = (moment.home, moment.checkpoint(&clock));
        if let Err(error) = checkpoint(&host, (moment.tenant, home), new).await {
            tracing::warn!(session = %home, %error, "no checkpoint could be made");
        }
    }
    held
}

impl Moment {
    fn checkpoint(&self, clock: &Clock) -> Checkpoint {
        Checkpoint {
            turn_id: Some(self.turn),
            message_id: Some(self.answer),
            tool_call_id: Some(self.call),
            tool: Some(self.tool.clone()),
            ..blank(clock, self.session)
        }
    }
}

fn blank(clock: &Clock, session: SessionId) -> Checkpoint {
    Checkpoint {
        id: CheckpointId::new(clock),
        session_id: session,
        turn_id: None,
        message_id: None,
        tool_call_id: None,
        tool: None,
        restores: None,
        state: CheckpointState::Skipped,
        reason: None,
        files: 0,
        bytes: 0,
        created_at: clock.now(),
    }
}

/// Makes one, unless its answer has one; keeps no more than the settings say.
async fn checkpoint(host: &Arc<Host>, place: (TenantId, SessionId), new: Checkpoint) -> Result<(), RestoreError> {
    let checkpoints = host.checkpoints();
    let (shelf, most) = (checkpoints.shelf(place.0, place.1), checkpoints.settings.max_snapshots);
    let alone = locked(&shelf).await?;
    let (of, there) = (new.message_id, shelf.clone());
    let heads = blocking(move || there.heads()).await?;
    if heads.iter().any(|head| of.is_some() && head.message_id == of) {
        return Ok(());
    }
    take(host, place, new).await?;
    let pruned = blocking(move || shelf.prune(most));
    pruned.await?;
    drop(alone);
    Ok(())
}

/// Writes how the workspace is now under a checkpoint; whoever asks has the lock.
async fn take(
    host: &Arc<Host>,
    (tenant, home): (TenantId, SessionId),
    mut new: Checkpoint,
) -> Result<(Checkpoint, Tree), RestoreError> {
    let checkpoints = host.checkpoints();
    let shelf = checkpoints.shelf(tenant, home);
    let taken = async {
        let workspace = host.workspace(tenant, home).await?;
        let there = shelf.clone();
        let (vault, before) = blocking(move || Ok((there.vault()?, there.newest_tree()))).await?;
        let taken = workspace
            .snapshot(vault, before, Arc::clone(&checkpoints.bounds))
            .await?;
        Ok::<_, RestoreError>(taken)
    };
    let tree = match taken.await {
        Ok(Taken::Tree { tree, files, bytes }) => {
            (new.files, new.bytes, new.reason) = (files, bytes, incomplete(&tree, &checkpoints.settings));
            new.state = match new.reason {
                None => CheckpointState::Complete,
                Some(_) => CheckpointState::Partial,
            };
            tree
        }
        Ok(Taken::TooMany) => {
            new.reason = Some(format!(
                "the workspace has more than {} names",
                checkpoints.settings.max_files
            ));
            Tree::default()
        }
        Err(error) => {
            tracing::warn!(session = %home, %error, "a workspace could not be kept");
            new.reason = Some("the workspace could not be read, or there was no room to keep it".to_owned());
            Tree::default()
        }
    };
    let written = blocking(move || {
        shelf.put(&new, (new.state != CheckpointState::Skipped).then_some(&tree))?;
        Ok((new, tree))
    });
    Ok(written.await?)
}

/// What is not in a snapshot though it should be, in words.
fn incomplete(tree: &Tree, settings: &config::Checkpoints) -> Option<String> {
    let count = |wanted: LeftOut| {
        let is = |what: &&What| matches!(what, What::LeftOut { why } if *why == wanted);
        tree.names.values().filter(is).count()
    };
    let said = [
        (
            count(LeftOut::Long),
            format!("longer than {} MB", settings.max_file_bytes >> 20),
        ),
        (
            count(LeftOut::NoRoom),
            format!("beyond {} MB in all", settings.max_bytes >> 20),
        ),
        (count(LeftOut::Closed), "may not be read".to_owned()),
    ];
    let said: Vec<String> = said
        .into_iter()
        .filter(|(count, _)| 0 < *count)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    (!said.is_empty()).then(|| format!("left out: {}", said.join(", ")))
}

/// Only one at a time makes checkpoints of a workspace.
async fn locked(shelf: &Shelf) -> io::Result<File> {
    let shelf = shelf.clone();
    blocking(move || shelf.lock()).await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}
