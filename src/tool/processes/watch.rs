//! When a line that was waited for is told: at most once in fifteen seconds for
//! each process, and not when a whole session chatters. Pure; time is given.

use crate::base::Timestamp;
use crate::base::text::first_chars;
use crate::model::background::{Matched, WatchChange};

/// The original's figures.
const WINDOW_MS: i64 = 15_000;
const STRIKES: u32 = 3;
const MAX_LINES: usize = 20;
const MAX_CHARS: usize = 2_000;
const BURST: usize = 15;
const BURST_MS: i64 = 10_000;
const SILENCE_MS: i64 = 30_000;
/// A line longer than this is looked at in part.
const LINE_BYTES: usize = 64 << 10;

/// What is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Matched(Matched),
    Changed { change: WatchChange, dropped: u64 },
}

/// The watch on one process.
#[derive(Debug)]
pub(super) struct Watch {
    patterns: Vec<String>,
    /// The line that is not complete yet.
    open: String,
    told_at: Option<Timestamp>,
    dropped: u64,
    /// Windows in a row in which lines were dropped.
    strikes: u32,
    is_struck: bool,
}

impl Watch {
    pub(super) fn new(patterns: Vec<String>) -> Self {
        Self {
            patterns,
            open: String::new(),
            told_at: None,
            dropped: 0,
            strikes: 0,
            is_struck: false,
        }
    }

    /// Nothing is watched for any more.
    pub(super) fn is_over(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Takes the next output.
    pub(super) fn take(&mut self, text: &str, now: Timestamp, breaker: &mut Breaker) -> Vec<Told> {
        if self.is_over() {
            return Vec::new();
        }
        let mut hits: Vec<String> = Vec::new();
        let mut pattern = None;
        for piece in text.split_inclusive('\n') {
            if self.open.len() < LINE_BYTES {
                self.open.push_str(piece);
            }
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.open);
                if let Some(found) = self.patterns.iter().find(|pattern| line.contains(pattern.as_str())) {
                    pattern.get_or_insert_with(|| found.clone());
                    hits.push(line.trim_end().to_owned());
                }
            }
        }
        match pattern {
            Some(pattern) => self.hit(pattern, hits, now, breaker),
            None => Vec::new(),
        }
    }

    fn hit(&mut self, pattern: String, lines: Vec<String>, now: Timestamp, breaker: &mut Breaker) -> Vec<Told> {
        let count = lines.len() as u64;
        if self.told_at.is_some_and(|at| now.0 - at.0 < WINDOW_MS) {
            self.dropped += count;
            if !self.is_struck {
                self.is_struck = true;
                self.strikes += 1;
            }
            if self.strikes < STRIKES {
                return Vec::new();
            }
            self.patterns.clear();
            let dropped = self.dropped;
            return vec![Told::Changed {
                change: WatchChange::Disabled,
                dropped,
            }];
        }
        if !self.is_struck {
            self.strikes = 0;
        }
        (self.told_at, self.is_struck) = (Some(now), false);
        let (mut told, is_open) = breaker.pass(now, count);
        if is_open {
            let dropped = std::mem::take(&mut self.dropped);
            told.push(Told::Matched(Matched {
                pattern,
                lines: shown(&lines),
                dropped,
            }));
        }
        told
    }
}

fn shown(lines: &[String]) -> Vec<String> {
    let mut room = MAX_CHARS;
    let mut kept = Vec::new();
    for line in lines.iter().take(MAX_LINES) {
        let line = first_chars(line, room);
        room -= line.chars().count();
        kept.push(line.to_owned());
        if room == 0 {
            break;
        }
    }
    kept
}

/// Keeps a session's processes from telling more than somebody can take in.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// When something was told lately.
    recent: Vec<Timestamp>,
    silent_until: Option<Timestamp>,
    dropped: u64,
}

