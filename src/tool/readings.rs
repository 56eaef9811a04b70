//! Long texts of calls that the guard has read, by their hash: reading one takes
//! milliseconds, for which nobody else is to wait. In a transaction one that was
//! not read is noted and not read; whoever began the transaction has it read aside
//! and begins anew. What was read is what would be read again, so a reading that
//! is not here costs time and nothing else.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::base::aside;
use crate::guard::{Judgement, Setting, check};

/// Bytes of a command whose reading others would feel.
pub const LONG: usize = 4 * 1024;
/// Readings of a kind that are kept; a full map starts over. One may be a megabyte.
const MOST_KEPT: usize = 64;

type TextHash = [u8; 32];

#[derive(Debug, Default)]
pub struct Readings {
    /// By the text, and where it would run. The rest of a setting is the server's own.
    commands: Kept<(TextHash, Option<PathBuf>), Judgement>,
    /// What is dangerous in a skill's text, by the arguments that bring it.
    skills: Kept<TextHash, Vec<String>>,
}

impl Readings {
    /// What the built-in rules say of a command.
    pub fn read(&self, command: &str, setting: &Setting<'_>) -> Judgement {
        if command.len() <= LONG {
            return check(command, setting);
        }
        let read = || aside::work(true, || check(command, setting));
        Judgement::clone(&self.commands.get_or(command_key(command, setting), read))
    }

    /// Whether [`Self::read`] answers at once.
    pub fn has(&self, command: &str, setting: &Setting<'_>) -> bool {
        command.len() <= LONG || self.commands.get(&command_key(command, setting)).is_some()
    }

    /// What `scan` finds in the text of a skill.
    pub fn skill(&self, arguments: &Value, scan: impl FnOnce() -> Vec<String>) -> Arc<Vec<String>> {
        self.skills.get_or(skill_key(arguments), scan)
    }

    /// Whether [`Self::skill`] answers at once.
    pub fn has_skill(&self, arguments: &Value) -> bool {
        self.skills.get(&skill_key(arguments)).is_some()
    }
}

/// Values that were made, until there are too many.
#[derive(Debug)]
struct Kept<K, T>(Mutex<HashMap<K, Arc<T>>>);

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, T> Kept<K, T> {
    fn get(&self, key: &K) -> Option<Arc<T>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).cloned()
    }

    fn get_or(&self, key: K, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(kept) = self.get(&key) {
            return kept;
        }
        let made = Arc::new(make());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if MOST_KEPT <= kept.len() {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&made));
        made
    }
}

fn command_key(command: &str, setting: &Setting<'_>) -> (TextHash, Option<PathBuf>) {
    let text = Sha256::new()
        .chain_update([setting.backend as u8])
        .chain_update(command.as_bytes());
    (text.finalize().into(), setting.cwd.map(PathBuf::from))
}

fn skill_key(arguments: &Value) -> TextHash {
    Sha256::digest(arguments.to_string().as_bytes()).into()
}

/// A text that a decision met and that nobody has read.
#[derive(Debug)]
pub enum Text {
    Command {
        command: String,
        cwd: String,
    },
    /// Arguments that bring the text of a skill.
    Skill(Value),
}

/// Texts to be read before the decision counts.
#[derive(Debug, Default)]
pub struct Unread(Mutex<Vec<Text>>);

impl Unread {
    pub(super) fn note(&self, text: Text) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push(text);
    }

    pub fn noted(self) -> Vec<Text> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
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
        assert!(readings.has(&long, &setting("/w")) && !readings.has(&long, &setting("/v")));
        assert_eq!(readings.read(&long, &setting("/w")), read);
        readings.read("echo a", &setting("/w"));
        assert_eq!(readings.commands.0.lock().unwrap().len(), 1);
        assert!(readings.has("echo a", &setting("/w")), "what is short is read at once");
    }

    #[test]
    fn only_so_many_are_kept() {
        let readings = Readings::default();
        for number in 0..=MOST_KEPT {
            let long = format!("echo {number}; {}", "echo a; ".repeat(600));
            readings.read(&long, &setting("/w"));
        }
        assert_eq!(readings.commands.0.lock().unwrap().len(), 1);
    }
}
