//! The end of a process's output, whatever it printed before.

/// Characters kept (the original's figure).
const KEPT_CHARS: usize = 200_000;

#[derive(Debug, Default)]
pub(super) struct Rolling {
    text: String,
    chars: usize,
    /// Lines that fell out at the front.
    dropped_lines: usize,
}

impl Rolling {
    pub(super) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.chars += piece.chars().count();
        // Cut rarely, so that a long output costs what it prints.
        if 2 * KEPT_CHARS < self.chars {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let surplus = self.chars.saturating_sub(KEPT_CHARS);
        let at = self
            .text
            .char_indices()
            .nth(surplus)
            .map_or(self.text.len(), |(at, _)| at);
        let gone = self.text.drain(..at);
        self.dropped_lines += gone.as_str().matches('\n').count();
        drop(gone);
        self.chars -= surplus;
    }

    /// The text that is kept, and how many lines came before it.
    pub(super) fn read(&mut self) -> (String, usize) {
        if KEPT_CHARS < self.chars {
            self.cut();
        }
        (self.text.clone(), self.dropped_lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_lines_before_it_are_counted() {
        let mut rolling = Rolling::default();
        for number in 0..100_000 {
            rolling.push(&format!("line {number:06}\n"));
            assert!(rolling.text.len() <= 2 * KEPT_CHARS + 12);
        }
        let (text, dropped) = rolling.read();
        assert_eq!(text.chars().count(), KEPT_CHARS);
        assert!(text.ends_with("line 099999\n"));
        assert_eq!(dropped + text.matches('\n').count(), 100_000);
    }
}
