//! Words: quoting in all its forms, cut into pieces.

use super::ast::{Piece, Word};
use super::cursor::{Parser, Step, is_break, name_length};
use crate::guard::Span;

/// Where an unquoted run of pieces ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// At blanks and operators: an ordinary word.
    Break,
    /// At the `}` of `${…}`.
    Brace,
    /// At `/` or `}`: the pattern of `${x/…/…}`.
    SlashOrBrace,
    /// At the `]` of an index.
    Bracket,
    /// At blanks only: the pattern after `=~`.
    Blank,
}

impl Parser<'_> {
    pub(super) fn word(&mut self) -> Step<Word> {
        self.run_of_pieces(Stop::Break)
    }

    pub(super) fn run_of_pieces(&mut self, stop: Stop) -> Step<Word> {
        self.node()?;
        let start = self.at;
        let mut pieces = Vec::new();
        let mut parens = 0_u32;
        while let Some(byte) = self.peek() {
            if stop == Stop::Blank && matches!(byte, b'(' | b')') {
                if byte == b')' && parens == 0 {
                    break;
                }
                parens = if byte == b'(' { parens + 1 } else { parens - 1 };
                self.push_char(&mut pieces, false);
                continue;
            }
            if self.stops(byte, stop, parens) {
                break;
            }
            self.piece(byte, stop, &mut pieces)?;
        }
        Ok(Word {
            pieces,
            span: Span { start, end: self.at },
        })
    }

    fn stops(&self, byte: u8, stop: Stop, parens: u32) -> bool {
        match stop {
            Stop::Break => is_break(byte) && !self.at_process_substitution(byte),
            Stop::Brace => byte == b'}',
            Stop::SlashOrBrace => byte == b'}' || byte == b'/',
            Stop::Bracket => byte == b']',
            Stop::Blank => parens == 0 && matches!(byte, b' ' | b'\t' | b'\n'),
        }
    }

    fn at_process_substitution(&self, byte: u8) -> bool {
        matches!(byte, b'<' | b'>') && self.ahead(1) == Some(b'(')
    }

    fn piece(&mut self, byte: u8, stop: Stop, pieces: &mut Vec<Piece>) -> Step<()> {
        match byte {
            b'\\' => self.escape(pieces),
            b'\'' if self.single_is_text && stop == Stop::Brace => self.push_char(pieces, true),
            b'\'' => self.single_quotes(pieces)?,
            b'"' => self.double_quotes(pieces)?,
            b'$' => self.dollar(pieces, false)?,
            b'`' => self.backtick(pieces, false)?,
            b'<' | b'>' if stop != Stop::Blank && self.ahead(1) == Some(b'(') => self.process_substitution(pieces)?,
            b'?' | b'*' | b'+' | b'@' | b'!' if stop == Stop::Break && self.ahead(1) == Some(b'(') => {
                self.extended_pattern(pieces)?;
            }
            _ => self.plain(stop, pieces),
        }
        Ok(())
    }

    /// A run of characters without meaning, taken at once.
    fn plain(&mut self, stop: Stop, pieces: &mut Vec<Piece>) {
        let rest = self.rest();
        let length = rest
            .bytes()
            .take_while(|byte| {
                !is_break(*byte)
                    && !matches!(
                        byte,
                        b'\\' | b'\'' | b'"' | b'$' | b'`' | b'?' | b'*' | b'+' | b'@' | b'!'
                    )
                    && (stop == Stop::Break || !matches!(byte, b'}' | b'/' | b']'))
            })
            .count();
        match rest.get(..length) {
            Some(run) if length > 0 => {
                self.at += length;
                push_text(pieces, run, false);
            }
            _ => self.push_char(pieces, false),
        }
    }

    pub(super) fn push_char(&mut self, pieces: &mut Vec<Piece>, quoted: bool) {
        let start = self.at;
        if self.bump().is_some() {
            push_text(pieces, self.slice(start, self.at), quoted);
        }
    }

    fn escape(&mut self, pieces: &mut Vec<Piece>) {
        self.at += 1;
        match self.peek() {
            Some(b'\n') => self.at += 1,
            Some(_) => self.push_char(pieces, true),
            None => push_text(pieces, "\\", true),
        }
    }

    fn single_quotes(&mut self, pieces: &mut Vec<Piece>) -> Step<()> {
        self.at += 1;
        let Some(length) = self.rest().find('\'') else {
            return self.malformed("a single quote is not closed");
        };
        push_text(pieces, self.slice(self.at, self.at + length), true);
        self.at += length + 1;
        Ok(())
    }

    fn double_quotes(&mut self, pieces: &mut Vec<Piece>) -> Step<()> {
        self.at += 1;
        push_text(pieces, "", true);
        loop {
            match self.peek() {
                None => return self.malformed("a double quote is not closed"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(byte) => self.quoted_piece(byte, pieces, b'"')?,
            }
        }
    }

    /// The text of a here-document whose delimiter is not quoted: as in double
    /// quotes, but a double quote is text.
    pub(super) fn expanding_text(&mut self) -> Step<Word> {
        let start = self.at;
        let mut pieces = Vec::new();
        while let Some(byte) = self.peek() {
            self.quoted_piece(byte, &mut pieces, 0)?;
        }
        Ok(Word {
            pieces,
            span: self.span_from(start),
        })
    }

    pub(super) fn quoted_piece(&mut self, byte: u8, pieces: &mut Vec<Piece>, quote: u8) -> Step<()> {
        match byte {
            b'\\' => {
                match self.ahead(1) {
                    Some(b'\n') => self.at += 2,
                    Some(next @ (b'$' | b'`' | b'\\' | b'"')) if next != b'"' || quote == b'"' => {
                        self.at += 1;
                        self.push_char(pieces, true);
                    }
                    _ => self.push_char(pieces, true),
                }
                Ok(())
            }
            b'$' => self.dollar(pieces, true),
            b'`' => self.backtick(pieces, true),
            _ => {
                let run = self
                    .rest()
                    .bytes()
                    .take_while(|byte| !matches!(byte, b'\\' | b'$' | b'`' | b'"'))
                    .count();
                if run == 0 {
                    self.push_char(pieces, true);
                } else {
                    push_text(pieces, self.slice(self.at, self.at + run), true);
                    self.at += run;
                }
                Ok(())
            }
        }
    }

    fn dollar(&mut self, pieces: &mut Vec<Piece>, quoted: bool) -> Step<()> {
        match self.ahead(1) {
            Some(b'(') => self.deeper(|parser| parser.dollar_paren(pieces, quoted)),
            Some(b'{') => self.deeper(|parser| parser.dollar_brace(pieces, quoted)),
            Some(b'[') => self.deeper(|parser| parser.dollar_bracket(pieces)),
            Some(b'\'') if !quoted => self.ansi_c_quotes(pieces),
            Some(b'"') if !quoted => {
                self.at += 1;
                self.double_quotes(pieces)
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.simple_param(1, pieces, quoted);
                Ok(())
            }
            Some(_) => {
                let length = name_length(self.slice(self.at + 1, self.end));
                if length == 0 {
                    self.push_char(pieces, quoted);
                } else {
                    self.simple_param(length, pieces, quoted);
                }
                Ok(())
            }
            None => {
                self.push_char(pieces, quoted);
                Ok(())
            }
        }
    }

    /// `*(…)`, `@(…)` and their like: pattern text whose parts are words.
    fn extended_pattern(&mut self, pieces: &mut Vec<Piece>) -> Step<()> {
        self.push_char(pieces, false);
        self.push_char(pieces, false);
        let mut open = 1_u32;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => open += 1,
                b')' => open -= 1,
                b'\\' | b'\'' | b'"' | b'$' | b'`' => {
                    self.deeper(|parser| parser.piece(byte, Stop::Brace, pieces))?;
                    continue;
                }
                _ => {}
            }
            self.push_char(pieces, false);
            if open == 0 {
                return Ok(());
            }
        }
        self.malformed("a pattern group is not closed")
    }

    fn ansi_c_quotes(&mut self, pieces: &mut Vec<Piece>) -> Step<()> {
        self.at += 2;
        let start = self.at;
        loop {
            match self.peek() {
                None => return self.malformed("an ANSI-C quote is not closed"),
                Some(b'\'') => break,
                Some(b'\\') => {
                    self.at += 1;
                    self.bump();
                }
                Some(_) => {
                    self.bump();
                }
            }
        }
        let decoded = decode_ansi_c(self.slice(start, self.at));
        // Bash cuts such a string at NUL.
        push_text(pieces, decoded.split('\0').next().unwrap_or_default(), true);
        self.at += 1;
        Ok(())
    }
}

