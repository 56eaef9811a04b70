//! Option grammar of programs that run other programs: which options take a
//! value, so that the command behind them is found.

use super::resolve::Value;

/// How a wrapper is written before the command it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grammar {
    pub(crate) names: &'static [&'static str],
    /// Options that take the next word as their value.
    pub(crate) valued: &'static [&'static str],
    /// Operands before the command (`timeout 5 cmd`: one).
    pub(crate) operands: usize,
    /// `NAME=value` words may stand before the command.
    pub(crate) assignments: bool,
    /// Options with which nothing is run (`command -v`).
    pub(crate) inert: &'static [&'static str],
    /// Options that take two words (`bwrap --bind A B`).
    pub(crate) paired: &'static [&'static str],
}

impl Grammar {
    pub(crate) const PLAIN: Self = Self {
        names: &[],
        valued: &[],
        operands: 0,
        assignments: false,
        inert: &[],
        paired: &[],
    };

    /// Index of the first word of the command that is run.
    pub(crate) fn command_at(&self, args: &[Value]) -> Option<usize> {
        let mut left = self.operands;
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            let text = arg.text.as_str();
            if self.inert.contains(&text) {
                return None;
            }
            if text == "--" {
                at += 1 + left;
                return (at < args.len()).then_some(at);
            }
            if text.starts_with('-') && text.len() > 1 {
                at += 1 + self.words_taken(text);
            } else if self.assignments && text == "-" {
                // `env - cmd` empties the environment.
                at += 1;
            } else if self.assignments && is_assignment(text) {
                at += 1;
            } else if left > 0 {
                left -= 1;
                at += 1;
            } else {
                return Some(at);
            }
        }
        None
    }

    fn words_taken(&self, text: &str) -> usize {
        if self.paired.contains(&text) {
            return 2;
        }
        usize::from(self.takes_next(text))
    }

    /// Whether the option's value is the next word.
    pub(crate) fn takes_next(&self, text: &str) -> bool {
        if text.starts_with("--") {
            return self.valued.contains(&text);
        }
        let letters = text.get(1..).unwrap_or_default();
        // A single-dash word may be an option of its own (`-context`).
        if self.valued.contains(&text) {
            return true;
        }
        for (position, letter) in letters.char_indices() {
            let spelled = self.valued.iter().any(|option| {
                let mut characters = option.chars();
                characters.next() == Some('-') && characters.next() == Some(letter) && characters.next().is_none()
            });
            if spelled {
                return position + letter.len_utf8() == letters.len();
            }
        }
        false
    }
}

pub(crate) fn is_assignment(text: &str) -> bool {
    match text.split_once('=') {
        Some((name, _)) => {
            let mut bytes = name.bytes();
            bytes
                .next()
                .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        }
        None => false,
    }
}
