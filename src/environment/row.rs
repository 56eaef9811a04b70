//! Commands of one answer, one after another: while one runs, the shell of the next
//! is started behind its walls and waits for its script, by a process whose own
//! command is over where there is one, so that a row of commands needs two.
//!
//! The place for them is the answer's: it holds one shell at most, never one of
//! another session, and with the place they go. A shell is given to no command but
//! one of exactly the same walls, directory and variables.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::command::EnvironmentError;
use super::exec::description::{Confinement, Description, Go, LONGEST_GO, frame};
use super::run::{Ended, Run};
use super::spare::Spares;

/// Of one command: the place for what the one that follows is given. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct Row {
    place: Arc<Mutex<Kept>>,
    /// Whether another command is known to come after this one.
    pub is_followed: bool,
}

#[derive(Debug, Default)]
struct Kept {
    next: Option<Held>,
    rested: Option<Rested>,
}

/// A shell that waits, and all that it was started with.
#[derive(Debug)]
struct Held {
    confinement: Confinement,
    environment: Vec<(String, String)>,
    cwd: PathBuf,
    run: Run,
}

/// A process whose command is over with all its tree.
#[derive(Debug)]
struct Rested {
    confinement: Confinement,
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
            place: Arc::clone(&self.place),
            is_followed,
        }
    }

    /// Has the shell started that `ahead` describes, and keeps it.
    pub(super) async fn hold(&self, (spares, program): (&Spares, &Path), ahead: Description) {
        let Ok(frame) = frame(&ahead, None) else { return };
        let ordered = match self.rested(&ahead.confinement) {
            Some(mut run) => run.order_again(&frame).await.map(|()| run),
            // Whether it is a spare or not, the next command needs it.
            None => match spares.run(program, &ahead.confinement) {
                Ok(mut run) => run.order(&frame).await.map(|()| run),
                Err(_) => return,
            },
        };
        let Ok(run) = ordered else { return };
        self.kept().next = Some(Held {
            confinement: ahead.confinement,
            environment: ahead.environment,
            cwd: ahead.cwd,
            run,
        });
    }

    /// The process that runs this now, if one waited for it or has nothing to do. A
    /// shell that waited for something else goes.
    pub(super) async fn begun(
        &self,
        (wanted, stdin): (&Description, Option<&[u8]>),
        cancel: &CancellationToken,
    ) -> Result<Option<Run>, EnvironmentError> {
        let held = self.kept().next.take().filter(|held| held.suits(wanted));
        if cancel.is_cancelled() {
            return Ok(None);
        }
        if let Some(Held { mut run, .. }) = held {
            let go = Go {
                script: wanted.script.clone(),
                timeout_ms: wanted.timeout_ms,
            };
            let frame = frame(&go, None).map_err(EnvironmentError::Spawn)?;
            if run.is_there() && run.order(&frame).await.is_ok() && run.has_begun(cancel).await? {
                return Ok(Some(run));
            }
        }
        if let Some(mut run) = self.rested(&wanted.confinement) {
            let frame = frame(wanted, stdin).map_err(EnvironmentError::Spawn)?;
            if run.order_again(&frame).await.is_ok() && run.has_begun(cancel).await? {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    /// A process that may be given another command behind the same walls.
    fn rested(&self, confinement: &Confinement) -> Option<Run> {
        let mut rested = self.kept().rested.take()?;
        (rested.confinement == *confinement && rested.run.is_there()).then_some(rested.run)
    }

    /// Keeps a process whose command is over, for one of those that follow.
    pub(super) fn rest(&self, confinement: Confinement, run: Run, ended: &Ended) {
        if self.is_followed && ended.is_plain() {
            self.kept().rested = Some(Rested { confinement, run });
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
