//! Long commands that were read by the guard before the transaction which judges
//! them: reading one takes milliseconds, and in a transaction everybody else who
//! writes would wait for them. What was read is what would be read again, so a
//! reading that is not here costs time and nothing else.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::base::aside;
use crate::guard::{Judgement, Setting, check};
use crate::model::id::ApprovalId;

/// Bytes of a command whose reading others would feel.
pub const LONG: usize = 4 * 1024;
/// Readings that are kept; a full map starts over. One may be a megabyte.
const MOST_KEPT: usize = 64;

/// A text, and where it would run. The rest of a setting is the server's own.
type Key = ([u8; 32], Option<PathBuf>);

/// Approvals that are remembered; a full set starts over.
const MOST_ASKED: usize = 8_192;

#[derive(Debug, Default)]
pub struct Readings(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    readings: HashMap<Key, Arc<Judgement>>,
    /// Approvals whose turns have their calls read here. Of others nothing is
    /// known: they were asked before this process, or by another.
    asked: HashSet<ApprovalId>,
}

impl Readings {
    /// What the built-in rules say of a command.
    pub fn read(&self, command: &str, setting: &Setting<'_>) -> Judgement {
        if command.len() <= LONG {
            return check(command, setting);
        }
        let key = key(command, setting);
        if let Some(kept) = self.kept(&key) {
            return Judgement::clone(&kept);
        }
        let read = aside::work(true, || check(command, setting));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if MOST_KEPT <= kept.readings.len() {
            *kept = Kept::default();
        }
        kept.readings.insert(key, Arc::new(read.clone()));
        read
    }

    /// Whether the calls beside the approval were read here.
    pub fn were_read(&self, approval: ApprovalId) -> bool {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.asked.contains(&approval)
    }

    /// The calls beside these approvals are read.
    pub fn have_read(&self, approvals: impl IntoIterator<Item = ApprovalId>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if MOST_ASKED <= kept.asked.len() {
            kept.asked.clear();
        }
        kept.asked.extend(approvals);
    }

    /// How many long commands are known, for those who want to see that one is.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).readings.len()
    }

    fn kept(&self, key: &Key) -> Option<Arc<Judgement>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.readings.get(key).cloned()
    }

    #[cfg(test)]
    pub(crate) fn holds(&self, command: &str, setting: &Setting<'_>) -> bool {
        self.kept(&key(command, setting)).is_some()
    }
}

fn key(command: &str, setting: &Setting<'_>) -> Key {
    let text = Sha256::new()
        .chain_update([setting.backend as u8])
        .chain_update(command.as_bytes());
    (text.finalize().into(), setting.cwd.map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::{Backend, Verdict};

    fn setting(cwd: &str) -> Setting<'_> {
        Setting {
            backend: Backend::Local,
            home: "/home/a",
            agent_home: "/home/a/.hermes",
            cwd: Some(cwd),
            sudo_password: false,
        }
    }

    #[test]
    fn a_long_command_is_read_once_for_each_place() {
        let readings = Readings::default();
        let long = format!("{} rm -rf build", "echo a; ".repeat(1_000));
        let read = readings.read(&long, &setting("/w"));
        assert_eq!((read.verdict, &read), (Verdict::Ask, &check(&long, &setting("/w"))));
        assert!(readings.holds(&long, &setting("/w")) && !readings.holds(&long, &setting("/v")));
        assert_eq!(readings.read(&long, &setting("/w")), read);
        readings.read("echo a", &setting("/w"));
        assert!(!readings.holds("echo a", &setting("/w")));
    }

    #[test]
    fn only_so_many_are_kept() {
        let readings = Readings::default();
        for number in 0..=MOST_KEPT {
            let long = format!("echo {number}; {}", "echo a; ".repeat(600));
            readings.read(&long, &setting("/w"));
        }
        assert_eq!(readings.count(), 1);
    }
}
