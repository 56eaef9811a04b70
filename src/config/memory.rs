//! `memory`: how much is remembered of a user from session to session.

use super::original;
use super::section::Section;
use crate::model::memory::Limits;

/// Every session's prompt carries both lists, so they stay short.
const MAX_CHARS: usize = 100_000;

/// Characters of each list, separators counted; the original's defaults.
pub(super) fn read(section: &mut Section<'_>) -> Limits {
    section.ignore(original::MEMORY);
    Limits {
        memory: section.number("memory_char_limit", 2_200, 1..=MAX_CHARS),
        user: section.number("user_char_limit", 1_375, 1..=MAX_CHARS),
    }
}
