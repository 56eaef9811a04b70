//! `security`: the external scanner of commands.

use std::time::Duration;

use super::original;
use super::section::Section;

#[derive(Clone, Debug)]
pub struct Security {
    pub tirith_enabled: bool,
    /// A name that is looked for in `PATH`, or a path.
    pub tirith_path: String,
    pub tirith_timeout: Duration,
    /// A scanner that does not judge allows; otherwise a person is asked.
    pub tirith_fail_open: bool,
}

impl Security {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::SECURITY);
        Self {
            tirith_enabled: section.flag("tirith_enabled", true),
            tirith_path: section.text("tirith_path", "tirith"),
            tirith_timeout: section.seconds("tirith_timeout", 5, 1..=60),
            tirith_fail_open: section.flag("tirith_fail_open", true),
        }
    }
}
