//! `terminal`: how commands run and what they may reach.

use std::path::PathBuf;
use std::time::Duration;

use super::original;
use super::section::Section;

#[derive(Clone, Debug)]
pub struct Terminal {
    pub isolation: Isolation,
    /// Commands may open network connections.
    pub network: bool,
    /// A command that names no limit of its own gets this one.
    pub timeout: Duration,
    /// No foreground command may ask for more.
    pub max_foreground_timeout: Duration,
    /// Variables of the server that a command may see; credentials never.
    pub env_passthrough: Vec<String>,
    pub readable_paths: Vec<PathBuf>,
    pub writable_paths: Vec<PathBuf>,
}

/// The wall around a command of the local backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The strongest that works here.
    Auto,
    Bubblewrap,
    Landlock,
    None,
}

impl Terminal {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::TERMINAL);
        // A file that asks for a container must not get the host instead.
        section.choice("backend", &[("local", ())], ());
        Self {
            isolation: section.choice(
                "isolation",
                &[
                    ("auto", Isolation::Auto),
                    ("bubblewrap", Isolation::Bubblewrap),
                    ("landlock", Isolation::Landlock),
                    ("none", Isolation::None),
                ],
                Isolation::Auto,
            ),
            network: section.flag("network", false),
            timeout: section.seconds("timeout", 180, 1..=86_400),
            max_foreground_timeout: section.seconds("max_foreground_timeout", 600, 1..=86_400),
            env_passthrough: section.texts("env_passthrough"),
            readable_paths: section.paths("readable_paths"),
            writable_paths: section.paths("writable_paths"),
        }
    }
}
