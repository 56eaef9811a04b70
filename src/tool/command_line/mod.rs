//! What the terminal tool reads off a command line before and after a run.
//!
//! Advice and comfort only: which commands belong in the background, what a
//! benign exit code means. Whether a command may run is the guard's to say, and
//! what runs is the text that it judged and a person was shown, unchanged. So
//! nothing here rewrites a command that is run: `grouped_background` and
//! `sudo_reading_input` say what the original makes of a text, and `mounts_host`
//! what it makes of a volume, for backends that compare themselves with it.
//! `overwrites` says when a workspace is kept as it is.

mod foreground;
mod overwrites;
pub mod paths;
mod rewrite;
mod scan;

pub use foreground::{Unsuited, check_foreground};
pub use overwrites::overwrites;
pub use rewrite::{grouped_background, mounts_host, sudo_reading_input};

use scan::QUOTED;

/// What a command's exit code says when it is no failure.
pub fn exit_code_meaning(command: &str, code: i32) -> Option<&'static str> {
    let last = scan::marks(command);
    let last = parts(&last).rfind(|part| !is_blank(part))?;
    let from = last.first()?.at;
    let text = command.get(from..)?;
    // A separator inside quotes: which command came last is not certain here.
    if text.contains([';', '|']) && last.iter().any(|mark| mark.character == QUOTED) {
        return None;
    }
    let program = text.split_whitespace().find(|word| !is_assignment(word))?;
    let name = program.rsplit('/').next().unwrap_or(program);
    Some(match (name, code) {
        ("grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack", 1) => "no lines matched (not an error)",
        ("diff" | "colordiff", 1) => "the files differ (expected, not an error)",
        ("find", 1) => "some folders could not be read; what was found is still valid",
        ("test" | "[", 1) => "the condition is false (expected, not an error)",
        ("curl", 6) => "the host name could not be resolved",
        ("curl", 7) => "the host refused the connection",
        ("curl", 22) => "the server answered with an HTTP error",
        ("curl", 28) => "the request timed out",
        ("git", 1) => "git found a difference or nothing to do (often not an error)",
        _ => return None,
    })
}

/// Whether a working directory holds only characters that need no quoting.
pub fn is_plain_directory(path: &str) -> bool {
    path.chars()
        .all(|character| character.is_ascii_alphanumeric() || r"/\:_-.~ +@=,".contains(character))
}

/// The commands of a line. An `&` beside an arrow belongs to a redirect.
fn parts(marks: &[scan::Mark]) -> impl DoubleEndedIterator<Item = &[scan::Mark]> {
    let at = |place: Option<usize>| place.and_then(|place| marks.get(place)).map(|mark| mark.character);
    let ends = |place: usize, character: char| match character {
        ';' | '|' | '\n' => true,
        '&' => !matches!(at(place.checked_sub(1)), Some('>' | '<')) && at(Some(place + 1)) != Some('>'),
        _ => false,
    };
    let places = marks.iter().enumerate();
    let mut begin = 0;
    let mut parts = Vec::new();
    for (place, _) in places.filter(|(place, mark)| ends(*place, mark.character)) {
        parts.extend(marks.get(begin..place));
        begin = place + 1;
    }
    parts.extend(marks.get(begin..));
    parts.into_iter()
}

fn is_blank(marks: &[scan::Mark]) -> bool {
    marks.iter().all(|mark| mark.character.is_whitespace())
}

/// `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    word.contains('=') && name.starts_with(|first: char| !first.is_ascii_digit()) && name.chars().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_do_not_hide_the_program() {
        assert!(exit_code_meaning("cat x | /usr/bin/grep -c 'a b'", 1).is_some());
        assert!(exit_code_meaning("A='x y' make", 1).is_none());
        assert!(exit_code_meaning("", 1).is_none());
    }

    #[test]
    fn a_redirect_does_not_part_a_command() {
        for command in ["grep x f 2>&1", "grep x f &> log", "make & grep x f", "grep x f >&2;"] {
            assert!(exit_code_meaning(command, 1).is_some(), "{command}");
        }
        assert!(exit_code_meaning("grep x f & make", 1).is_none());
    }
}
