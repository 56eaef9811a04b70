//! Patterns that hold a grant to some arguments and paths. In doubt they do not
//! match: a wildcard never stands for a way out of what a person read in the
//! pattern.

use std::path::Path;

use regex::{Regex, RegexBuilder};

/// A compiled pattern is far below this; one that is not covers nothing.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// Whether the pattern matches all of an argument's text. `*` stands for
/// letters, digits and `. _ - + @ % : = ,`: for one word, or one part of a path,
/// and for nothing that a shell would read as more. `**` stands for anything,
/// `?` for one character such as `*` stands for.
pub fn matches_argument(pattern: &str, text: &str) -> bool {
    if climbs(text) && !climbs(pattern) {
        return false;
    }
    compiled(pattern, r"[\w.+@%:=,-]").is_some_and(|regex| regex.is_match(text))
}

/// Whether the pattern matches a normalised path. `*` and `?` stay within one
/// part of it, `**` does not; a pattern that is not absolute begins in the
/// workspace.
pub fn matches_path(pattern: &str, path: &Path, workspace: &Path) -> bool {
    let named = if pattern.starts_with('/') {
        Some(path)
    } else {
        path.strip_prefix(workspace).ok()
    };
    let Some(text) = named.and_then(Path::to_str).filter(|text| !climbs(text)) else {
        return false;
    };
    compiled(pattern, "[^/]").is_some_and(|regex| regex.is_match(text))
}

/// A part of the text is `..`.
pub fn climbs(text: &str) -> bool {
    text.split(|character: char| !(character == '.' || character.is_alphanumeric()))
        .any(|part| part == "..")
}

/// `one` is the class of what `?` stands for and `*` repeats.
fn compiled(pattern: &str, one: &str) -> Option<Regex> {
    let mut expression = String::from(r"\A");
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '*' if rest.next_if_eq(&'*').is_some() => expression.push_str("(?s:.*)"),
            '*' => {
                expression.push_str(one);
                expression.push('*');
            }
            '?' => expression.push_str(one),
            other => expression.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    expression.push_str(r"\z");
    RegexBuilder::new(&expression)
        .size_limit(MAX_COMPILED_BYTES)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_an_argument_is_one_plain_word() {
        for (pattern, text, expected) in [
            ("rm -rf build/*", "rm -rf build/out", true),
            ("rm -rf build/*", "rm -rf build/a/b", false),
            ("rm -rf build/*", "rm -rf build/a b", false),
            ("rm -rf build/*", "rm -rf build/a;ls", false),
            ("rm -rf build/*", "rm -rf build/$HOME", false),
            ("rm -rf build/*", "rm -rf build/..", false),
            ("rm -rf build/**", "rm -rf build/a/../../x", false),
            ("rm -rf build/**", "rm -rf build/a/b", true),
            ("rm -rf build/**", "rm -rf build/a\nls", true),
            ("rm -rf ../*", "rm -rf ../x", true),
            ("git push origin *", "git push origin main", true),
            ("git push origin *", "GIT push origin main", false),
            ("git push origin *", "git push origin main\n", false),
            ("v?", "v1", true),
            ("v?", "v", false),
            ("a.c", "abc", false),
            ("", "", true),
        ] {
            assert_eq!(matches_argument(pattern, text), expected, "{pattern:?} on {text:?}");
        }
    }

    #[test]
    fn a_path_is_within_the_workspace_or_named_in_full() {
        let workspace = Path::new("/w/s");
        for (pattern, path, expected) in [
            ("src/**", "/w/s/src/a/b.rs", true),
            ("src/*", "/w/s/src/b.rs", true),
            ("src/*", "/w/s/src/a/b.rs", false),
            ("**", "/w/s", true),
            ("**", "/w/s/x", true),
            ("**", "/w/sx", false),
            ("**", "/etc/passwd", false),
            ("**", "/w/s/../x", false),
            ("/etc/*", "/etc/passwd", true),
            ("/w/s/src/**", "/w/s/src/a", true),
        ] {
            let matched = matches_path(pattern, Path::new(path), workspace);
            assert_eq!(matched, expected, "{pattern:?} on {path}");
        }
    }
}
