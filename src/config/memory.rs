//! `memory`: how much is remembered of a user from session to session.

use super::original;
use super::section::Section;
use crate::model::memory::Limits;

/// Every session's prompt carries both lists, so they stay short.
const MAX_CHARS: usize = 100_000;

#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Characters of each list, separators counted.
    pub limits: Limits,
    /// Whether a person is asked before an agent changes a list.
    pub write_approval: bool,
}

impl Memory {
    /// With the original's defaults.
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::MEMORY);
        Self {
            limits: Limits {
                memory: section.number("memory_char_limit", 2_200, 1..=MAX_CHARS),
                user: section.number("user_char_limit", 1_375, 1..=MAX_CHARS),
            },
            write_approval: section.flag("write_approval", false),
        }
    }
}
