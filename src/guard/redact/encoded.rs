//! Secrets in base64: a run of its letters that decodes to text is redacted as
//! that text would be, and goes as a whole when there is a secret in it.

use std::sync::LazyLock;

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::{Captures, Regex};

use super::{Mode, compiled, hidden, plain};

/// Lines as `base64` and e-mail wrap them, then what is left.
static RUN: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?:[A-Za-z0-9+/]{40}[A-Za-z0-9+/]*\r?\n)*[A-Za-z0-9+/_-]{20,}={0,2}"));

/// What was encoded loosely is decoded all the same.
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const FOR_URLS: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

pub(super) fn apply(text: String, mode: Mode) -> String {
    let masked = RUN.replace_all(&text, |found: &Captures<'_>| {
        let all = found.get(0).map_or("", |all| all.as_str());
        if holds_secret(all, mode) {
            return whole(all, mode);
        }
        // Neighbouring lines may be separate texts.
        if !all.contains('\n') {
            return all.to_owned();
        }
        let lines = all.split_inclusive('\n').map(|line| {
            let bare = line.trim_end_matches(['\r', '\n']);
            let end = line.get(bare.len()..).unwrap_or_default();
            match holds_secret(bare, mode) {
                true => whole(bare, mode) + end,
                false => line.to_owned(),
            }
        });
        lines.collect()
    });
    match masked {
        std::borrow::Cow::Owned(masked) => masked,
        std::borrow::Cow::Borrowed(_) => text,
    }
}

fn whole(run: &str, mode: Mode) -> String {
    match mode {
        Mode::File => hidden(run, "base64", mode),
        _ => "***".to_owned(),
    }
}

/// Letters that tell whether a run may be text at all.
const HEAD: usize = 64;

/// Whether the beginning decodes to text. Most runs are numbers, hashes and
/// pictures, and end here: a command may print megabytes of them.
fn begins_as_text(run: &str) -> bool {
    let head: String = run
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .take(HEAD)
        .collect();
    let engine = if head.contains(['-', '_']) { FOR_URLS } else { PLAIN };
    let usable = head.trim_end_matches('=').len() / 4 * 4;
    let decoded = head.get(..usable).and_then(|letters| engine.decode(letters).ok());
    decoded.is_some_and(|bytes| match std::str::from_utf8(&bytes) {
        Ok(_) => true,
        // Cut within a character.
        Err(error) => error.error_len().is_none(),
    })
}

fn holds_secret(run: &str, mode: Mode) -> bool {
    if !begins_as_text(run) {
        return false;
    }
    let letters: String = run
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .collect();
    let engine = if letters.contains(['-', '_']) { FOR_URLS } else { PLAIN };
    // A letter too many cannot be decoded; the rest can.
    let whole = letters.trim_end_matches('=');
    let usable = if whole.len() % 4 == 1 {
        whole.len() - 1
    } else {
        whole.len()
    };
    let decoded = whole.get(..usable).and_then(|letters| engine.decode(letters).ok());
    let Some(decoded) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) else {
        return false;
    };
    plain(&decoded, mode) != decoded
}
