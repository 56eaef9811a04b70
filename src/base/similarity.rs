//! How alike two texts are, after Ratcliff and Obershelp: twice the number of
//! characters in matching blocks, over the length of both texts.
//!
//! Follows the rules of Python's difflib to the letter, its "popular character"
//! heuristic for long texts included, because recorded answers depend on them.

use std::collections::HashMap;

/// From here on difflib ignores characters that make up over 1 % of `b`.
const POPULARITY_FROM: usize = 200;

/// Similarity from 0 to 1. Not symmetric: `b` is the text that is indexed.
pub fn ratio(a: &str, b: &str) -> f64 {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let total = a.len() + b.len();
    if total == 0 {
        return 1.0;
    }
    2.0 * matching(&a, &b) as f64 / total as f64
}

/// One of `known` that is most like `word`, if its similarity is at least
/// `cutoff`; of equals the greatest in text order.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, cutoff: f64) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (ratio(candidate, word), candidate))
        .filter(|(share, _)| cutoff <= *share)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)))
        .map(|(_, candidate)| candidate)
}

/// Characters in matching blocks.
fn matching(a: &[char], b: &[char]) -> usize {
    blocks(a, b).iter().map(|block| block.len).sum()
}

/// The matching blocks, in no order: the longest common one, then the same on
/// either side of it. An explicit stack, since texts come from outside.
pub fn blocks(a: &[char], b: &[char]) -> Vec<Block> {
    let places = places(b);
    let mut open = vec![(0, a.len(), 0, b.len())];
    let mut found = Vec::new();
    while let Some((a_from, a_to, b_from, b_to)) = open.pop() {
        let block = longest_block(a, b, &places, (a_from, a_to, b_from, b_to));
        if block.len == 0 {
            continue;
        }
        found.push(block);
        open.push((a_from, block.a, b_from, block.b));
        open.push((block.a + block.len, a_to, block.b + block.len, b_to));
    }
    found
}

/// Where each character of `b` stands, without the too popular ones.
fn places(b: &[char]) -> HashMap<char, Vec<usize>> {
    let mut places: HashMap<char, Vec<usize>> = HashMap::new();
    for (place, character) in b.iter().enumerate() {
        places.entry(*character).or_default().push(place);
    }
    if POPULARITY_FROM <= b.len() {
        let limit = b.len() / 100 + 1;
        places.retain(|_, at| at.len() <= limit);
    }
    places
}

/// A run of characters that stands in both texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins in the one and in the other.
    pub a: usize,
    pub b: usize,
    pub len: usize,
}

/// The longest block within the window, the earliest in `a`, then in `b`.
fn longest_block(
    a: &[char],
    b: &[char],
    places: &HashMap<char, Vec<usize>>,
    (a_from, a_to, b_from, b_to): (usize, usize, usize, usize),
) -> Block {
    let mut best = Block {
        a: a_from,
        b: b_from,
        len: 0,
    };
    // Length of the block that ends at (previous row, column).
    let mut ending: HashMap<usize, usize> = HashMap::new();
    for (row, character) in a.iter().enumerate().take(a_to).skip(a_from) {
        let mut row_ending = HashMap::new();
        let columns = places.get(character).map_or(&[][..], Vec::as_slice);
        for &column in columns.iter().filter(|column| (b_from..b_to).contains(*column)) {
            let before = column
                .checked_sub(1)
                .and_then(|left| ending.get(&left))
                .copied()
                .unwrap_or(0);
            let len = before + 1;
            row_ending.insert(column, len);
            if best.len < len {
                best = Block {
                    a: row + 1 - len,
                    b: column + 1 - len,
                    len,
                };
            }
        }
        ending = row_ending;
    }
    // Popular characters start no block, but they extend one.
    while a_from < best.a && b_from < best.b && a.get(best.a - 1) == b.get(best.b - 1) {
        best = Block {
            a: best.a - 1,
            b: best.b - 1,
            len: best.len + 1,
        };
    }
    while best.a + best.len < a_to && best.b + best.len < b_to && a.get(best.a + best.len) == b.get(best.b + best.len) {
        best.len += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures computed with Python's `difflib.SequenceMatcher(None, a, b).ratio()`.
    #[test]
    fn agrees_with_difflib() {
        let long = "abc ".repeat(60);
        let longer = format!("{long}xyz");
        for (a, b, expected) in [
            ("", "", 1.0),
            ("", "x", 0.0),
            ("abcd", "bcde", 0.75),
            ("private String x", "private Integer x", 0.727_272_727_272_727_3),
            ("todo", "tool", 0.75),
            ("tide", "diet", 0.25),
            ("diet", "tide", 0.5),
            ("한국어 파일", "한국 파일", 0.909_090_909_090_909_1),
            // every letter is popular: the block grows from the start of the window
            (&long, &longer, 0.993_788_819_875_776_4),
        ] {
            assert!((ratio(a, b) - expected).abs() < 1e-12, "{a:?} {b:?}: {}", ratio(a, b));
        }
    }

    #[test]
    fn the_closest_name_needs_the_cutoff() {
        let known = ["read_file", "write_file", "todo"];
        assert_eq!(closest("wite_file", known, 0.7), Some("write_file"));
        assert_eq!(closest("zzz", known, 0.7), None);
    }
}
