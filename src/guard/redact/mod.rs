//! Secrets in text that leaves the server or enters a model's context, masked.
//!
//! Rules are rows: a pattern whose group `s` is the secret, and the modes it
//! holds in. Placeholders (`${TOKEN}`, `{password}`) are not secrets and stay;
//! what is masked already stays as it is, so redacting twice changes nothing.

mod encoded;
mod known;
mod rows;
mod rule;
mod spared;
mod stream;
mod token;

pub use known::{Known, KnownStream};
pub use stream::Stream;

use regex::Regex;

use crate::base::text::{first_chars, last_chars};
use crate::guard::file_access;

/// Where the text comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Logs, messages, listings: assignments to secret-like names are masked.
    Text,
    /// As text, and credentials inside URLs as well: what a stranger will see.
    Egress,
    /// Source code and command output: assignments stay, or code would break.
    Code,
    /// A file's content: as code, and what would show the ends of a secret is a
    /// marker, which nobody writes back by mistake as if it were the secret.
    File,
}

impl Mode {
    fn masks_assignments(self) -> bool {
        matches!(self, Self::Text | Self::Egress)
    }
}

/// Masks every secret that a rule knows.
pub fn redact(text: &str, mode: Mode) -> String {
    encoded::apply(plain(text, mode), mode)
}

/// Without a look into what is encoded.
fn plain(text: &str, mode: Mode) -> String {
    token::apply(&rule::apply(text.to_owned(), mode), mode)
}

/// Masks the output of a command: as code, unless the command prints the
/// environment or a file that holds one.
pub fn redact_output(text: &str, command: &str) -> String {
    redact(text, output_mode(command))
}

fn output_mode(command: &str) -> Mode {
    let shows_values = prints_environment(command) || names_environment_file(command);
    if shows_values { Mode::Text } else { Mode::Code }
}

/// First six and last four characters of a long secret, nothing of a short one.
pub fn mask(secret: &str) -> String {
    // 18: enough stays hidden when ten characters are shown.
    if secret.chars().nth(17).is_none() {
        return "***".to_owned();
    }
    format!("{}...{}", first_chars(secret, 6), last_chars(secret, 4))
}

fn hidden(secret: &str, label: &str, mode: Mode) -> String {
    if mode == Mode::File {
        format!("«redacted:{label}…»")
    } else {
        mask(secret)
    }
}

/// Whether a simple command of this text is one that lists variables.
fn prints_environment(command: &str) -> bool {
    command.split([';', '|', '&', '\n', '(']).any(|part| {
        let program = part
            .split_whitespace()
            .find(|word| !word.contains('=') && *word != "sudo")
            .unwrap_or_default()
            .trim_matches(['"', '\'']);
        let name = program.rsplit('/').next().unwrap_or_default();
        ["env", "printenv", "set", "export", "declare", "typeset"].contains(&name)
    })
}

fn names_environment_file(command: &str) -> bool {
    let words = command.split(|character: char| character.is_whitespace() || "/'\"=;|&<>()".contains(character));
    words.into_iter().any(file_access::holds_environment)
}

#[allow(clippy::expect_used, reason = "constant patterns; the tests build every one")]
fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("constant pattern")
}

#[cfg(test)]
mod tests;
