//! `plugins`: where plugins lie, and what the operator allows each.

use std::path::PathBuf;

use super::section::Section;

#[derive(Clone, Debug)]
pub struct Plugins {
    /// Where plugins lie; in the data directory where nothing is said.
    pub directory: Option<PathBuf>,
    pub entries: Vec<PluginEntry>,
}

/// One plugin by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginEntry {
    pub name: String,
    pub enabled: bool,
    /// Its tools may take the place of others.
    pub allow_tool_override: bool,
}

impl Plugins {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            directory: section.optional_path("directory"),
            entries: section.section("entries", |section| {
                let names = section.names();
                let read = |name: String| {
                    section.section_named(&name.clone(), |section| PluginEntry {
                        name,
                        enabled: section.flag("enabled", true),
                        allow_tool_override: section.flag("allow_tool_override", false),
                    })
                };
                names.into_iter().map(read).collect()
            }),
        }
    }
}
