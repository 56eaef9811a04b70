//! `skills`: where skills lie beside the tenants' own, which of them count, and
//! who has a say when an agent changes one.

use std::path::PathBuf;

use super::original;
use super::section::Section;

#[derive(Clone, Debug)]
pub struct Skills {
    /// Directories of skills that every tenant sees and nobody changes.
    pub external_dirs: Vec<PathBuf>,
    /// Names or paths of skills that no agent is shown.
    pub disabled: Vec<String>,
    /// Whether a person is asked before an agent writes what the scan finds
    /// dangerous.
    pub guard_agent_created: bool,
    /// Whether what agents change waits for a person.
    pub write_approval: bool,
}

impl Skills {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::SKILLS);
        Self {
            external_dirs: section.paths("external_dirs"),
            disabled: section.texts("disabled"),
            guard_agent_created: section.flag("guard_agent_created", true),
            write_approval: section.flag("write_approval", false),
        }
    }
}
