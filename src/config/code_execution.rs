//! `code_execution`: programs that the model writes and that call tools.

use std::time::Duration;

use super::section::Section;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeExecution {
    /// A program is stopped then; while a person is asked it stands still.
    pub timeout: Duration,
    /// Tool calls of one program.
    pub max_tool_calls: u32,
    pub mode: CodeMode,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeMode {
    /// In the session's directory, with the workspace's own interpreter where it
    /// has one.
    Project,
    /// In an empty directory, with the system's interpreter.
    Strict,
}

impl CodeExecution {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            timeout: section.seconds("timeout", 300, 1..=86_400),
            max_tool_calls: section.number("max_tool_calls", 50, 0..=10_000),
            mode: section.choice(
                "mode",
                &[("project", CodeMode::Project), ("strict", CodeMode::Strict)],
                CodeMode::Project,
            ),
        }
    }
}
