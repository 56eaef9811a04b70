//! Commands of one answer, one after another: while one runs, the shell of the next
//! is started behind its walls and waits for its script.
//!
//! The place for that shell is the answer's: it holds one at most, never one of
//! another session, and with the place the shell goes. It is given to no command but
//! one of exactly the same walls, directory and variables.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::command::EnvironmentError;
use super::exec::description::{Confinement, Description, Go, LONGEST_GO, frame};
use super::run::Run;

/// Of one command: the place for the shell of the one that follows. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct Row {
    next: Arc<Mutex<Option<Held>>>,
    /// Whether another command is known to come after this one.
    pub is_followed: bool,
}

/// A shell that waits, and all that it was started with.
#[derive(Debug)]
struct Held {
    confinement: Confinement,
    environment: Vec<(String, String)>,
    cwd: PathBuf,
    run: Run,
}

impl Held {
    fn suits(&self, wanted: &Description) -> bool {
        self.confinement == wanted.confinement
            && self.environment == wanted.environment
            && self.cwd == wanted.cwd
            && wanted.stdin_bytes.is_none()
            && !wanted.terminal
            && wanted.script.len() <= LONGEST_GO
    }
}

impl Row {
    /// The same place for another command.
    pub fn then(&self, is_followed: bool) -> Self {
        Self {
            next: Arc::clone(&self.next),
            is_followed,
        }
    }

    /// Has `run` start the shell that `ahead` describes, and keeps it.
    pub(super) async fn hold(&self, mut run: Run, ahead: Description) {
        let Ok(frame) = frame(&ahead, None) else { return };
        if run.order(&frame).await.is_err() {
            return;
        }
        let held = Held {
            confinement: ahead.confinement,
            environment: ahead.environment,
            cwd: ahead.cwd,
            run,
        };
        *self.next() = Some(held);
    }

    /// The process that runs this now, if one waited for it. What waited for
    /// something else goes.
    pub(super) async fn begun(
        &self,
        wanted: &Description,
        cancel: &CancellationToken,
    ) -> Result<Option<Run>, EnvironmentError> {
        let held = self.next().take().filter(|held| held.suits(wanted));
        let Some(Held { mut run, .. }) = held.filter(|_| !cancel.is_cancelled()) else {
            return Ok(None);
        };
        let go = Go {
            script: wanted.script.clone(),
            timeout_ms: wanted.timeout_ms,
        };
        let frame = frame(&go, None).map_err(EnvironmentError::Spawn)?;
        Ok(run.go(&frame, cancel).await?.then_some(run))
    }

    fn next(&self) -> MutexGuard<'_, Option<Held>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
