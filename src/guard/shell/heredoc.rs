//! Here-documents: found on one line, read from the next.

use std::cell::OnceCell;
use std::rc::Rc;

use super::ast::{Piece, Word};
use super::cursor::{Parser, Step};
use crate::guard::Span;

pub(super) struct Pending {
    pub(super) delimiter: String,
    pub(super) literal: bool,
    pub(super) strip_tabs: bool,
    pub(super) body: Rc<OnceCell<Word>>,
}

impl Parser<'_> {
    pub(super) fn read_heredocs(&mut self) -> Step<()> {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            let (body_end, next) = self.find_delimiter(&pending);
            let word = if pending.literal || !self.slice(start, body_end).contains(['$', '`', '\\']) {
                let text = self.slice(start, body_end).to_owned();
                Word {
                    pieces: vec![Piece::Text { text, quoted: true }],
                    span: Span { start, end: body_end },
                }
            } else {
                let outer = std::mem::replace(&mut self.end, body_end);
                let word = self.deeper(Self::expanding_text);
                self.end = outer;
                word?
            };
            self.at = next;
            // A body is read once: the cell is empty before this line.
            let _ = pending.body.set(word);
        }
        Ok(())
    }

    /// At the end of the text bash takes what is there as the body.
    pub(super) fn close_heredocs(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let _ = pending.body.set(Word::default());
        }
    }

    fn find_delimiter(&self, pending: &Pending) -> (usize, usize) {
        let mut at = self.at;
        while at < self.end {
            let line_end = self
                .slice(at, self.end)
                .find('\n')
                .map_or(self.end, |offset| at + offset);
            let line = self.slice(at, line_end);
            let line = if pending.strip_tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            let next = (line_end + 1).min(self.end);
            if line == pending.delimiter {
                return (at, next);
            }
            at = next;
        }
        (self.end, self.end)
    }
}
