//! How much of a result the model is shown, and what stands for the rest.
//!
//! Pure arithmetic and text; storing the whole is the caller's. Lengths count
//! characters. The bounds shrink with the model's context window, so that one
//! batch of results cannot fill it.

use sha2::{Digest, Sha256};

use super::output::grouped;
use crate::base::text::{first_chars, floor_boundary};

/// Marks a result whose whole text is stored; never stored again.
pub const STORED_TAG: &str = "<persisted-output>";
/// Shown of a stored result (the original's figure, as those below).
pub const PREVIEW_CHARS: usize = 1_500;
const PER_RESULT: usize = 100_000;
const PER_TURN: usize = 200_000;
const PER_RESULT_FLOOR: usize = 8_000;
const PER_TURN_FLOOR: usize = 16_000;
/// What the text around a preview takes; storing less than that gains nothing.
const FRAME_CHARS: usize = 500;
const NAME_CHARS: usize = 120;

/// What a tool says about the length of its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultLimit {
    #[default]
    Default,
    /// Stored beyond this many characters, or beyond the default if lower.
    Chars(usize),
    /// Never stored: the tool bounds itself.
    Unlimited,
}

/// Bounds for one result and for all results of one batch of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub per_result: usize,
    pub per_turn: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            per_result: PER_RESULT,
            per_turn: PER_TURN,
        }
    }
}

impl Budget {
    /// For a context window: 15 % of it for a result, 30 % for a batch, at
    /// about four characters a token. A window of none is an unknown one.
    pub fn for_window(tokens: usize) -> Self {
        if tokens == 0 {
            return Self::default();
        }
        Self {
            per_result: (tokens.saturating_mul(6) / 10).clamp(PER_RESULT_FLOOR, PER_RESULT),
            per_turn: (tokens.saturating_mul(12) / 10).clamp(PER_TURN_FLOOR, PER_TURN),
        }
    }

    /// A result longer than this is stored.
    pub fn threshold(&self, limit: ResultLimit) -> usize {
        match limit {
            ResultLimit::Default => self.per_result,
            ResultLimit::Chars(chars) => chars.min(self.per_result),
            ResultLimit::Unlimited => usize::MAX,
        }
    }

    /// Which results of a batch to store as well, so that their sum fits: the
    /// longest first.
    pub fn to_store(&self, results: &[Length]) -> Vec<bool> {
        let mut sum: usize = results.iter().map(|one| one.length).sum();
        let mut order: Vec<(usize, &Length)> = results.iter().enumerate().filter(|(_, one)| !one.is_stored).collect();
        order.sort_by_key(|(_, one)| std::cmp::Reverse(one.length));
        let mut chosen = vec![false; results.len()];
        for (place, one) in order {
            let shown = PREVIEW_CHARS + FRAME_CHARS;
            if sum <= self.per_turn || one.length <= shown {
                break;
            }
            sum -= one.length - shown;
            if let Some(choice) = chosen.get_mut(place) {
                *choice = true;
            }
        }
        chosen
    }
}

/// One result of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    pub length: usize,
    /// It is a preview already.
    pub is_stored: bool,
}

/// The first `max` characters, back to the end of a line if one ends in the
/// second half, and whether there is more.
pub fn preview(text: &str, max: usize) -> (&str, bool) {
    let start = first_chars(text, max);
    if start.len() == text.len() {
        return (text, false);
    }
    let last_line_end = start
        .char_indices()
        .enumerate()
        .filter(|(_, (_, character))| *character == '\n')
        .last();
    match last_line_end {
        Some((place, (at, _))) if max / 2 < place => (start.get(..=at).unwrap_or(start), true),
        _ => (start, true),
    }
}

/// A file name for the result of a call, whatever the call's id holds.
pub fn file_name(call_id: &str) -> String {
    let mut safe = String::with_capacity(call_id.len());
    for character in call_id.chars() {
        if character.is_ascii_alphanumeric() || "_.-".contains(character) {
            safe.push(character);
        } else if !safe.ends_with('\u{0}') {
            // Stands for a run of other characters.
            safe.push('\u{0}');
        }
    }
    let safe = safe.replace('\u{0}', "_");
    let safe = safe.trim_matches(['.', '_', '-']);
    let kept = safe.get(..floor_boundary(safe, NAME_CHARS)).unwrap_or(safe);
    let safe = kept.trim_end_matches(['.', '_', '-']);
    let name = if safe.is_empty() { "tool_result" } else { safe };
    if safe == call_id {
        return format!("{name}.txt");
    }
    let hash: String = Sha256::digest(call_id)
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{name}_{hash}.txt")
}

/// What the model reads in place of a result that was stored at `path`.
pub fn stored_text(text: &str, path: &str) -> String {
    let (shown, more) = preview(text, PREVIEW_CHARS);
    let chars = grouped(text.chars().count());
    let size = size(text.len());
    let dots = if more { "\n..." } else { "" };
    format!(
        "{STORED_TAG}\nThis result is too long to show whole ({chars} characters, {size}).\n\
         Full output saved to: {path}\n\
         Read the parts you need with read_file, using offset and limit.\n\n\
         Preview (first {} chars):\n{shown}{dots}\n</persisted-output>",
        shown.chars().count(),
    )
}

/// What the model reads when the result could not be stored.
pub fn unstored_text(text: &str) -> String {
    let (shown, _) = preview(text, PREVIEW_CHARS);
    let chars = grouped(text.chars().count());
    format!("{shown}\n\n[Cut: the result has {chars} characters and could not be stored; only its beginning is shown.]")
}

fn size(bytes: usize) -> String {
    const KB: usize = 1024;
    let (unit, name) = if bytes < KB * KB { (KB, "KB") } else { (KB * KB, "MB") };
    let tenths = bytes * 10 / unit;
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_may_ask_for_less_but_not_for_more() {
        let budget = Budget::for_window(32_000);
        assert_eq!(budget.threshold(ResultLimit::Chars(500)), 500);
        assert_eq!(budget.threshold(ResultLimit::Chars(100_000)), 19_200);
        assert_eq!(budget.threshold(ResultLimit::Unlimited), usize::MAX);
        assert_eq!(Budget::for_window(0).per_result, Budget::default().per_result);
    }

    #[test]
    fn a_name_that_was_cut_does_not_end_in_marks() {
        let name = file_name(&format!("{}..b", "a".repeat(118)));
        assert!(name.starts_with(&format!("{}_", "a".repeat(118))), "{name}");
    }

    #[test]
    fn the_replacement_tells_where_and_how_much() {
        let text = "a line of text\n".repeat(100_000);
        let shown = stored_text(&text, "/w/out.txt");
        assert!(shown.contains("1,500,000 characters, 1.4 MB"), "{shown}");
        assert!(shown.contains("Full output saved to: /w/out.txt\n"));
        assert!(shown.ends_with("...\n</persisted-output>"));
        assert!(shown.chars().count() < PREVIEW_CHARS + FRAME_CHARS);
    }
}
