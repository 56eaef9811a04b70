//! `agent`: the limits of a turn and of the patience with a model.

use std::time::Duration;

use super::original;
use super::section::Section;

#[derive(Clone, Debug)]
pub struct Agent {
    /// Model calls of one turn.
    pub max_turns: u32,
    /// Wall time of one turn, parked time not counted.
    pub max_duration: Duration,
    /// Longest silence within a turn, parked time not counted.
    pub inactivity: Duration,
    /// How long a question to a person waits; nothing is for ever.
    pub clarify_timeout: Option<Duration>,
    /// The model's window in tokens, by which results are cut; `None` where it is
    /// not known.
    pub context_length: Option<usize>,
    /// The model is shown the images of results.
    pub vision: bool,
    /// A session's prompt shows what a file of its workspace says of the project.
    pub context_files: bool,
    pub api_max_retries: u32,
    /// The first pause before a retry; it doubles.
    pub retry_base: Duration,
}

impl Agent {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::AGENT);
        Self {
            max_turns: section.number("max_turns", 90, 1..=10_000),
            max_duration: section.seconds("max_seconds", 1800, 1..=604_800),
            inactivity: section.seconds("inactivity_seconds", 1800, 1..=604_800),
            clarify_timeout: Some(section.seconds("clarify_timeout", 3600, 0..=31_536_000))
                .filter(|timeout| !timeout.is_zero()),
            context_length: Some(section.number("context_length", 0, 0..=100_000_000)).filter(|tokens| 0 < *tokens),
            vision: section.flag("vision", true),
            context_files: section.flag("context_files", true),
            api_max_retries: section.number("api_max_retries", 3, 0..=20),
            retry_base: section.seconds("retry_base_seconds", 2, 0..=60),
        }
    }
}
