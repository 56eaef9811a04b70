//! Output of a command, held to a bound while it streams.
//!
//! The beginning tells what ran and the end tells how it ended, so both are
//! kept and the middle goes. Memory stays within a small multiple of the bound,
//! however much a command prints.

use crate::base::text::{first_chars, last_chars};

/// What the model is shown of a command's output (the original's limit).
pub const TERMINAL_MAX_CHARS: usize = 50_000;

/// A collector that keeps the first 40 % and the last 60 % of its bound.
#[derive(Clone, Debug)]
pub struct Bounded {
    head: String,
    head_left: usize,
    tail: String,
    tail_max: usize,
    total: usize,
}

impl Bounded {
    pub fn new(max_chars: usize) -> Self {
        let head = max_chars * 2 / 5;
        Self {
            head: String::new(),
            head_left: head,
            tail: String::new(),
            tail_max: max_chars - head,
            total: 0,
        }
    }

    /// Takes the next piece of output.
    pub fn push(&mut self, piece: &str) {
        self.total += piece.chars().count();
        let start = first_chars(piece, self.head_left);
        self.head_left -= start.chars().count();
        self.head.push_str(start);
        let rest = piece.get(start.len()..).unwrap_or_default();
        self.tail.push_str(last_chars(rest, self.tail_max));
        // A character has at most four bytes: twice the tail, cut rarely.
        if self.tail_max * 8 < self.tail.len() {
            self.tail = last_chars(&self.tail, self.tail_max).to_owned();
        }
    }

    /// Characters seen so far, kept or not.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The text, with a notice where something was left out.
    pub fn finish(self) -> String {
        let total = self.total;
        let (head, tail, omitted) = self.parts();
        if omitted == 0 {
            return format!("{head}{tail}");
        }
        format!("{head}{}{tail}", notice(omitted, total))
    }

    /// The beginning, the end, and how many characters are missing between.
    pub fn parts(self) -> (String, String, usize) {
        let tail = last_chars(&self.tail, self.tail_max).to_owned();
        let kept = self.head.chars().count() + tail.chars().count();
        (self.head, tail, self.total - kept)
    }
}

/// What stands in the place of what was left out.
pub fn notice(omitted: usize, total: usize) -> String {
    let (omitted, total) = (grouped(omitted), grouped(total));
    format!("\n\n[... {omitted} of {total} characters left out ...]\n\n")
}

/// The text within the bound, or its head and tail.
pub fn bounded(text: &str, max_chars: usize) -> String {
    let mut output = Bounded::new(max_chars);
    output.push(text);
    output.finish()
}

/// A number with separators between its thousands.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if 0 < place && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_as_it_is() {
        for length in [0, 4, 5, 9, 10] {
            let text = "0123456789".get(..length).unwrap();
            assert_eq!(bounded(text, 10), text);
        }
    }

    #[test]
    fn the_middle_goes_and_is_counted() {
        let text = format!("{}{}{}", "a".repeat(4), "日".repeat(1234), "z".repeat(6));
        assert_eq!(
            bounded(&text, 10),
            "aaaa\n\n[... 1,234 of 1,244 characters left out ...]\n\nzzzzzz"
        );
    }

    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives() {
        let text: String = ('a'..='z').chain(['日', '本']).cycle().take(997).collect();
        let characters: Vec<char> = text.chars().collect();
        for max in [0, 1, 3, 50, 996, 997, 2000] {
            for size in [1, 7, 100] {
                let mut output = Bounded::new(max);
                for piece in characters.chunks(size) {
                    output.push(&piece.iter().collect::<String>());
                    assert!(output.head.len() + output.tail.len() <= 4 * max + 8 * max + 400);
                }
                assert_eq!(output.finish(), bounded(&text, max), "{max} {size}");
            }
        }
    }

    #[test]
    fn thousands_are_grouped() {
        let got = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(got, ["0", "999", "1,000", "1,234,567"]);
    }
}
