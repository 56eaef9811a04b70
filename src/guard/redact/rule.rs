//! Secrets told by what stands around them: how a rule is applied. The rules
//! themselves are rows of [`super::rows`].
//!
//! What is masked already is spared by every rule, so their order and a second
//! pass change nothing.

use std::borrow::Cow;
use std::ops::Range;

use regex::{Captures, Regex};

use super::{Mode, hidden, mask, rows, token};

/// Masks what any rule that holds in this mode finds.
pub(super) fn apply(mut text: String, mode: Mode) -> String {
    for rule in rows::RULES.iter().filter(|rule| (rule.holds)(mode)) {
        text = rule.apply(text, mode);
    }
    // Bare `key=value` pairs are telling only where the whole text is a form.
    if rows::FORM.is_match(&text) {
        text = rows::FORM_FIELD.apply(text, mode);
    }
    text
}

/// A kind of secret. The group `s` of the pattern (or `t`, `u`) is the secret,
/// `n` its name, `l` the start of the line when the name begins one, and `j`
/// what joins name and secret.
pub(super) struct Rule {
    /// What a file's marker calls the secret.
    pub(super) label: &'static str,
    pub(super) pattern: Regex,
    pub(super) holds: fn(Mode) -> bool,
    /// How the secret is shown.
    pub(super) shown: Shown,
    /// What the group `j` becomes: spaces around a sign say nothing.
    pub(super) joint: &'static str,
    /// Whether what was found is no secret after all.
    pub(super) spares: fn(&Found<'_>) -> bool,
}

#[derive(Clone, Copy)]
pub(super) enum Shown {
    /// Its ends, when it is long.
    Ends,
    /// As `***`, however long it is.
    Nothing,
    /// As something else.
    As(fn(&str) -> String),
}

/// What a rule is asked about.
pub(super) struct Found<'t> {
    pub(super) name: &'t str,
    pub(super) secret: &'t str,
    /// The text before the name.
    pub(super) before: &'t str,
    /// The text behind the secret.
    pub(super) behind: &'t str,
    pub(super) begins_line: bool,
    pub(super) mode: Mode,
}

impl Rule {
    pub(super) fn apply(&self, text: String, mode: Mode) -> String {
        let replaced = self
            .pattern
            .replace_all(&text, |found: &Captures<'_>| self.replace(&text, found, mode));
        match replaced {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => text,
        }
    }

    fn replace(&self, text: &str, found: &Captures<'_>, mode: Mode) -> String {
        let all = found.get(0).map_or(0..0, |all| all.range());
        let part = |range: Range<usize>| text.get(range).unwrap_or_default();
        let secret = ["s", "t", "u"].iter().find_map(|group| found.name(group));
        let secret = secret.map_or(all.end..all.end, |secret| secret.range());
        let name = found.name("n").map_or(all.start..all.start, |name| name.range());
        let about = Found {
            name: part(name.clone()),
            secret: part(secret.clone()),
            before: part(0..name.start),
            behind: part(secret.end..text.len()),
            begins_line: found.name("l").is_some(),
            mode,
        };
        if (self.spares)(&about) {
            return part(all).to_owned();
        }
        let masked = self.masked(about.secret, mode);
        let (joint, sign) = match found.name("j") {
            Some(joint) => (joint.range(), self.joint),
            None => (all.start..all.start, ""),
        };
        let (head, middle) = (part(all.start..joint.start), part(joint.end..secret.start));
        format!("{head}{sign}{middle}{masked}{}", part(secret.end..all.end))
    }

    /// A secret that is a token too shows no more than either would.
    fn masked(&self, secret: &str, mode: Mode) -> String {
        let inner = match self.shown {
            Shown::Nothing => return "***".to_owned(),
            Shown::As(shown) => return shown(secret),
            Shown::Ends => token::apply(secret, mode),
        };
        match mask(&inner) {
            masked if mode != Mode::File || masked == "***" => masked,
            _ if inner == secret => hidden(secret, self.label, mode),
            _ => inner,
        }
    }
}
