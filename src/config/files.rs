//! `file_read_max_chars` and `tool_output`: how much of a file `read_file` shows
//! at once. The keys are the original's; the bounds can be lowered, and raised
//! only as far as a model's context can bear.

use super::original;
use super::section::Section;

#[derive(Clone, Debug)]
pub struct Files {
    /// Characters of one page.
    pub page_chars: usize,
    /// Lines of one page.
    pub max_lines: usize,
    /// Characters of one line.
    pub line_chars: usize,
}

impl Files {
    pub(super) fn read(root: &mut Section<'_>) -> Self {
        let page_chars = root.number("file_read_max_chars", 100_000, 1_000..=400_000);
        root.section("tool_output", |section| {
            section.ignore(original::TOOL_OUTPUT);
            Self {
                page_chars,
                max_lines: section.number("max_lines", 2_000, 1..=2_000),
                line_chars: section.number("max_line_length", 2_000, 80..=20_000),
            }
        })
    }
}
