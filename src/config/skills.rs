//! `skills`: where skills lie beside the tenants' own.

use std::path::PathBuf;

use super::original;
use super::section::Section;

#[derive(Clone, Debug)]
pub struct Skills {
    /// Directories of skills that every tenant sees and nobody changes.
    pub external_dirs: Vec<PathBuf>,
}

impl Skills {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::SKILLS);
        Self {
            external_dirs: section.paths("external_dirs"),
        }
    }
}
