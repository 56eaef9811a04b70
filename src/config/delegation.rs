//! `delegation`: children that do tasks for a session.

use std::time::Duration;

use super::original;
use super::section::Section;

#[derive(Clone, Debug)]
pub struct Delegation {
    /// Tasks of one call.
    pub max_concurrent_children: usize,
    pub max_spawn_depth: usize,
    pub orchestrator_enabled: bool,
    /// Model calls of a child.
    pub max_iterations: u32,
    pub child_timeout: Option<Duration>,
    pub model: Option<String>,
    /// Characters of a child's report that its parent's model is shown.
    pub max_summary_chars: usize,
    /// What children would ask is allowed without asking.
    pub subagent_auto_approve: bool,
}

impl Delegation {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::DELEGATION);
        Self {
            max_concurrent_children: section.number("max_concurrent_children", 3, 1..=64),
            max_spawn_depth: section.number("max_spawn_depth", 1, 1..=8),
            orchestrator_enabled: section.flag("orchestrator_enabled", true),
            max_iterations: section.number("max_iterations", 50, 1..=10_000),
            child_timeout: Some(section.seconds("child_timeout_seconds", 0, 0..=604_800))
                .filter(|timeout| !timeout.is_zero())
                .map(|timeout| timeout.max(Duration::from_secs(30))),
            model: section.optional_text("model"),
            max_summary_chars: section.number("max_summary_chars", 24_000, 2_000..=1_000_000),
            subagent_auto_approve: section.flag("subagent_auto_approve", false),
        }
    }
}
