//! Tokens whose prefix says what they are.
//!
//! Only one that stands alone counts: inside a longer word (`task-…`) the
//! letters are no prefix. Linear in the text, whatever it holds.

use std::sync::LazyLock;

use regex::Regex;

use super::{Mode, compiled, hidden};

/// What may follow a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    /// Letters and digits.
    Plain,
    /// Underscores as well.
    Snake,
    /// Dashes as well.
    Dashed,
    /// Dashes and underscores as well.
    Joined,
    /// Exactly so many upper-case letters and digits.
    Upper,
    /// A number and a dash, then as [`Body::Dashed`].
    Numbered,
}

/// Prefix, what follows, and how much of it at least.
type Kind = (&'static str, Body, usize);

/// Of kinds that fit the first names the token in a file's marker.
const KINDS: &[Kind] = &[
    ("sk-", Body::Joined, 10),
    ("ghp_", Body::Plain, 10),
    ("github_pat_", Body::Snake, 10),
    ("gho_", Body::Plain, 10),
    ("ghu_", Body::Plain, 10),
    ("ghs_", Body::Plain, 10),
    ("ghr_", Body::Plain, 10),
    ("glpat-", Body::Joined, 10),
    ("xapp-", Body::Numbered, 10),
    ("xoxa-", Body::Dashed, 10),
    ("xoxb-", Body::Dashed, 10),
    ("xoxe-", Body::Dashed, 10),
    ("xoxp-", Body::Dashed, 10),
    ("xoxr-", Body::Dashed, 10),
    ("xoxs-", Body::Dashed, 10),
    ("AIza", Body::Joined, 30),
    ("AKIA", Body::Upper, 16),
    ("ASIA", Body::Upper, 16),
    ("pplx-", Body::Plain, 10),
    ("fal_", Body::Joined, 10),
    ("fc-", Body::Plain, 10),
    ("bb_live_", Body::Joined, 10),
    ("gAAAA", Body::Joined, 20),
    ("sk_live_", Body::Plain, 10),
    ("sk_test_", Body::Plain, 10),
    ("rk_live_", Body::Plain, 10),
    ("rk_test_", Body::Plain, 10),
    ("SG.", Body::Joined, 10),
    ("hf_", Body::Plain, 10),
    ("r8_", Body::Plain, 10),
    ("npm_", Body::Plain, 10),
    ("pypi-", Body::Joined, 10),
    ("dop_v1_", Body::Plain, 10),
    ("doo_v1_", Body::Plain, 10),
    ("am_", Body::Joined, 10),
    ("sk_", Body::Snake, 10),
    ("tvly-", Body::Plain, 10),
    ("exa_", Body::Plain, 10),
    ("gsk_", Body::Plain, 10),
    ("syt_", Body::Plain, 10),
    ("retaindb_", Body::Plain, 10),
    ("hsk-", Body::Plain, 10),
    // Keys of this server.
    ("hsk_", Body::Joined, 30),
    ("mem0_", Body::Plain, 10),
    ("brv_", Body::Plain, 10),
    ("xai-", Body::Plain, 30),
    ("ntn_", Body::Plain, 10),
    ("fw-", Body::Plain, 30),
    ("fw_", Body::Plain, 20),
    ("fpk_", Body::Plain, 30),
    ("secret_", Body::Plain, 40),
];

/// From this length on a token of small letters is no name.
const SURE_LENGTH: usize = 24;

/// Words that are long enough to be a token. Padding belongs to one kind only.
static WORD: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"SG\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)?|[A-Za-z0-9_-]{12,}={0,2}"));

/// Masks every token that stands alone.
pub(super) fn apply(text: &str, mode: Mode) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for found in WORD.find_iter(text) {
        let before = text.get(..found.start()).unwrap_or_default();
        if before.ends_with(is_word) {
            continue;
        }
        let padded = found.as_str();
        let word = match padded.starts_with("gAAAA") {
            true => padded,
            false => padded.trim_end_matches('='),
        };
        let Some((prefix, ..)) = KINDS.iter().find(|kind| fits(kind, word)) else {
            continue;
        };
        out.push_str(text.get(copied..found.start()).unwrap_or_default());
        out.push_str(&hidden(word, label(prefix), mode));
        copied = found.start() + word.len();
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

fn fits((prefix, body, least): &Kind, word: &str) -> bool {
    let Some(rest) = word.strip_prefix(prefix) else {
        return false;
    };
    let rest = match body {
        Body::Numbered => {
            let after = rest.trim_start_matches(|character: char| character.is_ascii_digit());
            match after.strip_prefix('-').filter(|_| after.len() < rest.len()) {
                Some(rest) => rest,
                None => return false,
            }
        }
        _ => rest,
    };
    let holds = |character: char| match body {
        Body::Plain => character.is_ascii_alphanumeric(),
        Body::Snake => character.is_ascii_alphanumeric() || character == '_',
        Body::Dashed | Body::Numbered => character.is_ascii_alphanumeric() || character == '-',
        Body::Joined => is_word(character) || ".=".contains(character),
        Body::Upper => character.is_ascii_uppercase() || character.is_ascii_digit(),
    };
    let is_long = *least <= rest.len() && (*body != Body::Upper || *least == rest.len());
    let may_be_words = matches!(body, Body::Joined | Body::Snake) && word.len() < SURE_LENGTH;
    is_long && rest.chars().all(holds) && !(may_be_words && are_words(rest))
}

/// `sk-folding-cube`, `sk_buff_head_init`: names of code.
fn are_words(text: &str) -> bool {
    let letters = |character: char| character.is_ascii_lowercase() || "-_".contains(character);
    text.contains(['-', '_']) && text.chars().all(letters)
}

/// Neighbouring kinds of one vendor share a name.
fn label(prefix: &'static str) -> &'static str {
    match prefix {
        "SG." => "SG",
        _ if prefix.starts_with("xox") => "xox",
        _ => prefix,
    }
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}
