//! One invocation as rules see it: program, arguments, redirects, input, what
//! it writes, and how it is run.

use std::rc::Rc;

use super::Span;
use super::resolve::{Feed, Value};
use super::shell::Operator;

#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// Base name of the program in lower case; empty when decided at run time.
    pub(crate) name: String,
    pub(crate) program: Value,
    pub(crate) args: Vec<Value>,
    pub(crate) redirects: Vec<Redirected>,
    /// Variables set for this invocation alone, or set by it.
    pub(crate) assigned: Vec<(String, Value)>,
    pub(crate) span: Span,
    pub(crate) background: bool,
    /// Programs that start this one, outermost first.
    pub(crate) wrappers: Vec<String>,
    pub(crate) input: Option<Input>,
    pub(crate) feed: Option<Rc<Feed>>,
    pub(crate) writes: Vec<Write>,
    /// Runs in a container of its own.
    pub(crate) contained: bool,
    /// A program that nobody knows may run it, or never does.
    pub(crate) guessed: bool,
    /// The invocation whose words it stands among.
    pub(crate) runner: Option<Span>,
}

#[derive(Clone, Debug)]
pub(crate) struct Redirected {
    pub(crate) operator: Operator,
    pub(crate) target: Value,
}

/// A here-document or here-string.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) value: Value,
}

/// A file that the invocation changes.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) path: String,
    pub(crate) how: How,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Redirect,
    Tee,
    /// `cp`, `mv`, `install`: the last operand.
    Copy,
    InPlace,
    InPlaceScript,
    /// An option or operand that names an output file.
    Output,
    Delete,
}

impl Call {
    pub(crate) fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.name.as_str())
    }

    /// A short option: the letter in any `-abc` group before `--`.
    pub(crate) fn short(&self, letter: char) -> Option<Span> {
        self.options()
            .find(|arg| is_group(&arg.text) && arg.text.contains(letter))
            .map(|arg| arg.span)
    }

    /// A long option or an abbreviation of it that has at least `least` letters.
    pub(crate) fn long(&self, name: &str, least: usize) -> Option<Span> {
        self.options()
            .find(|arg| abbreviates(&arg.text, name, least))
            .map(|arg| arg.span)
    }

    /// Arguments before `--`.
    pub(crate) fn options(&self) -> impl Iterator<Item = &Value> {
        self.args.iter().take_while(|arg| arg.text != "--")
    }

    /// Arguments that are no options; everything behind `--` is one.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &Value> {
        let mut only_operands = false;
        self.args.iter().filter(move |arg| {
            if only_operands {
                return true;
            }
            only_operands = arg.text == "--";
            !only_operands && (!arg.text.starts_with('-') || arg.text == "-")
        })
    }

    /// The value of an option, `-o V`, `-oV`, `--out V` or `--out=V`, and the
    /// word in which it stands.
    pub(crate) fn option_text(&self, names: &'static [&'static str]) -> Option<(&str, &Value)> {
        self.option_texts(names).next()
    }

    pub(crate) fn option_texts<'c>(
        &'c self,
        names: &'static [&'static str],
    ) -> impl Iterator<Item = (&'c str, &'c Value)> {
        self.args.iter().enumerate().filter_map(move |(at, arg)| {
            for name in names {
                if arg.text == *name {
                    let next = self.args.get(at + 1)?;
                    return Some((next.text.as_str(), next));
                }
                if bundles(&arg.text, name) {
                    let next = self.args.get(at + 1)?;
                    return Some((next.text.as_str(), next));
                }
                let attached = if name.starts_with("--") {
                    arg.text.strip_prefix(name).and_then(|rest| rest.strip_prefix('='))
                } else {
                    arg.text.strip_prefix(name).filter(|rest| !rest.is_empty())
                };
                if let Some(text) = attached {
                    return Some((text, arg));
                }
            }
            None
        })
    }

    pub(crate) fn has(&self, spellings: &[&str]) -> Option<Span> {
        self.options()
            .find(|arg| spellings.contains(&arg.text.as_str()))
            .map(|arg| arg.span)
    }

    /// The literal text on standard input, when it is known.
    pub(crate) fn input_text(&self) -> Option<(&str, Span)> {
        if let Some(input) = &self.input {
            return Some((input.value.text.as_str(), input.value.span));
        }
        let feed = self.feed.as_ref()?;
        feed.text.as_deref().map(|text| (text, feed.span))
    }

    pub(crate) fn wrapped_by(&self, names: &[&str]) -> bool {
        self.wrappers.iter().any(|wrapper| names.contains(&wrapper.as_str()))
    }
}

/// `-sLo FILE`: a short option that takes the next word at the end of a group.
fn bundles(text: &str, name: &str) -> bool {
    let letters = text.get(1..).unwrap_or_default();
    name.len() == 2
        && !name.starts_with("--")
        && (2..=5).contains(&letters.len())
        && is_group(text)
        && letters.bytes().all(|letter| letter.is_ascii_alphabetic())
        && letters.as_bytes().last() == name.as_bytes().last()
        && letters
            .bytes()
            .filter(|letter| name.as_bytes().last() == Some(letter))
            .count()
            == 1
}

/// `-abc`, but neither `-` nor `--long`.
pub(crate) fn is_group(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-') && !text.starts_with("--")
}

pub(crate) fn abbreviates(text: &str, name: &str, least: usize) -> bool {
    let Some(given) = text.strip_prefix("--") else {
        return false;
    };
    let given = given.split('=').next().unwrap_or_default();
    given.len() >= least && name.starts_with(given)
}
