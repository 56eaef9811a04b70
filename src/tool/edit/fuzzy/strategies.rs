//! The nine ways of looking for a passage, in the order in which they are tried.
//!
//! Each gives the ranges that it found, by their beginning. Ways that look line
//! by line may give ranges that overlap: then it is not certain which is meant.

use std::collections::HashMap;
use std::ops::Range;

use super::folded::Folded;
use crate::base::similarity;

/// How a passage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Exact,
    LineTrimmed,
    WhitespaceNormalized,
    IndentationFlexible,
    EscapeNormalized,
    TrimmedBoundary,
    UnicodeNormalized,
    BlockAnchor,
    ContextAware,
}

/// Of one candidate between its anchors, and of several (the original's figures).
const ANCHORED_ALONE: f64 = 0.5;
const ANCHORED_AMONG: f64 = 0.7;
/// A line that counts as the same, and one that may still be another form of it.
/// The original asks nothing of the other half of the lines, and replaces what
/// was never meant.
const ALIKE: f64 = 0.8;
const RELATED: f64 = 0.5;
/// Products of lengths that are compared at most: a second of work or so.
const COMPARED_AT_ONCE: usize = 25_000_000;
const COMPARED_IN_ALL: usize = 100_000_000;

type Matches = Vec<Range<usize>>;

impl Strategy {
    pub const ALL: [Self; 9] = [
        Self::Exact,
        Self::LineTrimmed,
        Self::WhitespaceNormalized,
        Self::IndentationFlexible,
        Self::EscapeNormalized,
        Self::TrimmedBoundary,
        Self::UnicodeNormalized,
        Self::BlockAnchor,
        Self::ContextAware,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineTrimmed => "line_trimmed",
            Self::WhitespaceNormalized => "whitespace_normalized",
            Self::IndentationFlexible => "indentation_flexible",
            Self::EscapeNormalized => "escape_normalized",
            Self::TrimmedBoundary => "trimmed_boundary",
            Self::UnicodeNormalized => "unicode_normalized",
            Self::BlockAnchor => "block_anchor",
            Self::ContextAware => "context_aware",
        }
    }

    pub(super) fn find(self, content: &str, pattern: &str) -> Matches {
        match self {
            Self::Exact => exact(content, pattern),
            Self::LineTrimmed => by_lines(content, pattern, str::trim),
            Self::WhitespaceNormalized => whitespace_normalized(content, pattern),
            Self::IndentationFlexible => by_lines(content, pattern, str::trim_start),
            Self::EscapeNormalized => match unescaped(pattern) {
                Some(plain) => exact(content, &plain),
                None => Vec::new(),
            },
            Self::TrimmedBoundary => trimmed_boundary(content, pattern),
            Self::UnicodeNormalized => unicode_normalized(content, pattern),
            Self::BlockAnchor => block_anchor(content, pattern),
            Self::ContextAware => context_aware(content, pattern),
        }
    }
}

/// The pattern with its literal escapes as what they stand for, if it has any.
pub(super) fn unescaped(pattern: &str) -> Option<String> {
    let plain = pattern.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r");
    (plain != pattern).then_some(plain)
}

fn exact(content: &str, pattern: &str) -> Matches {
    let starts = content.match_indices(pattern);
    starts.map(|(start, found)| start..start + found.len()).collect()
}

