//! `checkpoints`: whether a workspace is kept as it was before calls that could
//! take something away, how often, and how much of it.

use super::original;
use super::section::Section;

/// Made anew by a command, and large: what tools keep for themselves.
const EXCLUDED: [&str; 6] = [".cache", ".npm", ".venv", "__pycache__", "node_modules", "venv"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoints {
    pub enabled: bool,
    /// Of one session; the oldest go.
    pub max_snapshots: usize,
    /// Names of a workspace; of a larger one there is none.
    pub max_files: usize,
    /// A longer file is left out.
    pub max_file_bytes: u64,
    /// All files of one together; what does not fit is left out.
    pub max_bytes: u64,
    /// Names that are left out, with all beneath them.
    pub exclude: Vec<String>,
}

impl Checkpoints {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::CHECKPOINTS);
        Self {
            enabled: section.flag("enabled", false),
            max_snapshots: section.number("max_snapshots", 20, 1..=1_000),
            max_files: section.number("max_files", 20_000, 1..=200_000),
            max_file_bytes: section.number("max_file_size_mb", 10, 1..=1_024) << 20,
            max_bytes: section.number("max_snapshot_size_mb", 256, 1..=16_384) << 20,
            exclude: section.texts_or("exclude", &EXCLUDED),
        }
    }
}
