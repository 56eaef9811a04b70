//! `limits`: how much a key, a tenant and the whole server may ask for at once
//! and over time. Bodies, streams and single turns have theirs elsewhere.

use std::time::Duration;

use super::section::Section;

/// The three kinds of limits, from the widest.
#[derive(Clone, Debug)]
pub struct Limits {
    pub server: Limit,
    /// Of each tenant.
    pub tenant: Limit,
    /// Of each API key; callers without a stored one are limited by user.
    pub key: Limit,
}

/// What one of them may do; nothing is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub executing_turns: Option<u32>,
    pub requests: Option<Quota>,
}

/// So many requests in a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// At least 1.
    pub requests: u32,
    pub window: Duration,
}

const MOST_TURNS: u32 = 1_000_000;
const MOST_REQUESTS: u32 = 1_000_000;
const DAY: u64 = 86_400;

impl Limits {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        Self {
            // A server without any bound would take work until it falls.
            server: section.section("server", |section| Limit::read(section, 1024, 1)),
            tenant: section.section("tenant", |section| Limit::read(section, 0, 0)),
            key: section.section("key", |section| Limit::read(section, 0, 0)),
        }
    }
}

impl Limit {
    fn read(section: &mut Section<'_>, turns: u32, fewest_turns: u32) -> Self {
        let turns = section.number("executing_turns", turns, fewest_turns..=MOST_TURNS);
        let requests = section.number("requests", 0, 0..=MOST_REQUESTS);
        let window = section.seconds("window_seconds", 60, 1..=DAY);
        Self {
            executing_turns: Some(turns).filter(|turns| *turns != 0),
            requests: (requests != 0).then_some(Quota { requests, window }),
        }
    }
}
