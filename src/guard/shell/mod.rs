//! Our own bash grammar: text in, tree with spans out.
//!
//! Total (every input gives an answer), linear in the input, bounded in depth
//! and nodes. It knows nothing of rules: what a command means is judged by the
//! floors above it.

mod ast;
mod command;
mod compound;
mod cursor;
mod expansion;
mod heredoc;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod others;
#[cfg(test)]
mod tests;
mod word;

pub(crate) use ast::{
    Assigned, Assignment, Change, Command, Lookup, Operator, Param, Piece, Pipeline, Redirect, Script, Shape, Simple,
    Statement, Word,
};
pub(crate) use cursor::Trouble;
pub(crate) use word::decode_ansi_c;

use cursor::Parser;

/// What could be read of a text: all statements before the first trouble, and
/// the trouble. Bash runs complete lines before it stumbles, so both count.
pub(crate) struct Parsed {
    pub(crate) script: Script,
    pub(crate) trouble: Option<Trouble>,
}

pub(crate) fn parse(text: &str) -> Parsed {
    Parser::new(text).document()
}
