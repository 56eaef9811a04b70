//! What skills, their categories and their files may be called. A checked name
//! is one plain part of a path: it cannot lead anywhere else.

use std::path::{Component, Path, PathBuf};

/// Most characters of a name (Hermes).
const MAX_NAME_CHARS: usize = 64;
/// Folders of a skill that may hold files beside `SKILL.md`.
pub const FOLDERS: [&str; 4] = ["references", "templates", "scripts", "assets"];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    #[error("`{0}` must be 1 to {MAX_NAME_CHARS} of `a-z 0-9 . _ -`, beginning with a letter or digit")]
    Part(String),
    #[error("`{0}` must be a file in one of the folders {folders}", folders = FOLDERS.map(|folder| format!("`{folder}/`")).join(", "))]
    File(String),
    #[error("`{0}` must be a file of the skill, as a path within it")]
    Outside(String),
}

/// A skill's or category's name.
pub fn part(text: &str) -> Result<&str, BadName> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let right = text.starts_with(is_plain)
        && text.len() <= MAX_NAME_CHARS
        && text.chars().all(|c| is_plain(c) || matches!(c, '.' | '_' | '-'));
    right.then_some(text).ok_or_else(|| BadName::Part(text.to_owned()))
}

/// Where a skill is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf<'a> {
    /// In any category.
    Any,
    Category(&'a str),
    Plugin(&'a str),
}

/// A skill as it is asked for: `name`, `category/name` or `plugin:name`.
pub fn asked(text: &str) -> Result<(Shelf<'_>, &str), BadName> {
    if let Some((plugin, name)) = text.split_once(':') {
        return Ok((Shelf::Plugin(part(plugin)?), part(name)?));
    }
    match text.split_once('/') {
        Some((category, name)) => Ok((Shelf::Category(part(category)?), part(name)?)),
        None => Ok((Shelf::Any, part(text)?)),
    }
}

/// A file of a skill, as a path within it: what may be read. Nothing hidden is.
pub fn inside(text: &str) -> Result<PathBuf, BadName> {
    let bad = || BadName::Outside(text.to_owned());
    let parts = parts(text).ok_or_else(bad)?;
    match parts.iter().any(|part| part.starts_with('.')) {
        true => Err(bad()),
        false => Ok(parts.iter().collect()),
    }
}

/// A file beside `SKILL.md`, as a path within the skill: what may be written.
pub fn support(text: &str) -> Result<PathBuf, BadName> {
    let bad = || BadName::File(text.to_owned());
    let parts = parts(text).ok_or_else(bad)?;
    match 2 <= parts.len() && parts.first().is_some_and(|first| FOLDERS.contains(first)) {
        true => Ok(parts.iter().collect()),
        false => Err(bad()),
    }
}

/// The plain names that a path to a file goes through.
fn parts(text: &str) -> Option<Vec<&str>> {
    if text.is_empty() || text.ends_with('/') || text.contains(['\0', '\\']) {
        return None;
    }
    let components = Path::new(text).components();
    let plain = components.map(|component| match component {
        Component::Normal(part) => part.to_str(),
        _ => None,
    });
    plain.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_plain_parts() {
        for right in ["a", "web-search", "v1.2_x", "0"] {
            assert_eq!(part(right), Ok(right));
        }
        for wrong in [
            "",
            "..",
            ".hidden",
            "A",
            "a/b",
            "a b",
            "-x",
            "é",
            "e\u{301}",
            "ａ",
            "a\u{200b}",
            "%2e%2e",
            "а",
            &"x".repeat(65),
        ] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
        assert_eq!(asked("ops/deploy"), Ok((Shelf::Category("ops"), "deploy")));
        assert_eq!(asked("forge:deploy"), Ok((Shelf::Plugin("forge"), "deploy")));
        assert!(asked("forge:ops/deploy").is_err() && asked(":x").is_err() && asked("a:b:c").is_err());
        assert!(asked("ops/../x").is_err() && asked("/etc").is_err() && asked("a/b/c").is_err());
    }

    #[test]
    fn files_lie_in_the_folders_of_a_skill_and_nowhere_else() {
        assert_eq!(support("scripts/run.sh"), Ok(PathBuf::from("scripts/run.sh")));
        assert_eq!(
            support("references/api/v1.md"),
            Ok(PathBuf::from("references/api/v1.md"))
        );
        for wrong in [
            "run.sh",
            "scripts",
            "scripts/",
            "scripts/../../x",
            "/scripts/x",
            "other/x",
            "scripts/./../x",
        ] {
            assert!(support(wrong).is_err(), "{wrong}");
        }
        // Whoever reads may look beside them, and not at what is hidden.
        for right in ["SKILL.md", "forms.md", "ooxml/schema.xsd"] {
            assert_eq!(inside(right), Ok(PathBuf::from(right)));
        }
        for wrong in [
            "",
            "..",
            "../x",
            "a/../../x",
            "/x",
            "a/",
            ".pinned",
            "a/.git/config",
            "a\\b",
            "a\0",
        ] {
            assert!(inside(wrong).is_err(), "{wrong}");
        }
    }
}
