//! Words of patterns as regular expressions, which match in linear time
//! whatever they are given.

use regex::{Regex, RegexBuilder};

use super::words::Mark;

/// A compiled pattern is far below this.
const MOST_COMPILED: usize = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

/// What wildcards stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// The class of what `?` stands for and `*` repeats.
    pub(super) one: &'static str,
    /// What `**` stands for.
    pub(super) all: &'static str,
}

/// Wildcards stand for anything.
pub(super) const FREE: Reach = Reach { one: ".", all: ".*" };

pub(super) fn expression(word: &[Mark], reach: Reach) -> String {
    let mut expression = String::new();
    for mark in word {
        match mark {
            Mark::One(character) => expression.push_str(&regex::escape(character.encode_utf8(&mut [0; 4]))),
            Mark::Any => expression.push_str(reach.one),
            Mark::Star => {
                expression.push_str(reach.one);
                expression.push('*');
            }
            Mark::Stars => expression.push_str(reach.all),
        }
    }
    expression
}

/// An expression for the whole text; `.` is any character.
pub(super) fn whole(expression: &str, ignore_case: bool) -> Result<Regex, TooLarge> {
    RegexBuilder::new(&format!(r"\A(?:{expression})\z"))
        .case_insensitive(ignore_case)
        .dot_matches_new_line(true)
        .size_limit(MOST_COMPILED)
        .build()
        .map_err(|_| TooLarge)
}
