//! Making the new text fit where it goes: real control characters, the file's
//! indentation, the file's typography.

use super::folded::Folded;
use super::strategies::{Strategy, unescaped};
use crate::base::similarity;

/// Products of lengths that are compared at most.
const COMPARED: usize = 25_000_000;

/// The quote before which both strings have a backslash that the file has not.
pub(super) fn escape_drift(regions: &[&str], old: &str, new: &str) -> Option<char> {
    ['\'', '"'].into_iter().find(|quote| {
        let escaped = format!("\\{quote}");
        let is_there = regions.iter().any(|region| region.contains(&escaped));
        old.contains(&escaped) && new.contains(&escaped) && !is_there
    })
}

/// Tabs and carriage returns that the model wrote as escapes become real where
/// the file has real ones; unless either text shows that it knows both.
pub(super) fn real_controls(new: &str, regions: &[&str]) -> String {
    let mut text = new.to_owned();
    for (escape, real) in [("\\t", '\t'), ("\\r", '\r')] {
        let has_real = regions.iter().any(|region| region.contains(real));
        let knows_both = new.contains(real) || regions.iter().any(|region| region.contains(escape));
        if has_real && !knows_both {
            text = text.replace(escape, &real.to_string());
        }
    }
    text
}

/// The new text as it belongs in the place of `region`.
pub(super) fn fitted(strategy: Strategy, region: &str, old: &str, new: &str) -> String {
    if strategy == Strategy::Exact {
        return new.to_owned();
    }
    let plain = unescaped(old).filter(|_| strategy == Strategy::EscapeNormalized);
    let text = indented(region, plain.as_deref().unwrap_or(old), new);
    if strategy == Strategy::UnicodeNormalized {
        return with_typography(region, &text);
    }
    text
}

/// Moved by the difference between how `old` and the file indent the passage.
fn indented(region: &str, old: &str, new: &str) -> String {
    let (Some(written), Some(found)) = (first_indent(old), first_indent(region)) else {
        return new.to_owned();
    };
    if written == found {
        return new.to_owned();
    }
    let lines = new.split('\n').map(|line| {
        if line.trim().is_empty() {
            return line.to_owned();
        }
        match line.strip_prefix(written) {
            Some(rest) => format!("{found}{rest}"),
            // Less indented than what it replaces: it has no place of its own.
            None => format!("{found}{}", line.trim_start_matches(is_blank)),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The blanks before the first line that has more than blanks.
fn first_indent(text: &str) -> Option<&str> {
    let line = text.split('\n').find(|line| !line.trim().is_empty())?;
    let rest = line.trim_start_matches(is_blank);
    line.get(..line.len() - rest.len())
}

fn is_blank(character: char) -> bool {
    character == ' ' || character == '\t'
}

/// What the edit leaves alone keeps the file's own characters.
fn with_typography(region: &str, new: &str) -> String {
    let folded = Folded::typography(region);
    let before: Vec<char> = folded.text.chars().collect();
    let after: Vec<char> = new.chars().collect();
    if COMPARED < before.len().saturating_mul(after.len()) {
        return new.to_owned();
    }
    let mut blocks = similarity::blocks(&before, &after);
    blocks.sort_by_key(|block| block.b);
    let offsets: Vec<usize> = folded
        .text
        .char_indices()
        .map(|(at, _)| at)
        .chain([folded.text.len()])
        .collect();
    let mut text = String::with_capacity(new.len());
    let mut done = 0;
    for block in blocks {
        text.extend(after.get(done..block.b).unwrap_or_default());
        let kept = after.get(block.b..block.b + block.len).unwrap_or_default();
        let originals = originals(region, &folded, &offsets, block);
        match originals {
            Some(original) => text.push_str(&original),
            None => text.extend(kept),
        }
        done = block.b + block.len;
    }
    text.extend(after.get(done..).unwrap_or_default());
    text
}

/// The file's characters for a block of the simpler form; characters of which
/// the block holds only a part stand as in the form.
fn originals(region: &str, folded: &Folded, offsets: &[usize], block: similarity::Block) -> Option<String> {
    let range = *offsets.get(block.a)?..*offsets.get(block.a + block.len)?;
    let mut text = String::new();
    let mut at = range.start;
    while at < range.end {
        let origin = folded.origin(at)?;
        let length = (at..range.end)
            .take_while(|next| folded.origin(*next).as_ref() == Some(&origin))
            .count();
        let whole = (0..folded.text.len()).skip(at.saturating_sub(3)).take(8);
        let whole = whole
            .filter(|near| folded.origin(*near).as_ref() == Some(&origin))
            .count();
        let source = if length == whole {
            region.get(origin)
        } else {
            folded.text.get(at..at + length)
        };
        text.push_str(source?);
        at += length;
    }
    Some(text)
}