/// The lines of a text, and where each begins.
pub(super) struct Lines<'t> {
    pub(super) lines: Vec<&'t str>,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let lines: Vec<&str> = text.split('\n').collect();
        let begin = |next: &mut usize, line: &&str| {
            let start = *next;
            *next += line.len() + 1;
            Some(start)
        };
        let starts = lines.iter().scan(0, begin).collect();
        Self { lines, starts }
    }

    /// The text of `count` lines from the one at `first` on, without the last
    /// line end.
    pub(super) fn range(&self, first: usize, count: usize) -> Option<Range<usize>> {
        let last = first + count.checked_sub(1)?;
        Some(*self.starts.get(first)?..self.starts.get(last)? + self.lines.get(last)?.len())
    }

    /// The windows of so many lines that `fits`.
    fn windows(&self, count: usize, mut fits: impl FnMut(&[&'t str]) -> bool) -> Matches {
        let fitting = self.lines.windows(count).enumerate().filter(|(_, window)| fits(window));
        fitting.filter_map(|(first, _)| self.range(first, count)).collect()
    }
}

fn by_lines(content: &str, pattern: &str, form: fn(&str) -> &str) -> Matches {
    let wanted: Vec<&str> = pattern.split('\n').map(form).collect();
    // Blank lines alone say nothing about where.
    if wanted.iter().all(|line| line.is_empty()) {
        return Vec::new();
    }
    Lines::of(content).windows(wanted.len(), |window| {
        window.iter().zip(&wanted).all(|(line, wanted)| form(line) == *wanted)
    })
}

fn whitespace_normalized(content: &str, pattern: &str) -> Matches {
    let folded = Folded::spaces(content);
    let wanted = Folded::spaces(pattern).text;
    if wanted.trim().is_empty() {
        return Vec::new();
    }
    let found = exact(&folded.text, &wanted);
    found.iter().filter_map(|range| folded.original(range)).collect()
}

/// Only the first and the last line are trimmed.
fn trimmed_boundary(content: &str, pattern: &str) -> Matches {
    let wanted: Vec<&str> = pattern.split('\n').collect();
    let last = wanted.len() - 1;
    let form = |(place, line): (usize, &str)| {
        let line = if place == 0 || place == last { line.trim() } else { line };
        line.to_owned()
    };
    let wanted: Vec<String> = wanted.into_iter().enumerate().map(form).collect();
    if wanted.iter().all(String::is_empty) {
        return Vec::new();
    }
    Lines::of(content).windows(wanted.len(), |window| {
        let lines = window.iter().enumerate();
        lines
            .zip(&wanted)
            .all(|((place, line), wanted)| form((place, line)) == *wanted)
    })
}

fn unicode_normalized(content: &str, pattern: &str) -> Matches {
    let folded = Folded::typography(content);
    let wanted = Folded::typography(pattern).text;
    if folded.text == content && wanted == pattern {
        return Vec::new();
    }
    let mut found = exact(&folded.text, &wanted);
    if found.is_empty() {
        found = by_lines(&folded.text, &wanted, str::trim);
    }
    found.iter().filter_map(|range| folded.original(range)).collect()
}

/// The first and the last line are there, and what is between them is like it.
fn block_anchor(content: &str, pattern: &str) -> Matches {
    let pattern = Folded::typography(pattern).text;
    let wanted: Vec<&str> = pattern.split('\n').collect();
    let [first, between @ .., last] = wanted.as_slice() else {
        return Vec::new();
    };
    let (first, last, between) = (first.trim(), last.trim(), between.join("\n"));
    if first.is_empty() && last.is_empty() {
        return Vec::new();
    }
    let folded = Folded::typography(content);
    let lines = Lines::of(&folded.text);
    let candidates = lines.windows(wanted.len(), |window| {
        window.first().is_some_and(|line| line.trim() == first) && window.last().is_some_and(|line| line.trim() == last)
    });
    let needed = if candidates.len() == 1 {
        ANCHORED_ALONE
    } else {
        ANCHORED_AMONG
    };
    let is_like = |range: &Range<usize>| {
        let text = folded.text.get(range.clone()).unwrap_or_default();
        let inner: Vec<&str> = text.split('\n').collect();
        match inner.as_slice() {
            [_, inner @ .., _] if !inner.is_empty() => alike(&inner.join("\n"), &between, needed),
            _ => true,
        }
    };
    let whole = Lines::of(content);
    let place = |range: &Range<usize>| {
        folded
            .text
            .get(..range.start)
            .map(|before| before.matches('\n').count())
    };
    let matching = candidates.iter().filter(|range| is_like(range));
    matching
        .filter_map(|range| whole.range(place(range)?, wanted.len()))
        .collect()
}

fn alike(a: &str, b: &str, needed: f64) -> bool {
    a == b || (a.len().saturating_mul(b.len()) <= COMPARED_AT_ONCE && needed <= similarity::ratio(a, b))
}

/// As many lines, of which half at least are the same but for details and none
/// is a stranger.
fn context_aware(content: &str, pattern: &str) -> Matches {
    let wanted: Vec<&str> = pattern.split('\n').map(str::trim).collect();
    if wanted.iter().all(|line| line.is_empty()) {
        return Vec::new();
    }
    let mut compared = Compared::default();
    let found = Lines::of(content).windows(wanted.len(), |window| {
        let mut alike = 0;
        for (wanted, line) in wanted.iter().zip(window) {
            let share = compared.share(wanted, line.trim());
            if share < RELATED {
                return false;
            }
            alike += usize::from(ALIKE <= share);
        }
        wanted.len() <= 2 * alike
    });
    if compared.is_exhausted() { Vec::new() } else { found }
}

/// Pairs of lines that were compared, and how much that took.
#[derive(Default)]
struct Compared<'t> {
    shares: HashMap<(&'t str, &'t str), f64>,
    spent: usize,
}

impl<'t> Compared<'t> {
    fn is_exhausted(&self) -> bool {
        COMPARED_IN_ALL < self.spent
    }

    fn share(&mut self, a: &'t str, b: &'t str) -> f64 {
        if a == b {
            return 1.0;
        }
        let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
        // No text of that length could share enough. Bytes, so only a hint: a
        // character has four at most.
        if self.is_exhausted() || 4 * 2 * short < long {
            self.spent += 1;
            return 0.0;
        }
        if let Some(share) = self.shares.get(&(a, b)) {
            self.spent += 1;
            return *share;
        }
        self.spent = self.spent.saturating_add(short.saturating_mul(long)).saturating_add(1);
        if self.is_exhausted() {
            return 0.0;
        }
        let share = similarity::ratio(a, b);
        self.shares.insert((a, b), share);
        share
    }
}
