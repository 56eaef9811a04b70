//! `platform_toolsets`: which toolsets a session has when nobody says so.

use super::original;
use super::section::Section;

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
