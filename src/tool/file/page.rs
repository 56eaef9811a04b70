//! A page of a text file: the lines asked for, each bounded, while the rest of
//! the file is only counted. Memory does not grow with the file.

use std::io::{self, BufRead, BufReader, Read};

use super::binary::looks_binary;
use crate::base::text::{first_chars, without_nul};

/// Bounds of the original: characters of a line and of a page.
const LINE_CHARS: usize = 2_000;
const PAGE_CHARS: usize = 100_000;
/// A character has at most four bytes; one character more tells a cut line.
const LINE_BYTES: usize = 4 * (LINE_CHARS + 1);
const CUT_MARK: &str = "... [truncated]";
const BUFFER_BYTES: usize = 64 << 10;

/// Which lines, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) offset: usize,
    pub(super) limit: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) lines: Vec<String>,
    pub(super) total_lines: usize,
    /// The page ended at its bound of characters, before its last line.
    pub(super) is_full: bool,
}

/// What a file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Text(Page),
    Binary,
}

/// Reads the file to its end; gives up with an error of the kind `Interrupted`
/// once `is_stopped` says so.
pub(super) fn read(source: impl Read, range: Range, is_stopped: impl Fn() -> bool) -> io::Result<Content> {
    let mut source = BufReader::with_capacity(BUFFER_BYTES, source);
    if looks_binary(source.fill_buf()?) {
        return Ok(Content::Binary);
    }
    let mut pager = Pager {
        range,
        page: Page::default(),
        chars: 0,
        line: Vec::new(),
        is_open: false,
    };
    loop {
        if is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let chunk = source.fill_buf()?;
        if chunk.is_empty() {
            return Ok(Content::Text(pager.finish()));
        }
        let length = chunk.len();
        pager.take(chunk);
        source.consume(length);
    }
}

struct Pager {
    range: Range,
    page: Page,
    /// Characters of the page so far.
    chars: usize,
    /// The beginning of the current line.
    line: Vec<u8>,
    /// The current line has begun.
    is_open: bool,
}

impl Pager {
    fn take(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let text = piece.strip_suffix(b"\n");
            self.is_open = true;
            if self.is_wanted() {
                let room = LINE_BYTES.saturating_sub(self.line.len());
                self.line.extend(text.unwrap_or(piece).iter().take(room));
            }
            if text.is_some() {
                self.end_line();
            }
        }
    }

    fn finish(mut self) -> Page {
        if self.is_open {
            self.end_line();
        }
        self.page
    }

    /// Whether the current line belongs to the page.
    fn is_wanted(&self) -> bool {
        let number = self.page.total_lines + 1;
        let end = self.range.offset.saturating_add(self.range.limit);
        !self.page.is_full && (self.range.offset..end).contains(&number)
    }

    fn end_line(&mut self) {
        if self.is_wanted() {
            let text = shown(&self.line, self.page.total_lines == 0);
            let number = self.page.total_lines + 1;
            // As it will stand in the page: its number, a bar and a line end.
            let chars = text.chars().count() + number.to_string().len() + 2;
            if PAGE_CHARS < self.chars + chars {
                self.page.is_full = true;
            } else {
                self.chars += chars;
                self.page.lines.push(text);
            }
        }
        self.page.total_lines += 1;
        self.line.clear();
        self.is_open = false;
    }
}

/// A line as text: without the mark of its encoding and the first half of a
/// Windows line end, cut where it is too long.
fn shown(line: &[u8], is_first: bool) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.strip_suffix('\r').unwrap_or(&text);
    let text = text.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(text);
    let cut = first_chars(text, LINE_CHARS);
    let mark = if cut.len() < text.len() { CUT_MARK } else { "" };
    without_nul(format!("{cut}{mark}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &[u8], offset: usize, limit: usize) -> Page {
        match read(text, Range { offset, limit }, || false).unwrap() {
            Content::Text(page) => page,
            Content::Binary => panic!("binary"),
        }
    }

    #[test]
    fn a_page_holds_its_lines_and_counts_the_rest() {
        let text = b"one\ntwo\r\nthree\nfour";
        assert_eq!(page(text, 2, 2).lines, ["two", "three"]);
        assert_eq!(page(text, 2, 2).total_lines, 4);
        assert_eq!(page(text, 4, 500).lines, ["four"]);
        assert_eq!(
            page(text, 9, 1),
            Page {
                total_lines: 4,
                ..Page::default()
            }
        );
        assert_eq!(page(b"", 1, 1), Page::default());
        assert_eq!(page(b"\n\n", 1, 9).lines, ["", ""]);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        for unit in ["a", "é", "日", "😀"] {
            let whole = unit.repeat(LINE_CHARS);
            assert_eq!(page(whole.as_bytes(), 1, 1).lines, std::slice::from_ref(&whole));
            let longer = unit.repeat(50_000);
            assert_eq!(page(longer.as_bytes(), 1, 1).lines, [format!("{whole}{CUT_MARK}")]);
        }
    }

    #[test]
    fn a_page_ends_on_a_line_before_its_bound() {
        let text = format!("{}\n", "x".repeat(1_000)).repeat(200);
        let page = page(text.as_bytes(), 1, 500);
        let shown: usize = page
            .lines
            .iter()
            .enumerate()
            .map(|(at, line)| line.len() + (at + 1).to_string().len() + 2)
            .sum();
        assert!(page.is_full && page.total_lines == 200);
        assert!(shown <= PAGE_CHARS && PAGE_CHARS < shown + 1_010, "{shown}");
    }

    #[test]
    fn the_mark_of_the_encoding_goes_on_the_first_line_only() {
        let text = "\u{feff}a\n\u{feff}b";
        assert_eq!(page(text.as_bytes(), 1, 9).lines, ["a", "\u{feff}b"]);
    }

    #[test]
    fn text_that_is_cut_by_the_buffer_stays_whole() {
        let line = "한".repeat(30_000);
        let text = format!("{line}\n{line}\nend");
        let page = page(text.as_bytes(), 3, 1);
        assert_eq!((page.lines, page.total_lines), (vec!["end".to_owned()], 3));
    }

    #[test]
    fn a_stop_is_heeded_and_binary_content_is_told() {
        let range = Range { offset: 1, limit: 1 };
        let stopped = read(&b"text"[..], range, || true);
        assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::Interrupted);
        assert_eq!(read(&[0_u8; 100][..], range, || false).unwrap(), Content::Binary);
    }
}
