//! A resolved word, and where a text came from.

use crate::guard::Span;

/// Where the bytes of a text stand in the text that is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// Byte for byte, from this offset on.
    At(usize),
    /// Made on the way (decoded, joined): all of it stems from this span.
    From(Span),
}

impl Origin {
    pub(crate) fn place(self, span: Span) -> Span {
        match self {
            Self::At(offset) => Span {
                start: span.start + offset,
                end: span.end + offset,
            },
            Self::From(whole) => whole,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Value {
    pub(crate) text: String,
    /// No part of the text is decided at run time.
    pub(crate) known: bool,
    pub(crate) span: Span,
    /// The text stands byte for byte at this offset.
    pub(crate) verbatim: Option<usize>,
    /// The whole value is one part that is decided at run time.
    pub(crate) sole: bool,
    /// End of the last part of the text that is decided at run time.
    pub(crate) unknown_end: usize,
    /// A secret file that was read to make the value.
    pub(crate) secret: Option<Span>,
    /// What can be read from the file that `<(…)` stands for.
    pub(crate) content: Option<String>,
    /// Programs whose output is a part of the value.
    pub(crate) runs: Vec<Ran>,
}

#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) program: String,
    pub(crate) how: Substitution,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Substitution {
    Dollar,
    Backtick,
    Process,
}

impl Value {
    pub(crate) fn literal(text: &str, span: Span) -> Self {
        Self {
            text: text.to_owned(),
            known: true,
            span,
            ..Self::default()
        }
    }

    pub(crate) fn unknown(text: &str, span: Span) -> Self {
        Self {
            text: text.to_owned(),
            span,
            unknown_end: text.len(),
            ..Self::default()
        }
    }

    pub(crate) fn origin(&self) -> Origin {
        self.verbatim.map_or(Origin::From(self.span), Origin::At)
    }

    /// The text after the last `/`, when it is known.
    pub(crate) fn base_name(&self) -> Option<&str> {
        let cut = self.text.rfind(['/', '\\']).map_or(0, |at| at + 1);
        if cut < self.unknown_end {
            None
        } else {
            self.text.get(cut..)
        }
    }

    pub(crate) fn ran(&self, programs: &[&str]) -> bool {
        self.runs.iter().any(|ran| programs.contains(&ran.program.as_str()))
    }
}
