//! `exec` processes that were started before their command is known. To start
//! one takes longer than all it does for a short command; a spare has that
//! behind it and waits for its order. It knows nothing, holds nothing of a
//! session, and leaves when its socket ends, as every one does.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::command::{EnvironmentError, Mechanism};
use super::exec::description::Confinement;
use super::run::Run;

/// One for the next command and one for a neighbour's; each holds about 2 MB.
const KEPT: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Spares(Mutex<VecDeque<Run>>);

impl Spares {
    /// A process for one command: a spare, or a new one.
    pub(super) fn run(&self, program: &Path, confinement: &Confinement) -> Result<Run, EnvironmentError> {
        if is_common(confinement.mechanism)
            && let Some(spare) = self.take()
        {
            return Ok(spare);
        }
        Run::start(program, confinement, false)
    }

    /// The one that had most time to get ready, if one is there.
    fn take(&self) -> Option<Run> {
        loop {
            let mut spare = self.kept().pop_front()?;
            // The kernel may have picked it when memory ended.
            if spare.is_there() {
                return Some(spare);
            }
        }
    }

    /// Starts what is missing, for the commands after the present one.
    pub(super) fn refill(&self, program: &Path, confinement: &Confinement) {
        while is_common(confinement.mechanism) && self.kept().len() < KEPT {
            // Whoever needs one will be told why there is none.
            let Ok(spare) = Run::start(program, confinement, false) else {
                return;
            };
            self.kept().push_back(spare);
        }
    }

    /// No code of others runs under it and nothing is half-made.
    fn kept(&self) -> MutexGuard<'_, VecDeque<Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a process is started the same way for every session.
fn is_common(mechanism: Mechanism) -> bool {
    match mechanism {
        Mechanism::Landlock | Mechanism::None => true,
        // Its spaces are made with the process and show the session's files.
        Mechanism::Bubblewrap => false,
    }
}
