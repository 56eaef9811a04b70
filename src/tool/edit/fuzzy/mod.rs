//! Finding the passage that a model means and putting another in its place.
//!
//! Nine ways of looking, from the letter to the likely; the first that finds
//! anything decides. What is found twice is changed only when all are wanted.

mod fit;
mod folded;
mod near;
mod strategies;

pub use near::did_you_mean;

use std::ops::Range;

pub use strategies::Strategy;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    pub content: String,
    pub count: usize,
    pub strategy: Strategy,
}

/// Why nothing was changed; the text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReplaced {
    #[error("`old_string` is empty: it must hold the text to look for")]
    Empty,
    #[error("`old_string` and `new_string` are the same, so there is nothing to change")]
    Identical,
    #[error(
        "`old_string` stands there {0} times: add lines around it until it is found once, or set `replace_all` to \
         change them all"
    )]
    Ambiguous(usize),
    #[error("`old_string` was not found")]
    NotFound,
    #[error(
        "`old_string` and `new_string` hold `\\{0}`, but the file has a plain `{0}` there: the backslash belongs to the \
         way the call was written, not to the file. Send both again with `{0}`, so that no backslash gets into the file"
    )]
    EscapeDrift(char),
}

/// Replaces `old` in `content`.
pub fn replace(content: &str, old: &str, new: &str, all: bool) -> Result<Replaced, NotReplaced> {
    if old.is_empty() {
        return Err(NotReplaced::Empty);
    }
    if old == new {
        return Err(NotReplaced::Identical);
    }
    let found = Strategy::ALL.iter().find_map(|strategy| {
        let matches = strategy.find(content, old);
        (!matches.is_empty()).then_some((*strategy, matches))
    });
    let (strategy, matches) = found.ok_or(NotReplaced::NotFound)?;
    if 1 < matches.len() && !all {
        return Err(NotReplaced::Ambiguous(matches.len()));
    }
    let matches = apart(matches);
    let regions: Vec<&str> = matches.iter().filter_map(|range| content.get(range.clone())).collect();
    if strategy != Strategy::Exact
        && let Some(quote) = fit::escape_drift(&regions, old, new)
    {
        return Err(NotReplaced::EscapeDrift(quote));
    }
    let new = fit::real_controls(new, &regions);
    let mut changed = String::with_capacity(content.len() + new.len());
    let mut from = 0;
    for (range, region) in matches.iter().zip(&regions) {
        changed.push_str(content.get(from..range.start).unwrap_or_default());
        changed.push_str(&fit::fitted(strategy, region, old, &new));
        from = range.end;
    }
    changed.push_str(content.get(from..).unwrap_or_default());
    Ok(Replaced {
        content: changed,
        count: matches.len(),
        strategy,
    })
}

/// Those that do not reach into the one before.
fn apart(matches: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut kept: Vec<Range<usize>> = Vec::with_capacity(matches.len());
    for range in matches {
        if kept.last().is_none_or(|last| last.end <= range.start) {
            kept.push(range);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
