//! A page of a text file: the lines asked for, each bounded, while some of the
//! rest is only counted. Memory does not grow with the file, and behind the page
//! neither does the time.

use std::io::{self, BufRead, BufReader, Read};

use super::binary::looks_binary;
use crate::base::text::{first_chars, without_nul};

const CUT_MARK: &str = "... [truncated]";
const BUFFER_BYTES: usize = 64 << 10;
/// Behind the page so much is counted; what is left is estimated, for a file of
/// gigabytes takes seconds to count and nobody needs the number.
const COUNTED_BYTES: u64 = 4 << 20;

/// Which lines, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) offset: usize,
    pub(super) limit: usize,
}

/// How many characters of a line and of a page are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) line_chars: usize,
    pub(super) page_chars: usize,
}

impl Bounds {
    /// A character has at most four bytes; one character more tells a cut line.
    fn line_bytes(self) -> usize {
        self.line_chars.saturating_add(1).saturating_mul(4)
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) lines: Vec<String>,
    pub(super) total_lines: usize,
    /// The page ended at its bound of characters, before its last line.
    pub(super) is_full: bool,
    /// Its first line alone was longer than a page and is shown in part.
    pub(super) is_clamped: bool,
    /// A line of it was too long and is shown in part.
    pub(super) has_cut_lines: bool,
    /// Counting stopped after so many bytes, with more behind them.
    pub(super) counted_bytes: Option<u64>,
}

impl Page {
    /// How many lines a file of that length has, and whether that is a guess.
    pub(super) fn lines_of(&self, bytes: u64) -> (usize, bool) {
        let Some(counted) = self.counted_bytes.filter(|counted| 0 < *counted && *counted < bytes) else {
            return (self.total_lines, false);
        };
        let lines = u128::try_from(self.total_lines).unwrap_or(0) * u128::from(bytes) / u128::from(counted);
        (usize::try_from(lines).unwrap_or(usize::MAX), true)
    }
}

/// What a file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Text(Page),
    Binary,
}

/// Reads the file to its end; gives up with an error of the kind `Interrupted`
/// once `is_stopped` says so.
pub(super) fn read(
    source: impl Read,
    range: Range,
    bounds: Bounds,
    is_stopped: impl Fn() -> bool,
) -> io::Result<Content> {
    let mut source = BufReader::with_capacity(BUFFER_BYTES, source);
    if looks_binary(source.fill_buf()?) {
        return Ok(Content::Binary);
    }
    let mut pager = Pager {
        range,
        bounds,
        page: Page::default(),
        chars: 0,
        line: Vec::new(),
        is_open: false,
    };
    let (mut seen, mut behind) = (0, 0);
    loop {
        if is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let chunk = source.fill_buf()?;
        if chunk.is_empty() {
            return Ok(Content::Text(pager.finish()));
        }
        if COUNTED_BYTES <= behind {
            pager.page.counted_bytes = Some(seen);
            return Ok(Content::Text(pager.page));
        }
        let length = chunk.len();
        pager.take(chunk);
        source.consume(length);
        seen += length as u64;
        behind += if pager.is_behind() { length as u64 } else { 0 };
    }
}

struct Pager {
    range: Range,
    bounds: Bounds,
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
                let room = self.bounds.line_bytes().saturating_sub(self.line.len());
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

    /// Nothing of the page is still to come.
    fn is_behind(&self) -> bool {
        let end = self.range.offset.saturating_add(self.range.limit);
        self.page.is_full || end <= self.page.total_lines + 1
    }

    /// Adds the current line to the page, if there is room. A first line that is
    /// longer than a page is shown in part: a page of nothing would be asked for
    /// for ever.
    fn show_line(&mut self) {
        let (text, is_cut) = shown(&self.line, self.page.total_lines == 0, self.bounds.line_chars);
        let number = self.page.total_lines + 1;
        // As it will stand in the page: its number, a bar and a line end.
        let frame = number.to_string().len() + 2;
        let chars = text.chars().count() + frame;
        let room = self.bounds.page_chars.saturating_sub(self.chars);
        if chars <= room {
            self.chars += chars;
            self.page.has_cut_lines |= is_cut;
            self.page.lines.push(text);
            return;
        }
        self.page.is_full = true;
        if self.page.lines.is_empty() {
            let kept = room.saturating_sub(frame + CUT_MARK.len());
            self.page.lines.push(format!("{}{CUT_MARK}", first_chars(&text, kept)));
            self.page.is_clamped = true;
            self.page.has_cut_lines = true;
        }
    }

    fn end_line(&mut self) {
        if self.is_wanted() {
            self.show_line();
        }
        self.page.total_lines += 1;
        self.line.clear();
        self.is_open = false;
    }
}

/// A line as text: without the mark of its encoding and the first half of a
/// Windows line end, cut where it is too long; and whether it was cut.
fn shown(line: &[u8], is_first: bool, most_chars: usize) -> (String, bool) {
    let text = String::from_utf8_lossy(line);
    let text = text.strip_suffix('\r').unwrap_or(&text);
    let text = text.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(text);
    let cut = first_chars(text, most_chars);
    let is_cut = cut.len() < text.len();
    let mark = if is_cut { CUT_MARK } else { "" };
    (without_nul(format!("{cut}{mark}")), is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE_CHARS: usize = 2_000;
    const PAGE_CHARS: usize = 100_000;
    const BOUNDS: Bounds = Bounds {
        line_chars: LINE_CHARS,
        page_chars: PAGE_CHARS,
    };

    fn page(text: &[u8], offset: usize, limit: usize) -> Page {
        bounded(text, offset, limit, BOUNDS)
    }

    fn bounded(text: &[u8], offset: usize, limit: usize, bounds: Bounds) -> Page {
        match read(text, Range { offset, limit }, bounds, || false).unwrap() {
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
    fn a_first_line_longer_than_a_page_is_shown_in_part() {
        let bounds = Bounds {
            line_chars: 2_000,
            page_chars: 1_000,
        };
        let text = format!("{}\nnext\n", "한".repeat(1_500));
        let page = bounded(text.as_bytes(), 1, 500, bounds);
        let line = page.lines.first().unwrap();
        assert_eq!(line.chars().count() + "1|\n".len(), 1_000);
        assert!(page.is_full && page.is_clamped && line.ends_with("한... [truncated]"));
        assert_eq!((page.lines.len(), page.total_lines), (1, 2));
        let page = bounded(text.as_bytes(), 2, 500, bounds);
        assert_eq!((page.lines, page.is_clamped), (vec!["next".to_owned()], false));
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
    fn of_a_long_rest_only_a_part_is_counted() {
        let text = "line\n".repeat(2_000_000);
        let long = page(text.as_bytes(), 1, 2);
        assert_eq!(long.lines, ["line", "line"]);
        let (lines, is_guess) = long.lines_of(text.len() as u64);
        assert!(is_guess && (1_999_000..2_001_000).contains(&lines), "{lines}");
        assert!(long.counted_bytes.unwrap() < COUNTED_BYTES + 2 * BUFFER_BYTES as u64);
        let short = page(b"a\nb\nc", 1, 1);
        assert_eq!(short.lines_of(5), (3, false));
    }

    #[test]
    fn a_stop_is_heeded_and_binary_content_is_told() {
        let range = Range { offset: 1, limit: 1 };
        let stopped = read(&b"text"[..], range, BOUNDS, || true);
        assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::Interrupted);
        let binary = read(&[0_u8; 100][..], range, BOUNDS, || false);
        assert_eq!(binary.unwrap(), Content::Binary);
    }
}
