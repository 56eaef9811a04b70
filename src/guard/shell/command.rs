//! Lists, pipelines, simple commands, redirects.

use std::rc::Rc;

use super::ast::{Assigned, Assignment, Command, Operator, Pipeline, Redirect, Script, Shape, Simple, Statement, Word};
use super::cursor::{Parser, Step, is_break, name_length};
use super::expansion::literal;
use super::heredoc::Pending;
use super::word::Stop;
use crate::guard::Span;

/// What ends a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    End,
    Paren,
    Brace,
    Then,
    Else,
    Fi,
    Do,
    Done,
    /// `;;`, `;&`, `;;&` or `esac`.
    Arm,
}

impl Parser<'_> {
    pub(super) fn top_statement(&mut self) -> Step<Option<Statement>> {
        self.skip_lines()?;
        if self.at >= self.end {
            return Ok(None);
        }
        self.statement().map(Some)
    }

    pub(super) fn script(&mut self, until: Until) -> Step<Script> {
        let outer = std::mem::replace(&mut self.single_is_text, false);
        let mut script = Script::default();
        loop {
            self.skip_lines()?;
            if self.closes(until) {
                self.single_is_text = outer;
                return Ok(script);
            }
            if self.at >= self.end {
                return self.malformed("a compound command is not closed");
            }
            script.statements.push(self.statement()?);
        }
    }

    /// A list in which something must stand.
    pub(super) fn body(&mut self, until: Until) -> Step<Script> {
        let script = self.script(until)?;
        if script.statements.is_empty() {
            return self.malformed("a command is missing");
        }
        Ok(script)
    }

    fn closes(&self, until: Until) -> bool {
        match until {
            Until::End => self.at >= self.end,
            Until::Paren => self.peek() == Some(b')'),
            Until::Brace => self.keyword() == "}",
            Until::Then => self.keyword() == "then",
            Until::Else => matches!(self.keyword(), "elif" | "else" | "fi"),
            Until::Fi => self.keyword() == "fi",
            Until::Do => self.keyword() == "do",
            Until::Done => self.keyword() == "done",
            Until::Arm => self.looking_at(";;") || self.looking_at(";&") || self.keyword() == "esac",
        }
    }

    fn statement(&mut self) -> Step<Statement> {
        self.node()?;
        let mut chain = vec![self.pipeline()?];
        loop {
            self.skip_blanks();
            if !(self.eat("&&") || self.eat("||")) {
                break;
            }
            self.skip_lines()?;
            chain.push(self.pipeline()?);
        }
        let background = self.terminator()?;
        Ok(Statement { chain, background })
    }

    /// Eats what closes a statement; true when it goes to the background.
    fn terminator(&mut self) -> Step<bool> {
        match self.peek() {
            Some(b';') if !matches!(self.ahead(1), Some(b';' | b'&')) => {
                self.at += 1;
                Ok(false)
            }
            Some(b'&') => {
                self.at += 1;
                Ok(true)
            }
            Some(b'\n') => self.newline().map(|()| false),
            // `)` and `;;` are left to the construct that they close.
            None | Some(b')' | b';') => Ok(false),
            // A reserved word may follow `)` or `}` without a separator.
            Some(_)
                if matches!(
                    self.keyword(),
                    "}" | "then" | "do" | "done" | "fi" | "elif" | "else" | "esac"
                ) =>
            {
                Ok(false)
            }
            Some(_) => self.malformed("a command is followed by something unexpected"),
        }
    }

    fn pipeline(&mut self) -> Step<Pipeline> {
        let mut commands = Vec::new();
        // `time` and `!` may stand alone at the end of a list.
        if self.pipeline_prefix() && matches!(self.peek(), None | Some(b'\n' | b';')) && self.ahead(1) != Some(b';') {
            return Ok(Pipeline { commands });
        }
        loop {
            commands.push(self.command()?);
            self.skip_blanks();
            if self.looking_at("||") || !(self.eat("|&") || self.eat("|")) {
                return Ok(Pipeline { commands });
            }
            self.skip_lines()?;
        }
    }

    /// `!` and `time [-p] [--]` in any number; whether there was one.
    fn pipeline_prefix(&mut self) -> bool {
        let mut any = false;
        loop {
            self.skip_blanks();
            if self.eat_keyword("!") {
                any = true;
                continue;
            }
            if self.keyword() == "time" {
                any = true;
                self.at += 4;
                self.skip_blanks();
                while self.looking_at("-p ") || self.looking_at("-- ") {
                    self.at += 2;
                    self.skip_blanks();
                }
                continue;
            }
            return any;
        }
    }

    pub(super) fn command(&mut self) -> Step<Command> {
        self.node()?;
        self.skip_blanks();
        let start = self.at;
        let Some(shape) = self.compound()? else {
            return self.simple();
        };
        let mut redirects = Vec::new();
        let mut end = self.at;
        if matches!(shape, Shape::Function { .. }) {
            // Redirects behind a function belong to its body.
            return Ok(Command {
                shape,
                redirects,
                span: Span { start, end },
            });
        }
        loop {
            self.skip_blanks();
            let Some(redirect) = self.redirect()? else { break };
            redirects.push(redirect);
            end = self.at;
        }
        Ok(Command {
            shape,
            redirects,
            span: Span { start, end },
        })
    }

    fn simple(&mut self) -> Step<Command> {
        let start = self.at;
        let mut last = start;
        let mut simple = Simple::default();
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
            } else if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
            } else if self.peek().is_some_and(|byte| !is_break(byte)) || self.looking_at("<(") || self.looking_at(">(")
            {
                // Arguments of `declare` and its like may be arrays.
                let word = match self.array_argument(&simple.words)? {
                    Some(assignment) => {
                        simple.assignments.push(assignment);
                        continue;
                    }
                    None => self.word()?,
                };
                simple.words.push(word);
            } else if self.peek() == Some(b'(') && simple.words.len() == 1 && redirects.is_empty() {
                return self.short_function(start, &simple);
            } else {
                break;
            }
            last = self.at;
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && redirects.is_empty() {
            return self.malformed("a command is missing");
        }
        let span = Span { start, end: last };
        Ok(Command {
            shape: Shape::Simple(simple),
            redirects,
            span,
        })
    }

    fn array_argument(&mut self, words: &[Word]) -> Step<Option<Assignment>> {
        let declares = words
            .first()
            .and_then(literal)
            .is_some_and(|(name, _)| matches!(name.as_str(), "declare" | "local" | "export" | "readonly" | "typeset"));
        if !declares {
            return Ok(None);
        }
        let length = name_length(self.rest());
        let tail = self.rest().get(length..).unwrap_or_default();
        if length > 0 && (tail.starts_with("=(") || tail.starts_with("+=(")) {
            self.assignment()
        } else {
            Ok(None)
        }
    }

    /// `name()` with its body.
    fn short_function(&mut self, start: usize, simple: &Simple) -> Step<Command> {
        let name = simple.words.first().and_then(literal).map(|(name, _)| name);
        let Some(name) = name.filter(|_| simple.assignments.is_empty()) else {
            return self.malformed("a parenthesis where none may stand");
        };
        self.at += 1;
        self.skip_blanks();
        self.expect(")", "a parenthesis where none may stand")?;
        let shape = self.function_body(name)?;
        Ok(Command {
            shape,
            redirects: Vec::new(),
            span: self.span_from(start),
        })
    }

    pub(super) fn function_body(&mut self, name: String) -> Step<Shape> {
        self.skip_lines()?;
        let body = self.deeper(Self::command)?;
        if matches!(body.shape, Shape::Simple(_) | Shape::Function { .. } | Shape::Coproc(_)) {
            return self.malformed("the body of a function is no compound command");
        }
        Ok(Shape::Function {
            name,
            body: Rc::new(body),
        })
    }

    fn assignment(&mut self) -> Step<Option<Assignment>> {
        let start = self.at;
        let length = name_length(self.rest());
        let after = self.rest().get(length..).unwrap_or_default();
        if length == 0 || !(after.starts_with('=') || after.starts_with("+=") || after.starts_with('[')) {
            return Ok(None);
        }
        let name = self.slice(start, start + length).to_owned();
        self.at += length;
        let index = match self.peek() {
            Some(b'[') => {
                self.at += 1;
                let index = self.run_of_pieces(Stop::Bracket)?;
                if !self.eat("]") || !(self.looking_at("=") || self.looking_at("+=")) {
                    // `name[…` was an ordinary word after all.
                    self.at = start;
                    return Ok(None);
                }
                Some(index)
            }
            _ => None,
        };
        let append = self.eat("+");
        self.at += 1;
        let value = if self.peek() == Some(b'(') {
            self.deeper(Self::array).map(Assigned::Array)?
        } else {
            Assigned::One(self.word()?)
        };
        Ok(Some(Assignment {
            name,
            append,
            index,
            value,
            span: self.span_from(start),
        }))
    }

    fn array(&mut self) -> Step<Vec<Word>> {
        self.at += 1;
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    return Ok(words);
                }
                Some(byte) if !is_break(byte) || self.looking_at("<(") || self.looking_at(">(") => {
                    words.push(self.word()?);
                }
                _ => return self.malformed("an array is not closed"),
            }
        }
    }

    fn redirect(&mut self) -> Step<Option<Redirect>> {
        let head = self.rest();
        let skip = match head.as_bytes().first() {
            Some(b'0'..=b'9') => head.bytes().take_while(u8::is_ascii_digit).count(),
            Some(b'{') => braced_fd(head),
            _ => 0,
        };
        let tail = head.get(skip..).unwrap_or_default();
        let Some((spelling, operator)) = OPERATORS.iter().find(|(spelling, _)| tail.starts_with(spelling)) else {
            return Ok(None);
        };
        let substitutes = (tail.starts_with("<(") || tail.starts_with(">(")) && skip == 0;
        if substitutes || (spelling.starts_with('&') && skip > 0) {
            return Ok(None);
        }
        self.at += skip + spelling.len();
        self.skip_blanks();
        if self
            .peek()
            .is_none_or(|byte| is_break(byte) && !self.looking_at("<(") && !self.looking_at(">("))
        {
            return self.malformed("a redirect without a target");
        }
        let target = self.word()?;
        let body = (*operator == Operator::HereDocument).then(|| self.wait_for_body(&target, *spelling == "<<-"));
        Ok(Some(Redirect {
            operator: *operator,
            target,
            body,
        }))
    }

    fn wait_for_body(&mut self, target: &Word, strip_tabs: bool) -> Rc<std::cell::OnceCell<Word>> {
        let (delimiter, literal) =
            literal(target).unwrap_or_else(|| (self.slice(target.span.start, target.span.end).to_owned(), false));
        let body: Rc<std::cell::OnceCell<Word>> = Rc::default();
        self.pending.push(Pending {
            delimiter,
            literal,
            strip_tabs,
            body: Rc::clone(&body),
        });
        body
    }
}

/// Length of `{name}` when a redirect follows it.
fn braced_fd(head: &str) -> usize {
    let inner = head.get(1..).unwrap_or_default();
    let length = name_length(inner);
    let tail = inner.get(length..).unwrap_or_default();
    let follows = tail.starts_with("}<") || tail.starts_with("}>");
    if length > 0 && follows { length + 2 } else { 0 }
}

/// Longest spelling first.
const OPERATORS: [(&str, Operator); 12] = [
    ("&>>", Operator::Append),
    ("&>", Operator::Write),
    ("<<<", Operator::HereString),
    ("<<-", Operator::HereDocument),
    ("<<", Operator::HereDocument),
    ("<>", Operator::ReadWrite),
    ("<&", Operator::DuplicateIn),
    ("<", Operator::Read),
    (">>", Operator::Append),
    (">&", Operator::DuplicateOut),
    (">|", Operator::Write),
    (">", Operator::Write),
];
