//! What a model may have meant when its passage is nowhere in the file.

use super::strategies::Lines;
use crate::base::similarity;
use crate::base::text::first_chars;

/// The original's figures.
const SNIPPETS: usize = 3;
const AROUND: usize = 2;
const LIKE: f64 = 0.3;
/// Looked at in long files and long lines.
const LOOKED_AT_LINES: usize = 20_000;
const LOOKED_AT_CHARS: usize = 200;

/// The lines most like the first line of `old` that is not blank, each with
/// those around it, numbered; empty when none is like it.
pub fn did_you_mean(content: &str, old: &str) -> String {
    let Some(wanted) = old.split('\n').map(str::trim).find(|line| !line.is_empty()) else {
        return String::new();
    };
    let wanted = first_chars(wanted, LOOKED_AT_CHARS);
    let lines = Lines::of(content).lines;
    let mut scored: Vec<(f64, usize)> = lines
        .iter()
        .enumerate()
        .take(LOOKED_AT_LINES)
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(place, line)| {
            (
                similarity::ratio(wanted, first_chars(line.trim(), LOOKED_AT_CHARS)),
                place,
            )
        })
        .filter(|(share, _)| LIKE < *share)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut shown: Vec<usize> = Vec::new();
    for (_, place) in scored {
        // One snippet shows its neighbours too.
        if shown.iter().all(|other| AROUND < other.abs_diff(place)) {
            shown.push(place);
        }
        if shown.len() == SNIPPETS {
            break;
        }
    }
    let snippets = shown.iter().map(|place| snippet(&lines, *place));
    snippets.collect::<Vec<_>>().join("\n---\n")
}

fn snippet(lines: &[&str], place: usize) -> String {
    let first = place.saturating_sub(AROUND);
    let near = lines.iter().enumerate().skip(first).take(place + AROUND + 1 - first);
    let numbered = near.map(|(place, line)| format!("{}|{}", place + 1, first_chars(line, LOOKED_AT_CHARS)));
    numbered.collect::<Vec<_>>().join("\n")
}
