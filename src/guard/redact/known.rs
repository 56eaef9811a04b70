//! Secrets that the server itself holds: masked wherever they turn up, as they
//! are and in base64, also where a model writes them in pieces.
//!
//! A piece waits only while its end may begin a secret, so text flows as it comes;
//! the masked pieces joined are the masked text.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// Shorter ones are words as well, and would be masked in everything.
const LEAST: usize = 12;
/// What stands in their place.
const MASK: &str = "***";

/// The secrets, in every form that is looked for.
#[derive(Clone, Default)]
pub struct Known {
    needles: Arc<[String]>,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} forms of secrets", self.needles.len())
    }
}

impl Known {
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut needles = Vec::new();
        for secret in secrets.into_iter().filter(|secret| LEAST <= secret.len()) {
            needles.push(secret.to_owned());
            needles.extend((0..3).flat_map(|shift| encoded(secret, shift)));
        }
        // The longest first, so that none is cut short by one that it begins with.
        needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        needles.dedup();
        Self {
            needles: needles.into(),
        }
    }

    pub fn mask(&self, text: &str) -> String {
        let mut stream = self.stream();
        let mut masked = stream.push(text);
        masked.push_str(&stream.finish());
        masked
    }

    /// Of a text that comes in pieces.
    pub fn stream(&self) -> KnownStream {
        KnownStream {
            known: self.clone(),
            held: String::new(),
        }
    }

    /// What of the beginning of a text can go on, and how much of it that was.
    fn settled(&self, text: &str, over: bool) -> (String, usize) {
        let mut shown = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if !over
                && self
                    .needles
                    .iter()
                    .any(|needle| needle.len() > rest.len() && needle.starts_with(rest))
            {
                break;
            }
            if let Some(needle) = self.needles.iter().find(|needle| rest.starts_with(needle.as_str())) {
                shown.push_str(MASK);
                at += needle.len();
                continue;
            }
            let next = rest.chars().next().map_or(1, char::len_utf8);
            shown.push_str(rest.get(..next).unwrap_or_default());
            at += next;
        }
        (shown, at)
    }
}

/// The part of a base64 text that is the same whatever stands around the secret,
/// when it begins `shift` bytes into a group of three.
fn encoded(secret: &str, shift: usize) -> [String; 2] {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(secret.as_bytes());
    // Letters that bytes before and behind have a part in.
    let (before, whole) = ((shift * 8).div_ceil(6), bytes.len() * 8 / 6);
    let part = |text: String| text.get(before..whole).unwrap_or_default().to_owned();
    [part(STANDARD.encode(&bytes)), part(URL_SAFE.encode(&bytes))]
}

#[derive(Debug)]
pub struct KnownStream {
    known: Known,
    /// May be the beginning of a secret.
    held: String,
}

impl KnownStream {
    /// What can go on now.
    pub fn push(&mut self, piece: &str) -> String {
        if self.known.needles.is_empty() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let (shown, used) = self.known.settled(&self.held, false);
        self.held.drain(..used);
        shown
    }

    /// What is left when nothing more comes.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.known.settled(&held, true).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-local-0123456789-abcdef";

    fn known() -> Known {
        Known::new([KEY, "sk-local-0123", "short", "postgres:hunter2@"])
    }

    #[test]
    fn a_secret_is_masked_however_it_is_cut() {
        let text = format!("sk-la {KEY} sk-local-0123 postgres:hunter2@db short sk-loc");
        let whole = known().mask(&text);
        assert_eq!(whole, "sk-la *** *** ***db short sk-loc");
        for at in 0..=text.len() {
            let (one, two) = text.split_at(at);
            let mut stream = known().stream();
            let shown = [stream.push(one), stream.push(two), stream.finish()].concat();
            assert_eq!(shown, whole, "{at}");
        }
        let mut stream = known().stream();
        let mut shown: String = text.chars().map(|letter| stream.push(&letter.to_string())).collect();
        shown.push_str(&stream.finish());
        assert_eq!(shown, whole);
    }

    #[test]
    fn base64_of_it_is_masked_wherever_it_stands_in_the_text() {
        for before in ["", "a", "ab", "abc", "key: "] {
            for after in ["", "x", "xy", " and more"] {
                let text = format!("{before}{KEY}{after}");
                for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
                    let shown = known().mask(&format!("it is {encoded}."));
                    assert!(shown.contains(MASK) && shown.len() < encoded.len(), "{shown}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_secret_goes_on_at_once() {
        let mut stream = known().stream();
        assert_eq!(stream.push("안녕 world, ask"), "안녕 world, a");
        assert_eq!(stream.push(" me"), "sk me");
        assert_eq!(stream.finish(), "");
        let mut none = Known::default().stream();
        assert_eq!(none.push(KEY), KEY);
    }
}
