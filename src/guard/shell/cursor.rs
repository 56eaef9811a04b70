//! The parser's hand: position, look-ahead, blanks, comments, limits.
//!
//! Every step forward consumes bytes and every descent is counted, so work is
//! linear and the stack is bounded whatever the text.

use super::ast::Script;
use super::{Parsed, heredoc::Pending};
use crate::guard::Span;

/// Nested constructs that people write stay below ten; 48 leaves the stack of
/// a two-megabyte thread untouched in a debug build.
const DEPTH: u32 = 48;
/// More nodes than the longest accepted text (128 000 characters) can hold
/// without being built to exhaust memory.
const NODES: u32 = 300_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Malformed { at: usize, what: &'static str },
    Limit { at: usize },
}

impl Trouble {
    /// Trouble in text made on the way stands where that text came from.
    pub(super) fn moved_to(self, at: usize) -> Self {
        match self {
            Self::Malformed { what, .. } => Self::Malformed { at, what },
            Self::Limit { .. } => Self::Limit { at },
        }
    }
}

pub(super) type Step<T> = Result<T, Trouble>;

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) pending: Vec<Pending>,
    /// Inside `"${x:-…}"`, where a single quote is text.
    pub(super) single_is_text: bool,
    depth: u32,
    nodes: u32,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            end: text.len(),
            pending: Vec::new(),
            single_is_text: false,
            depth: 0,
            nodes: 0,
        }
    }

    /// A parser for text made while parsing (unescaped backticks): it starts
    /// at the depth and count of its parent.
    pub(super) fn nested<'n>(&self, text: &'n str) -> Parser<'n> {
        Parser {
            depth: self.depth,
            nodes: self.nodes,
            ..Parser::new(text)
        }
    }

    pub(super) fn adopt(&mut self, child: &Parser<'_>) {
        self.nodes = child.nodes;
    }

    pub(super) fn document(mut self) -> Parsed {
        let mut script = Script::default();
        let mut trouble = None;
        while trouble.is_none() {
            match self.top_statement() {
                Ok(Some(statement)) => script.statements.push(statement),
                Ok(None) => break,
                Err(found) => trouble = Some(found),
            }
        }
        self.close_heredocs();
        Parsed { script, trouble }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, offset: usize) -> Option<u8> {
        let at = self.at + offset;
        if at < self.end {
            self.text.as_bytes().get(at).copied()
        } else {
            None
        }
    }

    pub(super) fn looking_at(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    pub(super) fn span_from(&self, start: usize) -> Span {
        Span { start, end: self.at }
    }

    /// One character, however many bytes it has.
    pub(super) fn bump(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(super) fn eat(&mut self, what: &str) -> bool {
        let found = self.looking_at(what);
        if found {
            self.at += what.len();
        }
        found
    }

    pub(super) fn node(&mut self) -> Step<()> {
        self.nodes += 1;
        if self.nodes > NODES {
            Err(Trouble::Limit { at: self.at })
        } else {
            Ok(())
        }
    }

    pub(super) fn malformed<T>(&self, what: &'static str) -> Step<T> {
        Err(Trouble::Malformed { at: self.at, what })
    }

    pub(super) fn expect(&mut self, what: &str, missing: &'static str) -> Step<()> {
        if self.eat(what) {
            Ok(())
        } else {
            self.malformed(missing)
        }
    }

    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.depth >= DEPTH {
            return Err(Trouble::Limit { at: self.at });
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Spaces, tabs and joined lines; not newlines.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.ahead(1) == Some(b'\n') => self.at += 2,
                Some(b'#') if self.at_word_start() => self.skip_comment(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    /// A `#` begins a comment only where a word could begin.
    fn at_word_start(&self) -> bool {
        let Some(before) = self.at.checked_sub(1).and_then(|at| self.text.as_bytes().get(at)) else {
            return true;
        };
        matches!(
            before,
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' | b'`'
        )
    }

    /// Blanks and newlines; the bodies of waiting here-documents are read at
    /// the first newline.
    pub(super) fn skip_lines(&mut self) -> Step<()> {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    pub(super) fn newline(&mut self) -> Step<()> {
        self.at += 1;
        if self.pending.is_empty() {
            Ok(())
        } else {
            self.read_heredocs()
        }
    }

    /// The unquoted word at the cursor when it could be a reserved word.
    pub(super) fn keyword(&self) -> &'t str {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut length = 0;
        while let Some(byte) = bytes.get(length) {
            if !matches!(byte, b'a'..=b'z' | b'!' | b'{' | b'}' | b'[' | b']') || length > 8 {
                break;
            }
            length += 1;
        }
        let ends = bytes.get(length).is_none_or(|byte| is_break(*byte));
        // `\` + newline may continue the word: then it is no keyword we know.
        if ends {
            rest.get(..length).unwrap_or_default()
        } else {
            ""
        }
    }

    pub(super) fn eat_keyword(&mut self, word: &str) -> bool {
        let found = self.keyword() == word;
        if found {
            self.at += word.len();
        }
        found
    }

    pub(super) fn expect_keyword(&mut self, word: &str, missing: &'static str) -> Step<()> {
        self.skip_lines()?;
        if self.eat_keyword(word) {
            Ok(())
        } else {
            self.malformed(missing)
        }
    }

    pub(super) fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let length = name_length(rest);
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }
}

/// Bytes that end an unquoted word.
pub(super) fn is_break(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')'
    )
}

/// Length of the variable name at the start of the text.
pub(super) fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => bytes
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
            .count(),
        _ => 0,
    }
}
