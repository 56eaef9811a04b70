//! The characters of a command line that the shell reads as syntax.
//!
//! One pass, linear, total: quoted text, escapes, comments and bodies of
//! here-documents are told from the rest. It does not parse; the guard has the
//! grammar, and nothing that decides about safety uses this.

/// A character and what it is to the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Byte offset in the command.
    pub at: usize,
    /// The character, or [`QUOTED`] for one that stands for itself only.
    pub character: char,
}

/// Stands for a character that is quoted or escaped.
pub(super) const QUOTED: char = '\u{1}';

/// Every character that is part of a command: comments, bodies of
/// here-documents and line continuations are left out.
pub(super) fn marks(command: &str) -> Vec<Mark> {
    let mut scan = Scan {
        characters: command.char_indices().collect(),
        ..Scan::default()
    };
    while let Some((at, character)) = scan.next() {
        scan.take(at, character);
    }
    scan.marks
}

/// What the text at this point is inside of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Single,
    Double,
    Backtick,
    /// `$(` within double quotes, with the parentheses still open in it.
    Substitution(usize),
    /// `${`
    Parameter,
}

struct Heredoc {
    delimiter: String,
    strips_tabs: bool,
}

#[derive(Default)]
struct Scan {
    characters: Vec<(usize, char)>,
    place: usize,
    marks: Vec<Mark>,
    inside: Vec<Inside>,
    heredocs: Vec<Heredoc>,
}

impl Scan {
    fn next(&mut self) -> Option<(usize, char)> {
        let next = self.peek()?;
        self.place += 1;
        Some(next)
    }

    fn peek(&self) -> Option<(usize, char)> {
        self.characters.get(self.place).copied()
    }

    fn comes(&self, character: char) -> bool {
        self.peek().is_some_and(|(_, next)| next == character)
    }

    fn mark(&mut self, at: usize, character: char) {
        self.marks.push(Mark { at, character });
    }

    fn take(&mut self, at: usize, character: char) {
        if let Some(inside) = self.inside.last().copied() {
            self.mark(at, QUOTED);
            return self.take_quoted(inside, character);
        }
        match character {
            '\\' => match self.next() {
                Some((_, '\n')) => {}
                Some((next_at, _)) => {
                    self.mark(at, QUOTED);
                    self.mark(next_at, QUOTED);
                }
                None => self.mark(at, QUOTED),
            },
            '\'' => self.open(at, Inside::Single),
            '"' => self.open(at, Inside::Double),
            '`' => self.open(at, Inside::Backtick),
            '$' if self.comes('{') => self.open(at, Inside::Parameter),
            '#' if self.at_word_start() => self.skip_line(),
            '<' if self.comes('<') => self.take_redirect(at),
            '\n' => {
                self.mark(at, '\n');
                self.skip_heredocs();
            }
            other => self.mark(at, other),
        }
    }

    fn open(&mut self, at: usize, inside: Inside) {
        self.mark(at, QUOTED);
        self.inside.push(inside);
    }

    fn take_quoted(&mut self, inside: Inside, character: char) {
        let escapes = inside != Inside::Single;
        match (inside, character) {
            (_, '\\') if escapes => {
                if let Some((at, _)) = self.next() {
                    self.mark(at, QUOTED);
                }
            }
            (Inside::Single, '\'') | (Inside::Double, '"') | (Inside::Backtick, '`') | (Inside::Parameter, '}') => {
                self.inside.pop();
            }
            (Inside::Double, '$') if self.comes('(') => self.inside.push(Inside::Substitution(0)),
            (Inside::Substitution(depth), '(') => self.replace(Inside::Substitution(depth + 1)),
            (Inside::Substitution(depth), ')') if 1 < depth => self.replace(Inside::Substitution(depth - 1)),
            (Inside::Substitution(_), ')') => {
                self.inside.pop();
            }
            (Inside::Substitution(_) | Inside::Parameter, '\'') => self.inside.push(Inside::Single),
            (Inside::Substitution(_) | Inside::Parameter, '"') => self.inside.push(Inside::Double),
            (Inside::Substitution(_) | Inside::Parameter | Inside::Double, '$') if self.comes('{') => {
                self.inside.push(Inside::Parameter);
            }
            (Inside::Double | Inside::Substitution(_), '`') => self.inside.push(Inside::Backtick),
            _ => {}
        }
    }

