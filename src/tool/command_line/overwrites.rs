//! Whether a command looks as if it took something away that was there: a hint
//! for whoever keeps copies, told by words alone. The guard judges; this does not.

use std::sync::LazyLock;

use regex::Regex;

#[allow(clippy::expect_used, reason = "constant patterns; a test builds them")]
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    let programs = r"rm\s|rmdir\s|cp\s|install\s|mv\s|sed\s+-i|truncate\s|dd\s|shred\s";
    let git = r"git\s+(?:reset|clean|checkout)\s";
    let words = format!(r"(?:^|\s|&&|\|\||;|`)(?:{programs}|{git})");
    // The separators of information are blanks to some.
    Regex::new(&words.replace(r"\s", r"[\s\x1c-\x1f]")).expect("constant pattern")
});

/// A single `>`; two append.
#[allow(clippy::expect_used, reason = "constant patterns; a test builds them")]
static REDIRECT: LazyLock<Regex> = LazyLock::new(|| Regex::new("[^>]>[^>]|^>[^>]").expect("constant pattern"));

pub fn overwrites(command: &str) -> bool {
    WORDS.is_match(command) || REDIRECT.is_match(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_away_is_told_by_its_words() {
        for command in ["rm -rf x", "git checkout .", "a && mv b c", "dd if=a of=b"] {
            assert!(overwrites(command), "{command}");
        }
        for command in ["ls", "git log", "echo a >> b"] {
            assert!(!overwrites(command), "{command}");
        }
    }
}
