//! Tokens whose prefix says what they are.
//!
//! Only one that stands alone counts: inside a longer word (`task-…`) the
//! letters are no prefix. Linear in the text, whatever it holds.

use std::sync::LazyLock;

use regex::Regex;

use super::{Mode, compiled, hidden};

/// Prefixes that announce a token of letters and digits.
const PLAIN: &[&str] = &[
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "pplx-", "fc-", "hf_",
    "r8_", "npm_", "dop_v1_", "doo_v1_", "tvly-", "exa_", "gsk_", "syt_", "ntn_",
];
/// Prefixes of tokens that hold dashes and underscores too, with the fewest
/// characters that must follow.
const JOINED: &[(&str, usize)] = &[
    ("sk-", 10),
    ("github_pat_", 10),
    ("glpat-", 10),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxe-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("fal_", 10),
    ("bb_live_", 10),
    ("pypi-", 10),
    // Keys of this server.
    ("hsk_", 30),
    ("gAAAA", 20),
    ("AIza", 30),
    ("xai-", 30),
];
/// Below this length a token without any digit is taken for a word.
const SURE_LENGTH: usize = 24;

static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let plain = PLAIN.iter().map(|prefix| format!("{prefix}[A-Za-z0-9]{{10,}}"));
    let joined = JOINED
        .iter()
        .map(|(prefix, least)| format!("{prefix}[A-Za-z0-9_-]{{{least},}}"));
    let special = [
        r"SG\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)?",
        "(?:AKIA|ASIA)[A-Z0-9]{16}",
        "sk_[a-f0-9]{40,}",
        "secret_[A-Za-z0-9]{40,}",
        "fw_[A-Za-z0-9]{20,}",
    ];
    let kinds: Vec<String> = plain.chain(joined).chain(special.map(str::to_owned)).collect();
    compiled(&kinds.join("|"))
});

/// Masks every token that stands alone.
pub(super) fn apply(text: &str, mode: Mode) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut from = 0;
    while let Some(found) = TOKEN.find_at(text, from) {
        let before = text.get(..found.start()).unwrap_or_default();
        let after = text.get(found.end()..).unwrap_or_default();
        if before.ends_with(is_word) || after.starts_with(is_word) || !is_token(found.as_str()) {
            // Every later start within this word is inside it too.
            let rest = text.get(found.start()..).unwrap_or_default();
            from = found.start() + rest.find(|character| !is_word(character)).unwrap_or(rest.len());
            continue;
        }
        out.push_str(text.get(copied..found.start()).unwrap_or_default());
        out.push_str(&hidden(found.as_str(), prefix_of(found.as_str()), mode));
        copied = found.end();
        from = copied;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

fn is_token(text: &str) -> bool {
    SURE_LENGTH <= text.len() || text.contains(|character: char| character.is_ascii_digit() || character.is_uppercase())
}

fn prefix_of(token: &str) -> &str {
    let known = PLAIN.iter().copied().chain(JOINED.iter().map(|(prefix, _)| *prefix));
    let fits = known
        .filter(|prefix| token.starts_with(prefix))
        .max_by_key(|prefix| prefix.len());
    fits.unwrap_or_else(|| token.get(..3).unwrap_or_default())
}
