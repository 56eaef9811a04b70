//! `tools.tool_search`: when tools that were brought at run time are searched
//! for instead of described.

use super::section::Section;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSearchMode {
    Auto,
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolSearch {
    pub mode: ToolSearchMode,
    pub threshold_percent: u32,
    pub default_limit: u32,
    pub max_limit: u32,
}

impl ToolSearch {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.section("tool_search", |section| {
            let words = [
                ("auto", ToolSearchMode::Auto),
                ("on", ToolSearchMode::On),
                ("off", ToolSearchMode::Off),
            ];
            Self {
                mode: section.choice("enabled", &words, ToolSearchMode::Auto),
                threshold_percent: section.number("threshold_pct", 10, 0..=100),
                default_limit: section.number("search_default_limit", 5, 1..=50),
                max_limit: section.number("max_search_limit", 20, 1..=50),
            }
        })
    }
}
