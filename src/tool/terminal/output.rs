//! A command's output: from bytes as they arrive to what the model reads.
//!
//! Memory stays bounded however much a command prints. What is shown never
//! holds half a secret: more is kept while the output streams than is shown at
//! the end, so that the cut through unread text falls away with the second cut.

use std::sync::LazyLock;

use regex::Regex;

use crate::base::text::{first_chars, last_chars};
use crate::guard::redact::redact_output;
use crate::tool::output::{Bounded, TERMINAL_MAX_CHARS, bounded, notice};

/// Kept while streaming: twice what is shown.
const KEPT_CHARS: usize = 2 * TERMINAL_MAX_CHARS;
/// Shown of the beginning and of the end, as [`Bounded`] parts them.
const HEAD_CHARS: usize = TERMINAL_MAX_CHARS * 2 / 5;
const TAIL_CHARS: usize = TERMINAL_MAX_CHARS - HEAD_CHARS;

/// Escape sequences of terminals: control sequences, operating-system commands
/// and other strings, charset and single-character escapes.
#[allow(clippy::expect_used, reason = "a constant pattern; a test builds it")]
static ESCAPES: LazyLock<Regex> = LazyLock::new(|| {
    let control = r"\x1b\[[0-?]*[ -/]*[@-~]";
    let string = r"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)";
    let other = r"\x1b[ -/]*[0-~]";
    Regex::new(&format!("{control}|{string}|{other}")).expect("constant pattern")
});

/// Both streams as they arrived, held to a bound.
#[derive(Debug)]
pub(super) struct Collected {
    text: Bounded,
}

impl Collected {
    pub(super) fn new() -> Self {
        Self {
            text: Bounded::new(KEPT_CHARS),
        }
    }

    pub(super) fn push(&mut self, piece: &str) {
        self.text.push(piece);
    }

    /// What the model reads: plain, trimmed, secrets masked, bounded.
    pub(super) fn shown(self, command: &str) -> String {
        let total = self.text.total();
        let (head, tail, omitted) = self.text.parts();
        if omitted == 0 {
            let text = plain(&format!("{head}{tail}"), command);
            return bounded(text.trim(), TERMINAL_MAX_CHARS);
        }
        let (head, tail) = (plain(&head, command), plain(&tail, command));
        let (head, tail) = (
            first_chars(head.trim_start(), HEAD_CHARS),
            last_chars(tail.trim_end(), TAIL_CHARS),
        );
        let shown = head.chars().count() + tail.chars().count();
        format!("{head}{}{tail}", notice(total.saturating_sub(shown), total))
    }
}

/// Without escapes of terminals, secrets masked.
pub(in crate::tool) fn plain(text: &str, command: &str) -> String {
    redact_output(&ESCAPES.replace_all(text, ""), command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, command: &str) -> String {
        let mut collected = Collected::new();
        collected.push(text);
        collected.shown(command)
    }

    #[test]
    fn escapes_go_and_tabs_stay() {
        let text = "\x1b[1;31mred\x1b[0m\tx\x1b]0;title\x07y\x1b]8;;http://a\x1b\\z\x1b(B\x1b=\n";
        assert_eq!(shown(text, "ls"), "red\txyz");
    }

    #[test]
    fn secrets_are_masked_also_where_colours_part_them() {
        let token = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
        let (one, two) = token.split_at(9);
        let text = shown(&format!("token {one}\x1b[0m{two}"), "cat x");
        assert!(!text.contains(two), "{text}");
        assert_eq!(shown("MY_TOKEN=hunter2hunter2", "env"), "MY_TOKEN=***");
    }

    #[test]
    fn long_output_keeps_its_beginning_and_its_end() {
        let text = shown(&format!("first\n{}\nlast", "x\n".repeat(200_000)), "yes");
        assert!(text.starts_with("first\n") && text.ends_with("\nlast"));
        assert!(
            text.contains("350,011 of 400,011 characters left out"),
            "{}",
            text.len()
        );
        assert!(text.chars().count() < TERMINAL_MAX_CHARS + 100);
    }

    #[test]
    fn a_secret_on_the_cut_of_the_stream_is_not_shown_in_part() {
        let token = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
        let cut = KEPT_CHARS * 2 / 5;
        let text = format!("{}{token}{}", "x ".repeat(cut / 2 - 10), "y".repeat(KEPT_CHARS));
        assert!(!shown(&text, "cat").contains("0123456789"));
    }
}
