//! Words become values: quotes, escapes, braces, `$IFS`, constant variables
//! and literal substitutions. A part that is decided at run time keeps its
//! spelling and makes the value unknown; nothing is ever guessed silently.

mod braces;
mod output;
mod value;
mod variables;

pub(crate) use braces::{Mark, expand as expand_braces};
pub(crate) use output::{Decoder, Feed, decodes, literal_output};
pub(crate) use value::{Origin, Ran, Substitution, Value};
pub(crate) use variables::{Content, Variables};
