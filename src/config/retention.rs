//! `retention`: how long what is not needed any more is kept.

use super::section::Section;

/// A hundred years; nobody means more.
const MAX_DAYS: u64 = 36_500;

#[derive(Clone, Debug)]
pub struct Retention {
    /// Days that a session's events are kept after their turn; nothing means
    /// for as long as the session. Messages and calls are kept in any case.
    pub events_days: Option<u64>,
}

impl Retention {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            events_days: Some(section.number("events_days", 0, 0..=MAX_DAYS)).filter(|days| *days != 0),
        }
    }
}