pub(super) fn push_text(pieces: &mut Vec<Piece>, text: &str, quoted: bool) {
    if let Some(Piece::Text {
        text: last,
        quoted: same,
    }) = pieces.last_mut()
        && *same == quoted
    {
        last.push_str(text);
        return;
    }
    pieces.push(Piece::Text {
        text: text.to_owned(),
        quoted,
    });
}

/// Escapes of `$'…'`, which `echo -e` and `printf` share.
pub(crate) fn decode_ansi_c(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.extend_from_slice(rest.get(..at).unwrap_or_default().as_bytes());
        let escape = rest.get(at + 1..).unwrap_or_default();
        let used = decode_escape(escape, &mut decoded);
        rest = escape.get(used..).unwrap_or_default();
    }
    decoded.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Decodes one escape (the text after the backslash); returns the bytes used.
fn decode_escape(escape: &str, out: &mut Vec<u8>) -> usize {
    let Some(kind) = escape.chars().next() else {
        out.push(b'\\');
        return 0;
    };
    let single = match kind {
        'a' => 7,
        'b' => 8,
        'e' | 'E' => 27,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '?' => kind as u8,
        'x' => return number(escape, 1, 2, 16, out),
        'u' => return number(escape, 1, 4, 16, out),
        'U' => return number(escape, 1, 8, 16, out),
        '0'..='7' => return number(escape, 0, if kind == '0' { 4 } else { 3 }, 8, out),
        'c' => {
            let control = escape.as_bytes().get(1).map_or(0, |byte| byte & 0x1f);
            out.push(control);
            return escape.chars().take(2).map(char::len_utf8).sum();
        }
        other => {
            out.push(b'\\');
            out.extend_from_slice(other.to_string().as_bytes());
            return other.len_utf8();
        }
    };
    out.push(single);
    1
}

fn number(escape: &str, skip: usize, most: usize, radix: u32, out: &mut Vec<u8>) -> usize {
    let tail = escape.get(skip..).unwrap_or_default();
    let length = tail
        .chars()
        .take(most)
        .take_while(|digit| digit.is_digit(radix))
        .count();
    let Ok(value) = u32::from_str_radix(tail.get(..length).unwrap_or_default(), radix) else {
        out.push(b'\\');
        out.extend_from_slice(escape.get(..skip).unwrap_or_default().as_bytes());
        return skip;
    };
    if most <= 4 && (radix == 8 || most == 2) {
        out.push((value & 0xff) as u8);
    } else if let Some(character) = char::from_u32(value) {
        out.extend_from_slice(character.to_string().as_bytes());
    }
    skip + length
}
