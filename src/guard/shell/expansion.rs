//! What `$`, backticks and `<(…)` expand: parameters, commands, arithmetic.

use super::ast::{Change, Lookup, Param, Piece, Script, Word};
use super::command::Until;
use super::cursor::{Parser, Step, name_length};
use super::word::Stop;

impl Parser<'_> {
    /// `$name` or `$1`: the cursor stands on `$`.
    pub(super) fn simple_param(&mut self, length: usize, pieces: &mut Vec<Piece>, quoted: bool) {
        let start = self.at;
        self.at += 1 + length;
        let param = Param {
            name: self.slice(start + 1, self.at).to_owned(),
            lookup: Lookup::Plain,
            index: None,
            change: Change::None,
        };
        pieces.push(Piece::Param {
            param: Box::new(param),
            quoted,
            span: self.span_from(start),
        });
    }

    pub(super) fn dollar_paren(&mut self, pieces: &mut Vec<Piece>, quoted: bool) -> Step<()> {
        let start = self.at;
        if self.ahead(2) == Some(b'(')
            && let Some(close) = self.arithmetic_end(start + 3)
        {
            let inner = self.arithmetic(start + 3, close)?;
            pieces.push(Piece::Arithmetic {
                inner: Box::new(inner),
                span: self.span_from(start),
            });
            return Ok(());
        }
        self.at += 2;
        let script = self.substituted()?;
        let span = self.span_from(start);
        pieces.push(Piece::Command {
            script: Box::new(script),
            quoted,
            backtick: false,
            rewritten: false,
            span,
        });
        Ok(())
    }

    fn substituted(&mut self) -> Step<Script> {
        let script = self.script(Until::Paren)?;
        self.expect(")", "a command substitution is not closed")?;
        Ok(script)
    }

    pub(super) fn process_substitution(&mut self, pieces: &mut Vec<Piece>) -> Step<()> {
        let reads = self.peek() == Some(b'>');
        self.at += 2;
        let script = self.deeper(Self::substituted)?;
        pieces.push(Piece::Process {
            script: Box::new(script),
            reads,
        });
        Ok(())
    }

    /// Where the `))` that closes an arithmetic text begins; none when the
    /// parentheses show that it is a subshell inside a substitution.
    pub(super) fn arithmetic_end(&self, from: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut open = 0_u32;
        let mut at = from;
        while at < self.end {
            match bytes.get(at)? {
                b'\\' => at += 1,
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' => return (at + 1 < self.end && bytes.get(at + 1) == Some(&b')')).then_some(at),
                b'\'' => at += 1 + self.slice(at + 1, self.end).find('\'')?,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Reads `from..close` as arithmetic and steps behind the `))`.
    pub(super) fn arithmetic(&mut self, from: usize, close: usize) -> Step<Word> {
        self.at = from;
        let outer = std::mem::replace(&mut self.end, close);
        let inner = self.expanding_text();
        self.end = outer;
        let inner = inner?;
        self.at = close + 2;
        Ok(inner)
    }

    /// `$[ … ]`, the arithmetic of old.
    pub(super) fn dollar_bracket(&mut self, pieces: &mut Vec<Piece>) -> Step<()> {
        let start = self.at;
        self.at += 2;
        let mut inner = Vec::new();
        let mut open = 1_u32;
        while let Some(byte) = self.peek() {
            match byte {
                b'[' => open += 1,
                b']' => open -= 1,
                _ => {}
            }
            if open == 0 {
                self.at += 1;
                let word = Word {
                    pieces: inner,
                    span: self.span_from(start),
                };
                pieces.push(Piece::Arithmetic {
                    inner: Box::new(word),
                    span: self.span_from(start),
                });
                return Ok(());
            }
            if matches!(byte, b'[' | b']') {
                self.push_char(&mut inner, true);
            } else {
                self.bracket_piece(byte, &mut inner)?;
            }
        }
        self.malformed("`$[` is not closed")
    }

    fn bracket_piece(&mut self, byte: u8, inner: &mut Vec<Piece>) -> Step<()> {
        if matches!(byte, b'$' | b'`' | b'\\') {
            self.quoted_piece(byte, inner, 0)
        } else {
            self.push_char(inner, true);
            Ok(())
        }
    }

    pub(super) fn backtick(&mut self, pieces: &mut Vec<Piece>, quoted: bool) -> Step<()> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        let mut escaped = false;
        loop {
            if at >= self.end {
                return self.malformed("a backtick is not closed");
            }
            match bytes.get(at) {
                Some(b'`') => break,
                Some(b'\\') => {
                    escaped = true;
                    at += 2;
                }
                _ => at += 1,
            }
        }
        let script = self.deeper(|parser| parser.backtick_script(start + 1, at, escaped, quoted))?;
        self.at = at + 1;
        let span = self.span_from(start);
        pieces.push(Piece::Command {
            script: Box::new(script),
            quoted,
            backtick: true,
            rewritten: escaped,
            span,
        });
        Ok(())
    }

    fn backtick_script(&mut self, from: usize, to: usize, escaped: bool, quoted: bool) -> Step<Script> {
        let waiting = std::mem::take(&mut self.pending);
        let script = if escaped {
            let text = unescape_backtick(self.slice(from, to), quoted);
            let mut child = self.nested(&text);
            let script = child.script(Until::End);
            child.close_heredocs();
            self.adopt(&child);
            script.map_err(|trouble| trouble.moved_to(from))
        } else {
            self.at = from;
            let outer = std::mem::replace(&mut self.end, to);
            let script = self.script(Until::End);
            self.close_heredocs();
            self.end = outer;
            script
        };
        self.pending = waiting;
        script
    }

    pub(super) fn dollar_brace(&mut self, pieces: &mut Vec<Piece>, quoted: bool) -> Step<()> {
        let start = self.at;
        self.at += 2;
        if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
            self.eat("|");
            let script = self.script(Until::Brace)?;
            self.expect("}", "`${ …; }` is not closed")?;
            let span = self.span_from(start);
            pieces.push(Piece::Command {
                script: Box::new(script),
                quoted,
                backtick: false,
                rewritten: false,
                span,
            });
            return Ok(());
        }
        let param = self.braced_param(quoted)?;
        self.expect("}", "`${` is not closed")?;
        pieces.push(Piece::Param {
            param: Box::new(param),
            quoted,
            span: self.span_from(start),
        });
        Ok(())
    }

    fn braced_param(&mut self, quoted: bool) -> Step<Param> {
        let lookup = self.lookup();
        let name = self.param_name();
        let index = if self.peek() == Some(b'[') {
            self.at += 1;
            let index = self.run_of_pieces(Stop::Bracket)?;
            self.expect("]", "an index is not closed")?;
            Some(index)
        } else {
            None
        };
        if name.is_empty() {
            return self.malformed("a bad parameter expansion");
        }
        let change = self.change(quoted)?;
        Ok(Param {
            name,
            lookup,
            index,
            change,
        })
    }

    fn lookup(&mut self) -> Lookup {
        let next = self.ahead(1);
        let names_more = next.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'@' | b'*'));
        match self.peek() {
            Some(b'#') if names_more => {
                self.at += 1;
                Lookup::Length
            }
            Some(b'!') if names_more => {
                self.at += 1;
                Lookup::Indirect
            }
            _ => Lookup::Plain,
        }
    }

    fn param_name(&mut self) -> String {
        let rest = self.rest();
        let mut length = name_length(rest);
        if length == 0 {
            length = rest.bytes().take_while(u8::is_ascii_digit).count();
        }
        if length == 0 && matches!(self.peek(), Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')) {
            length = 1;
        }
        let start = self.at;
        self.at += length;
        self.slice(start, self.at).to_owned()
    }

    fn change(&mut self, quoted: bool) -> Step<Change> {
        let colon = self.peek() == Some(b':');
        let operator = if colon { self.ahead(1) } else { self.peek() };
        match operator {
            Some(b'}') | None if !colon => Ok(Change::None),
            Some(b'-' | b'=') => self.stand_in(1 + usize::from(colon), quoted).map(Change::Default),
            Some(b'+') => self.stand_in(1 + usize::from(colon), quoted).map(Change::Alternate),
            Some(b'?') => self.stand_in(1 + usize::from(colon), quoted).map(Change::Demand),
            _ if colon => self.operand(1).map(Change::Slice),
            Some(b'#') => self.doubled("#").map(Change::TrimStart),
            Some(b'%') => self.doubled("%").map(Change::TrimEnd),
            Some(b'/') => self.replacement(),
            Some(b'^') => self.doubled("^").map(|_| Change::Upper),
            Some(b',') => self.doubled(",").map(|_| Change::Lower),
            Some(b'@' | b'*') => self.operand(1).map(|_| Change::Transform),
            _ => self.malformed("an unknown parameter expansion"),
        }
    }

    fn operand(&mut self, skip: usize) -> Step<Word> {
        self.at += skip;
        self.run_of_pieces(Stop::Brace)
    }

    fn stand_in(&mut self, skip: usize, quoted: bool) -> Step<Word> {
        let outer = std::mem::replace(&mut self.single_is_text, quoted);
        let word = self.operand(skip);
        self.single_is_text = outer;
        word
    }

    fn doubled(&mut self, operator: &str) -> Step<Word> {
        self.at += operator.len();
        self.eat(operator);
        self.run_of_pieces(Stop::Brace)
    }

    fn replacement(&mut self) -> Step<Change> {
        self.at += 1;
        let all = self.eat("/");
        if !all && matches!(self.peek(), Some(b'#' | b'%')) {
            self.at += 1;
        }
        let pattern = self.run_of_pieces(Stop::SlashOrBrace)?;
        let with = if self.eat("/") {
            self.run_of_pieces(Stop::Brace)?
        } else {
            Word::default()
        };
        Ok(Change::Replace { pattern, with, all })
    }
}

fn unescape_backtick(text: &str, quoted: bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        let drops = character == '\\' && matches!(next, Some('`' | '\\' | '$'))
            || (quoted && next == Some('"') && character == '\\');
        match (drops, next) {
            (true, Some(kept)) => {
                characters.next();
                plain.push(kept);
            }
            _ => plain.push(character),
        }
    }
    plain
}

/// The text of a word when it is made of text alone.
pub(super) fn literal(word: &Word) -> Option<(String, bool)> {
    let mut text = String::new();
    let mut any_quoted = false;
    for piece in &word.pieces {
        let Piece::Text { text: part, quoted } = piece else {
            return None;
        };
        text.push_str(part);
        any_quoted |= quoted;
    }
    Some((text, any_quoted))
}
