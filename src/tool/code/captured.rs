//! What a program prints, held to a bound of bytes: the beginning and the end
//! stay, the middle goes and is counted.

use std::collections::VecDeque;

use crate::tool::terminal_text;

/// Kept while it streams: twice what is shown, so that no half of a secret is
/// left at a cut.
const KEPT: usize = 2;

#[derive(Debug)]
pub(super) struct Captured {
    max: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: usize,
}

/// What is shown of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    /// Bytes of the text, those that came, those that are missing.
    pub(super) captured: usize,
    pub(super) total: usize,
    pub(super) omitted: usize,
}

impl Captured {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Bytes of the beginning; 40 of 100 (Hermes).
    fn head_bytes(max: usize) -> usize {
        max * 2 / 5
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len();
        let room = Self::head_bytes(KEPT * self.max) - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let most = KEPT * self.max - Self::head_bytes(KEPT * self.max);
        let over = self.tail.len().saturating_sub(most);
        drop(self.tail.drain(..over));
    }

    /// Plain, without secrets, within the bound.
    pub(super) fn shown(self) -> Shown {
        let Self { max, head, tail, total } = self;
        let tail: Vec<u8> = tail.into();
        let whole = head.len() + tail.len() == total;
        let plain = |bytes: &[u8]| terminal_text(&String::from_utf8_lossy(bytes), "");
        let (head, tail) = match whole {
            true => {
                let text = plain(&[head, tail].concat());
                if text.len() <= max {
                    return Shown {
                        captured: total,
                        omitted: 0,
                        total,
                        text,
                    };
                }
                (text.clone(), text)
            }
            false => (plain(&head), plain(&tail)),
        };
        let from_start = Self::head_bytes(max);
        let head = start_of(&head, from_start);
        let tail = end_of(&tail, max - from_start);
        let captured = head.len() + tail.len();
        let omitted = total.saturating_sub(captured);
        Shown {
            text: format!("{head}\n\n[... {omitted} of {total} bytes left out ...]\n\n{tail}"),
            captured,
            total,
            omitted,
        }
    }
}

/// At most so many bytes from the beginning, whole characters only.
fn start_of(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

fn end_of(text: &str, bytes: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes))..)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]], max: usize) -> Shown {
        let mut captured = Captured::new(max);
        for piece in pieces {
            captured.push(piece);
        }
        captured.shown()
    }

    #[test]
    fn what_fits_is_shown_whole() {
        let shown = shown(&[b"hello ", b"world\n"], 100);
        assert_eq!(
            (shown.text.as_str(), shown.captured, shown.omitted),
            ("hello world\n", 12, 0)
        );
    }

    #[test]
    fn of_more_the_beginning_and_the_end_stay_in_bounded_memory() {
        let mut captured = Captured::new(100);
        for number in 0..100_000 {
            captured.push(format!("{number:06}").as_bytes());
            assert!(captured.head.len() + captured.tail.len() <= 200);
        }
        let shown = captured.shown();
        assert!(shown.text.starts_with("000000000001"), "{}", shown.text);
        assert!(shown.text.ends_with("099999"), "{}", shown.text);
        assert_eq!((shown.total, shown.captured, shown.omitted), (600_000, 100, 599_900));
    }

    #[test]
    fn characters_are_not_cut_in_half() {
        let text = "日".repeat(100);
        let shown = shown(&[text.as_bytes()], 100);
        assert!(!shown.text.contains('\u{fffd}'), "{}", shown.text);
        assert_eq!((shown.total, shown.captured), (300, 39 + 60));
    }
}
