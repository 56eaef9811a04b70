//! Compound commands: groups, conditions, loops, cases, tests, functions.

use super::ast::{Arm, Script, Shape, Word};
use super::command::Until;
use super::cursor::{Parser, Step, is_break};
use super::word::Stop;

impl Parser<'_> {
    /// The compound command at the cursor, if one begins there.
    pub(super) fn compound(&mut self) -> Step<Option<Shape>> {
        if self.peek() == Some(b'(') {
            return self.deeper(Self::parenthesis).map(Some);
        }
        let word = self.keyword();
        let read: fn(&mut Self) -> Step<Shape> = match word {
            "{" => Self::group,
            "if" => Self::condition,
            "while" | "until" => Self::while_loop,
            "for" | "select" => Self::for_loop,
            "case" => Self::case,
            "function" => Self::long_function,
            "[[" => Self::test,
            "coproc" => Self::coproc,
            "then" | "do" | "done" | "fi" | "elif" | "else" | "esac" | "}" | "in" if word != "in" => {
                return self.malformed("a reserved word where a command is expected");
            }
            _ => return Ok(None),
        };
        self.at += word.len();
        self.deeper(read).map(Some)
    }

    fn parenthesis(&mut self) -> Step<Shape> {
        if self.looking_at("((")
            && let Some(close) = self.arithmetic_end(self.at + 2)
        {
            let inner = self.arithmetic(self.at + 2, close)?;
            return Ok(Shape::Test(vec![inner]));
        }
        self.at += 1;
        let script = self.body(Until::Paren)?;
        self.expect(")", "a subshell is not closed")?;
        Ok(Shape::Subshell(script))
    }

    fn group(&mut self) -> Step<Shape> {
        let script = self.body(Until::Brace)?;
        self.expect_keyword("}", "a group is not closed")?;
        Ok(Shape::Group(script))
    }

    fn condition(&mut self) -> Step<Shape> {
        let mut parts = vec![self.body(Until::Then)?];
        self.expect_keyword("then", "`then` is missing")?;
        parts.push(self.body(Until::Else)?);
        while self.eat_keyword("elif") {
            parts.push(self.body(Until::Then)?);
            self.expect_keyword("then", "`then` is missing")?;
            parts.push(self.body(Until::Else)?);
        }
        if self.eat_keyword("else") {
            parts.push(self.body(Until::Fi)?);
        }
        self.expect_keyword("fi", "`fi` is missing")?;
        Ok(Shape::If(parts))
    }

    fn while_loop(&mut self) -> Step<Shape> {
        let condition = self.body(Until::Do)?;
        let body = self.do_body()?;
        Ok(Shape::Loop { condition, body })
    }

    fn do_body(&mut self) -> Step<Script> {
        self.skip_lines()?;
        if self.eat_keyword("{") {
            let body = self.body(Until::Brace)?;
            self.expect_keyword("}", "a loop is not closed")?;
            return Ok(body);
        }
        self.expect_keyword("do", "`do` is missing")?;
        let body = self.body(Until::Done)?;
        self.expect_keyword("done", "`done` is missing")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> Step<Shape> {
        self.skip_blanks();
        let mut words = Vec::new();
        let name = if self.looking_at("((") {
            let Some(close) = self.arithmetic_end(self.at + 2) else {
                return self.malformed("the head of a loop is not closed");
            };
            let inner = self.slice(self.at + 2, close);
            if inner.matches(';').count() < 2 {
                return self.malformed("the head of a loop is not complete");
            }
            words.push(self.arithmetic(self.at + 2, close)?);
            String::new()
        } else {
            let name = self.name().to_owned();
            if name.is_empty() {
                return self.malformed("a loop without a name");
            }
            self.skip_lines()?;
            if self.eat_keyword("in") {
                words = self.words_of_line()?;
            }
            name
        };
        self.skip_blanks();
        self.eat(";");
        let body = self.do_body()?;
        Ok(Shape::For { name, words, body })
    }

    fn words_of_line(&mut self) -> Step<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(byte) if !is_break(byte) || self.looking_at("<(") => words.push(self.word()?),
                _ => return Ok(words),
            }
        }
    }

    fn case(&mut self) -> Step<Shape> {
        self.skip_blanks();
        let subject = self.word()?;
        self.expect_keyword("in", "`in` is missing")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat_keyword("esac") {
                return Ok(Shape::Case { subject, arms });
            }
            arms.push(self.arm()?);
        }
    }

    fn arm(&mut self) -> Step<Arm> {
        self.eat("(");
        let mut patterns = Vec::new();
        loop {
            self.skip_blanks();
            patterns.push(self.word()?);
            self.skip_blanks();
            if self.eat("|") {
                continue;
            }
            self.expect(")", "a case pattern is not closed")?;
            break;
        }
        let body = self.script(Until::Arm)?;
        if !self.eat(";;&") && !self.eat(";;") {
            self.eat(";&");
        }
        Ok(Arm { patterns, body })
    }

    fn long_function(&mut self) -> Step<Shape> {
        self.skip_blanks();
        let start = self.at;
        while self.peek().is_some_and(|byte| !is_break(byte)) {
            self.bump();
        }
        let name = self.slice(start, self.at).to_owned();
        if name.is_empty() {
            return self.malformed("a function without a name");
        }
        self.skip_blanks();
        if self.eat("(") {
            self.skip_blanks();
            self.expect(")", "a parenthesis where none may stand")?;
        }
        self.function_body(name)
    }

    /// `[[ … ]]`: the operators are of no interest, the expansions are.
    fn test(&mut self) -> Step<Shape> {
        let mut words = Vec::new();
        let mut matches_pattern = false;
        loop {
            self.skip_lines()?;
            if self.eat_keyword("]]") {
                return Ok(Shape::Test(words));
            }
            let Some(byte) = self.peek() else {
                return self.malformed("`[[` is not closed");
            };
            if matches_pattern {
                words.push(self.run_of_pieces(Stop::Blank)?);
                matches_pattern = false;
            } else if self.looking_at("<(") || self.looking_at(">(") {
                words.push(self.word()?);
            } else if is_break(byte) {
                if matches!(byte, b';') {
                    return self.malformed("`[[` is not closed");
                }
                self.at += 1;
            } else {
                matches_pattern = self.looking_at("=~") && self.ahead(2).is_none_or(is_break);
                words.push(self.word()?);
            }
        }
    }

    fn coproc(&mut self) -> Step<Shape> {
        self.skip_blanks();
        // `coproc NAME { …; }`: a name may stand only before a compound command.
        let start = self.at;
        let name = self.name();
        self.skip_blanks();
        let compound = self.peek() == Some(b'(')
            || matches!(self.keyword(), "{" | "if" | "while" | "until" | "for" | "case" | "[[");
        if name.is_empty() || !compound {
            self.at = start;
        }
        Ok(Shape::Coproc(Box::new(self.command()?)))
    }
}