impl Breaker {
    /// Whether so many lines may be told, and what is to be said of silence.
    fn pass(&mut self, now: Timestamp, lines: u64) -> (Vec<Told>, bool) {
        let mut told = Vec::new();
        if let Some(until) = self.silent_until {
            if now.0 < until.0 {
                self.dropped += lines;
                return (told, false);
            }
            self.silent_until = None;
            self.recent.clear();
            let dropped = std::mem::take(&mut self.dropped);
            told.push(Told::Changed {
                change: WatchChange::Released,
                dropped,
            });
        }
        self.recent.retain(|at| now.0 - at.0 < BURST_MS);
        if self.recent.len() < BURST {
            self.recent.push(now);
            return (told, true);
        }
        self.silent_until = Some(Timestamp(now.0 + SILENCE_MS));
        self.dropped = lines;
        told.push(Told::Changed {
            change: WatchChange::Tripped,
            dropped: lines,
        });
        (told, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        Watch::new(vec!["ERROR".to_owned(), "ready".to_owned()])
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    fn matched(told: &[Told]) -> Vec<(&str, usize, u64)> {
        let each = told.iter().filter_map(|told| match told {
            Told::Matched(matched) => Some((matched.pattern.as_str(), matched.lines.len(), matched.dropped)),
            Told::Changed { .. } => None,
        });
        each.collect()
    }

    #[test]
    fn a_line_is_told_when_it_is_whole_and_once_in_a_window() {
        let (mut watch, mut breaker) = (watch(), Breaker::default());
        assert!(watch.take("all rea", at(0), &mut breaker).is_empty());
        let told = watch.take("dy\nERROR 1\nquiet\n", at(0), &mut breaker);
        assert_eq!(matched(&told), [("ready", 2, 0)]);
        assert!(watch.take("ERROR 2\nERROR 3\n", at(14), &mut breaker).is_empty());
        assert_eq!(
            matched(&watch.take("ERROR 4\n", at(15), &mut breaker)),
            [("ERROR", 1, 2)]
        );
    }

    #[test]
    fn three_windows_with_dropped_lines_end_the_watch() {
        let (mut watch, mut breaker) = (watch(), Breaker::default());
        for window in 0..3 {
            assert_eq!(watch.take("ERROR\n", at(window * 15), &mut breaker).len(), 1);
            let told = watch.take("ERROR\nERROR\n", at(window * 15 + 1), &mut breaker);
            match window {
                2 => assert!(matches!(
                    told[..],
                    [Told::Changed {
                        change: WatchChange::Disabled,
                        dropped: 2
                    }]
                )),
                _ => assert!(told.is_empty()),
            }
        }
        assert!(watch.is_over() && watch.take("ERROR\n", at(100), &mut breaker).is_empty());
    }

    #[test]
    fn a_quiet_window_forgives() {
        let (mut watch, mut breaker) = (watch(), Breaker::default());
        for window in 0..6 {
            watch.take("ERROR\n", at(window * 15), &mut breaker);
            if window % 2 == 0 {
                watch.take("ERROR\n", at(window * 15 + 1), &mut breaker);
            }
        }
        assert!(!watch.is_over());
    }

    #[test]
    fn a_session_that_chatters_is_silenced_and_heard_again() {
        let mut breaker = Breaker::default();
        let mut tell = |at_s| watch().take("ready\n", at(at_s), &mut breaker);
        for _ in 0..15 {
            assert_eq!(matched(&tell(0)).len(), 1);
        }
        assert!(matches!(
            tell(1)[..],
            [Told::Changed {
                change: WatchChange::Tripped,
                dropped: 1
            }]
        ));
        assert!(tell(30).is_empty());
        let told = tell(31);
        assert!(
            matches!(
                told[0],
                Told::Changed {
                    change: WatchChange::Released,
                    dropped: 2
                }
            ),
            "{told:?}"
        );
        assert_eq!(matched(&told).len(), 1);
    }

    #[test]
    fn what_is_told_is_short() {
        let (mut watch, mut breaker) = (watch(), Breaker::default());
        let told = watch.take(&"ERROR\n".repeat(100), at(0), &mut breaker);
        assert_eq!(matched(&told), [("ERROR", 20, 0)]);
        let told = shown(&["x".repeat(5_000), "y".to_owned()]);
        assert_eq!(told.iter().map(String::len).collect::<Vec<_>>(), [2_000]);
    }
}
