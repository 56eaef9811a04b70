//! Patches of several files in the V4A form: read, then tried on the texts of
//! the files, all before any file is touched.

mod apply;
mod hunk;
mod parse;

pub use apply::{Changes, Invalid, Landing, plan};
pub use parse::{Hunk, Line, Operation, ParseError, Sign, has_parent_component, parse};

#[cfg(test)]
mod tests;
