//! `platform_toolsets`: which toolsets a session has when nobody says so, and
//! `custom_toolsets`: those that the operator makes.

use super::original;
use super::section::Section;

/// A toolset of the operator's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomToolset {
    pub name: String,
    pub description: String,
    pub tools: Vec<String>,
    /// Toolsets that are part of it.
    pub includes: Vec<String>,
}

/// `custom_toolsets`: by name, in the order of the file.
pub(super) fn read_custom(section: &mut Section<'_>) -> Vec<CustomToolset> {
    let names = section.names();
    let read = |name: String| {
        section.section_named(&name.clone(), |section| CustomToolset {
            name,
            description: section.text("description", ""),
            tools: section.texts("tools"),
            includes: section.texts("includes"),
        })
    };
    names.into_iter().map(read).collect()
}

/// The toolsets of sessions by the door they came in through. The original
/// has a list for each messenger; this server has one door.
#[derive(Clone, Debug)]
pub struct PlatformToolsets {
    pub api_server: Vec<String>,
}

impl PlatformToolsets {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::PLATFORMS);
        Self {
            api_server: section.texts_or("api_server", &["hermes-api-server"]),
        }
    }
}
