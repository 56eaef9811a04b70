//! The tree of a shell text. Spans are byte offsets into the text that was
//! parsed; quoting is already removed from words but remembered per piece.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::guard::Span;

#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) statements: Vec<Statement>,
}

/// Pipelines joined by `&&` and `||`, closed by `;`, a newline or `&`.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) chain: Vec<Pipeline>,
    pub(crate) background: bool,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) shape: Shape,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Shape {
    Simple(Simple),
    Group(Script),
    Subshell(Script),
    /// Conditions and bodies in the order in which they are written.
    If(Vec<Script>),
    Loop {
        condition: Script,
        body: Script,
    },
    For {
        name: String,
        words: Vec<Word>,
        body: Script,
    },
    Case {
        subject: Word,
        arms: Vec<Arm>,
    },
    Function {
        name: String,
        body: Rc<Command>,
    },
    /// `[[ … ]]` and `(( … ))`: only what they expand can run something.
    Test(Vec<Word>),
    Coproc(Box<Command>),
}

#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) patterns: Vec<Word>,
    pub(crate) body: Script,
}

#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
}

#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) append: bool,
    pub(crate) index: Option<Word>,
    pub(crate) value: Assigned,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Assigned {
    One(Word),
    Array(Vec<Word>),
}

#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) operator: Operator,
    pub(crate) target: Word,
    /// The text of a here-document: filled when the line that follows is read.
    pub(crate) body: Option<Rc<OnceCell<Word>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Read,
    Write,
    Append,
    ReadWrite,
    DuplicateIn,
    /// `>&word`: a file unless the word is a number or `-`.
    DuplicateOut,
    HereDocument,
    HereString,
}

#[derive(Debug, Default)]
pub(crate) struct Word {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Piece {
    Text {
        text: String,
        quoted: bool,
    },
    Param {
        param: Box<Param>,
        quoted: bool,
        span: Span,
    },
    /// `$(…)`, backticks and `${ …; }`. A `rewritten` script was parsed from
    /// unescaped text, so its spans say nothing about this text.
    Command {
        script: Box<Script>,
        quoted: bool,
        backtick: bool,
        rewritten: bool,
        span: Span,
    },
    /// `<(…)`, or `>(…)` when it reads what is written to it.
    Process {
        script: Box<Script>,
        reads: bool,
    },
    Arithmetic {
        inner: Box<Word>,
        span: Span,
    },
}

#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) lookup: Lookup,
    pub(crate) index: Option<Word>,
    pub(crate) change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Plain,
    Length,
    Indirect,
}

#[derive(Debug)]
pub(crate) enum Change {
    None,
    /// `:-`, `-`, `:=`, `=`: the word stands in when the variable is unset.
    Default(Word),
    /// `:+`, `+`: the word stands in when the variable is set.
    Alternate(Word),
    /// `:?`, `?`
    Demand(Word),
    TrimStart(Word),
    TrimEnd(Word),
    Replace {
        pattern: Word,
        with: Word,
        all: bool,
    },
    Slice(Word),
    Upper,
    Lower,
    Transform,
}
