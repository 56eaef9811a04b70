//! Patterns of paths, and the paths that a command names. A path is compared as
//! it is opened: with `~`, `.` and `..` resolved, from every directory that the
//! text enters.

use std::path::Path;

use regex::Regex;

use super::glob::{FREE, Reach, TooLarge, expression, whole};
use super::words::{self, Mark, Word};
use crate::guard::file_access::normalised;
use crate::guard::{Judgement, Setting};

const WITHIN_PART: Reach = Reach { one: "[^/]", all: ".*" };

/// What of a command the pattern looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Anything,
    Writes,
    Reads,
}

#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    pub(super) text: String,
    aim: Aim,
    regex: Regex,
    /// Parts of the path, for words that the shell expands.
    parts: Vec<String>,
    /// A name, which may stand anywhere in a path.
    bare: bool,
}

/// How a path is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Argument,
    Read,
    Write,
}

impl PathPattern {
    /// `> PATH`, or a path alone: where redirects may write.
    pub(super) fn allowing(text: &str) -> Result<Option<Self>, TooLarge> {
        let (aim, rest) = aim(text);
        let words = words::words(rest);
        match words.as_slice() {
            [word] if aim == Aim::Writes || (aim == Aim::Anything && is_path(word)) => {
                Self::new(text, Aim::Writes, word, &expression(&plain(word), WITHIN_PART), false).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// `> PATH`, `< PATH`, or a path alone: wherever a command names it.
    pub(super) fn restricting(text: &str) -> Result<Option<Self>, TooLarge> {
        let (aim, rest) = aim(text);
        let words = words::words(rest);
        let [word] = words.as_slice() else { return Ok(None) };
        if aim == Aim::Anything && !is_path(word) {
            return Ok(None);
        }
        let word = plain(word);
        // What is in a directory, and the directory.
        let inside = match word.as_slice() {
            [directory @ .., Mark::One('/'), Mark::Star | Mark::Stars] => {
                format!("{}(?:/.*)?", expression(directory, FREE))
            }
            word => expression(word, FREE),
        };
        Self::new(text, aim, &word, &inside, true).map(Some)
    }

    fn new(text: &str, aim: Aim, word: &[Mark], inside: &str, ignore_case: bool) -> Result<Self, TooLarge> {
        Ok(Self {
            text: text.to_owned(),
            aim,
            regex: whole(inside, ignore_case)?,
            parts: shown(word).split('/').map(str::to_owned).collect(),
            bare: !word.contains(&Mark::One('/')),
        })
    }

    pub(super) fn hits(&self, path: &Named) -> bool {
        let meant = match self.aim {
            Aim::Anything => true,
            Aim::Writes => path.how == Use::Write,
            Aim::Reads => path.how == Use::Read,
        };
        let whole = || path.forms.iter().any(|form| self.regex.is_match(form));
        let part = || self.bare && path.parts().any(|part| self.regex.is_match(part));
        meant && (whole() || part())
    }

    /// Whether the shell could expand the word to a path that the pattern means.
    pub(super) fn may_hit(&self, path: &Named) -> bool {
        self.aim == Aim::Anything && !self.bare && path.expands && path.forms.iter().any(|form| self.meets(form))
    }

    fn meets(&self, form: &str) -> bool {
        let given: Vec<&str> = form.split('/').collect();
        let alike = |(own, given): (&String, &&str)| {
            let (loose, tight) = if has_wildcard(own) {
                (own.as_str(), *given)
            } else {
                (*given, own.as_str())
            };
            has_wildcard(own) && has_wildcard(given) || stands_for(loose, tight)
        };
        given.len() >= self.parts.len() && self.parts.iter().zip(&given).all(alike)
    }
}

/// A part of a path with `*`, `?` and `[…]` against one without.
fn stands_for(pattern: &str, text: &str) -> bool {
    if !has_wildcard(pattern) {
        return pattern == text;
    }
    let expression: String = pattern
        .split_inclusive(['*', '?', '['])
        .map(|piece| {
            let literal = piece.trim_end_matches(['*', '?', '[']);
            let more = if literal.len() < piece.len() { ".*" } else { "" };
            format!("{}{more}", regex::escape(literal))
        })
        .collect();
    // What follows a bracket is not read: it may stand for anything.
    let expression = match (expression.split_once(".*"), pattern.contains('[')) {
        (Some((head, _)), true) => format!("{head}.*"),
        _ => expression,
    };
    whole(&expression, true).is_ok_and(|regex| regex.is_match(text))
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn aim(text: &str) -> (Aim, &str) {
    match (text.strip_prefix('>'), text.strip_prefix('<')) {
        (Some(rest), _) => (Aim::Writes, rest.trim_start_matches('>')),
        (_, Some(rest)) => (Aim::Reads, rest),
        (None, None) => (Aim::Anything, text),
    }
}

/// A word alone that names files rather than a program.
fn is_path(word: &[Mark]) -> bool {
    let has_slash = word.contains(&Mark::One('/'));
    match word {
        [Mark::One('~')] => true,
        [Mark::One('~' | '.'), _, ..] => true,
        [Mark::Star | Mark::Stars, _, ..] => true,
        _ => has_slash,
    }
}

/// Without `./` at its beginning.
fn plain(word: &[Mark]) -> Word {
    match word {
        [Mark::One('.'), Mark::One('/'), rest @ ..] => rest.to_vec(),
        word => word.to_vec(),
    }
}

fn shown(word: &[Mark]) -> String {
    let texts = word.iter().map(|mark| match mark {
        Mark::One(character) => character.to_string(),
        Mark::Any => "?".to_owned(),
        Mark::Star | Mark::Stars => "*".to_owned(),
    });
    texts.collect()
}

/// A path that a command names, in the forms in which patterns may mean it.
#[derive(Debug)]
pub(super) struct Named {
    how: Use,
    forms: Vec<String>,
    /// The shell would replace it by what is there.
    expands: bool,
}

impl Named {
    pub(super) fn new(text: &str, how: Use, scene: &Scene<'_>) -> Self {
        let mut forms = vec![text.strip_prefix("./").unwrap_or(text).to_owned()];
        let home = ["~", "$HOME", "${HOME}"]
            .into_iter()
            .find_map(|own| text.strip_prefix(own));
        let text = match home.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => format!("{}{rest}", scene.home),
            None => text.to_owned(),
        };
        for directory in &scene.directories {
            let path = normalised(&Path::new(directory).join(&text));
            let Some(path) = path.to_str() else { continue };
            let below = |root: &str| {
                let rest = path.strip_prefix(root)?;
                (root.len() > 1 && (rest.is_empty() || rest.starts_with('/'))).then_some(rest)
            };
            forms.extend(below(scene.home).map(|rest| format!("~{rest}")));
            forms.extend(
                scene
                    .directories
                    .iter()
                    .filter_map(|root| below(root)?.strip_prefix('/').map(str::to_owned)),
            );
            forms.push(path.to_owned());
            if text.starts_with('/') {
                break;
            }
        }
        Self {
            how,
            expands: has_wildcard(&text),
            forms,
        }
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        self.forms
            .first()
            .into_iter()
            .flat_map(|form| form.split('/'))
            .filter(|part| !part.is_empty())
    }

    /// Writing there changes nothing.
    pub(super) fn is_nowhere(&self) -> bool {
        let nowhere = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];
        self.forms
            .first()
            .is_some_and(|form| nowhere.contains(&form.as_str()) || form.starts_with("/dev/fd/"))
    }
}

/// What relative paths are read from.
pub(super) struct Scene<'s> {
    home: &'s str,
    directories: Vec<String>,
}

/// Directories that a text enters; more are not followed.
const MOST_DIRECTORIES: usize = 8;

impl<'s> Scene<'s> {
    pub(super) fn new(judgement: &Judgement, setting: &Setting<'s>) -> Self {
        // Nothing known: relative names are read from a place of their own.
        let mut directories = vec![setting.cwd.unwrap_or("/.").to_owned()];
        for command in &judgement.commands {
            let enters = ["cd", "pushd"].contains(&command.program.as_str());
            let target = command.arguments.iter().find(|argument| !argument.starts_with('-'));
            if !enters || MOST_DIRECTORIES <= directories.len() {
                continue;
            }
            let target = target.map_or(setting.home, String::as_str);
            let target = match target.strip_prefix('~') {
                Some(rest) => format!("{}{rest}", setting.home),
                None => target.to_owned(),
            };
            let from = directories.last().cloned().unwrap_or_default();
            let entered = normalised(&Path::new(&from).join(target));
            directories.extend(entered.to_str().map(str::to_owned));
        }
        Self {
            home: setting.home,
            directories,
        }
    }
}

/// What of an argument may be a path: all of it, or what stands behind the name
/// of an option, a `@`, a scheme or a host.
pub(super) fn candidates(argument: &str) -> impl Iterator<Item = &str> {
    let behind = |mark: char| argument.split_once(mark).map(|(_, rest)| rest);
    let host = behind(':').filter(|rest| rest.starts_with(['/', '~']));
    let scheme = argument.strip_prefix("file://");
    [
        Some(argument),
        behind('='),
        argument.strip_prefix('@'),
        behind('@'),
        host,
        scheme,
    ]
    .into_iter()
    .flatten()
    .filter(|text| !text.is_empty())
}
