//! Texts that bash reads a second time: array indexes inside strings that are
//! used as numbers or names, and prompt expansion.

use super::{Place, Tracer};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::resolve::Origin;

/// Builtins that take names of variables and evaluate the index in them.
const NAMERS: &[&str] = &[
    "let",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "read",
    "printf",
    "test",
    "[",
    "unset",
    "mapfile",
    "readarray",
    "getopts",
    "wait",
];

impl Tracer<'_> {
    pub(super) fn indexes_of(&mut self, call: &Call, place: &Place<'_>) {
        if NAMERS.contains(&call.name.as_str()) {
            for arg in &call.args {
                self.index_in(&arg.text, arg.span, place);
            }
        }
    }

    /// `a[$(cmd)]` in a string runs `cmd` once the string is used as a name or
    /// a number, which may happen anywhere later.
    pub(super) fn index_in(&mut self, text: &str, span: Span, place: &Place<'_>) {
        if text.contains("[$(") || text.contains("[`") {
            self.expanded_again(text, span, place);
        }
    }

    /// The text as if it stood in double quotes.
    pub(super) fn expanded_again(&mut self, text: &str, span: Span, place: &Place<'_>) {
        if text.contains("$(") || text.contains('`') {
            let mut inner = place.clone();
            inner.conditional = true;
            inner.feed = None;
            inner.origin = Origin::From(span);
            self.text(&format!(": \"{}\"", text.replace('"', "\\\"")), &inner);
        }
    }
}