    fn replace(&mut self, inside: Inside) {
        self.inside.pop();
        self.inside.push(inside);
    }

    fn at_word_start(&self) -> bool {
        self.marks
            .last()
            .is_none_or(|last| last.character.is_whitespace() || ";&|()".contains(last.character))
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|(_, character)| character != '\n') {
            self.place += 1;
        }
    }

    /// `<<` and what follows: a here-document's body begins at the next line.
    fn take_redirect(&mut self, at: usize) {
        self.mark(at, '<');
        for _ in 0..2 {
            if self.comes('<') {
                let second = self.next().map_or(at, |(at, _)| at);
                self.mark(second, '<');
            }
        }
        if self
            .marks
            .iter()
            .rev()
            .take(3)
            .filter(|mark| mark.character == '<')
            .count()
            == 3
        {
            return;
        }
        let strips_tabs = self.comes('-');
        if strips_tabs {
            self.place += 1;
        }
        while self
            .peek()
            .is_some_and(|(_, character)| character == ' ' || character == '\t')
        {
            self.place += 1;
        }
        let mut delimiter = String::new();
        while let Some((at, character)) = self
            .peek()
            .filter(|(_, c)| !c.is_whitespace() && !";&|<>()".contains(*c))
        {
            self.place += 1;
            self.mark(at, QUOTED);
            if !"'\"\\".contains(character) {
                delimiter.push(character);
            }
        }
        if !delimiter.is_empty() {
            self.heredocs.push(Heredoc { delimiter, strips_tabs });
        }
    }

    fn skip_heredocs(&mut self) {
        for heredoc in std::mem::take(&mut self.heredocs) {
            while self.peek().is_some() {
                let from = self.place;
                self.skip_line();
                let line: String = self
                    .characters
                    .get(from..self.place)
                    .unwrap_or_default()
                    .iter()
                    .map(|(_, c)| *c)
                    .collect();
                let line = if heredoc.strips_tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                let is_end = line == heredoc.delimiter;
                if is_end {
                    // The line break after the last delimiter ends the command.
                    break;
                }
                self.place += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The syntax of a command as text, quoted characters as `·`.
    fn shown(command: &str) -> String {
        marks(command)
            .iter()
            .map(|mark| if mark.character == QUOTED { '·' } else { mark.character })
            .collect()
    }

    #[test]
    fn quotes_escapes_and_substitutions_are_hidden() {
        for (command, expected) in [
            ("a 'b & c' d", "a ······· d"),
            (r#"a "$(b "x & y" ')')" & c"#, "a ·················· & c"),
            (r"a\&b", "a··b"),
            ("a `b & c` d", "a ······· d"),
            ("a ${x:-\"}\" & b} & c", "a ············· & c"),
            ("a && \\\nb", "a && b"),
            ("a # b & c\nd", "a \nd"),
            ("a#b", "a#b"),
            ("a <<< b & c", "a <<< b & c"),
        ] {
            assert_eq!(shown(command), expected, "{command}");
        }
    }

    #[test]
    fn bodies_of_here_documents_are_left_out() {
        assert_eq!(shown("cat <<'E' && x\na & b\nE\nc"), "cat <<··· && x\n\nc");
        assert_eq!(shown("cat <<-E\n\tE\nc"), "cat <<·\n\nc");
        assert_eq!(shown("cat <<A <<B\n1\nA\n2\nB\nc"), "cat <<· <<·\n\nc");
        assert_eq!(shown("cat <<E\nnever ends &"), "cat <<·\n");
    }

    #[test]
    fn open_quotes_end_with_the_text() {
        for command in ["'", "\"", "`", "\"$(", "\\", "<<", "a <<'"] {
            marks(command);
        }
    }
}
