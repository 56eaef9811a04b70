//! `cron`: the runs of jobs, where they differ from other turns.

use std::time::Duration;

use super::original;
use super::section::Section;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cron {
    /// Longest silence within a run; while its script runs it may be silent.
    pub inactivity: Duration,
    pub script_timeout: Duration,
    /// Runs of a job that its history keeps.
    pub runs_kept: u32,
}

impl Cron {
    /// The figures are the original's.
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::CRON);
        Self {
            inactivity: section.seconds("inactivity_seconds", 600, 1..=604_800),
            script_timeout: section.seconds("script_timeout_seconds", 3_600, 1..=86_400),
            runs_kept: section.number("output_retention", 50, 1..=10_000),
        }
    }
}
