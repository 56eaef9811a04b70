//! `log`: the shape and the loudness of the server's own log.

use super::section::Section;

#[derive(Clone, Copy, Debug)]
pub struct Log {
    pub format: Format,
    pub level: Level,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Log {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            format: section.choice(
                "format",
                &[("text", Format::Text), ("json", Format::Json)],
                Format::Text,
            ),
            level: section.choice("level", &LEVELS, Level::Info),
        }
    }
}

const LEVELS: [(&str, Level); 5] = [
    ("error", Level::Error),
    ("warn", Level::Warn),
    ("info", Level::Info),
    ("debug", Level::Debug),
    ("trace", Level::Trace),
];

impl Level {
    /// The word of the level, as log filters write it.
    pub fn word(self) -> &'static str {
        LEVELS
            .iter()
            .find(|(_, level)| *level == self)
            .map_or("info", |(word, _)| *word)
    }
}
