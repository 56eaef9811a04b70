//! `terminal`: how commands run and what they may reach.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::node::Node;
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
    /// When there are any, file tools write nowhere else.
    pub write_safe_root: Vec<PathBuf>,
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
            write_safe_root: write_safe_root(section),
        }
    }
}

/// Directories as the original's variable writes them, with colons between.
fn write_safe_root(section: &mut Section<'_>) -> Vec<PathBuf> {
    let read = |node: &Node| {
        let parts = node.text()?.split(':').map(str::trim).filter(|part| !part.is_empty());
        let paths: Vec<PathBuf> = parts.map(PathBuf::from).collect();
        paths.iter().all(|path| path.is_absolute()).then_some(paths)
    };
    let allowed = "absolute paths with `:` between them";
    section.take("write_safe_root", Vec::new(), allowed, read, |paths| json!(paths))
}
