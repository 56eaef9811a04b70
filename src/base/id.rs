//! Typed ids: a prefix that names the kind and a UUIDv7 in 26 characters of
//! lower-case Crockford base32 (the TypeID text form), so that text order is
//! time order and an id of the wrong kind does not parse.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Clock;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// 128 bits in groups of five.
const DIGITS: usize = 26;
/// No byte stands for so much.
const NONE: u8 = u8::MAX;
/// What each byte stands for.
const VALUES: [u8; 256] = values();

#[allow(clippy::indexing_slicing, reason = "a byte among 256, and a place in the alphabet")]
const fn values() -> [u8; 256] {
    let mut values = [NONE; 256];
    let mut place = 0;
    while place < ALPHABET.len() {
        values[ALPHABET[place] as usize] = place as u8;
        place += 1;
    }
    values
}

/// What an id names: the text before the underscore.
pub trait Kind: 'static {
    const PREFIX: &'static str;
}

/// An id of one kind, 16 bytes, `Copy`.
pub struct Id<K> {
    bits: u128,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Id<K> {
    /// A fresh id at the clock's present instant.
    pub fn new(clock: &Clock) -> Self {
        Self::from_bits(clock.uuid())
    }

    /// An id with chosen bits; tests and derived ids use it.
    pub fn from_bits(bits: u128) -> Self {
        Self {
            bits,
            kind: PhantomData,
        }
    }
}

/// The text is not an id of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an id such as `{prefix}_01jz8m4s7ye2tv6m0c9w3kq5rd`")]
pub struct ParseIdError {
    prefix: &'static str,
}

impl<K: Kind> FromStr for Id<K> {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let wrong = ParseIdError { prefix: K::PREFIX };
        let digits = text
            .strip_prefix(K::PREFIX)
            .and_then(|rest| rest.strip_prefix('_'))
            .ok_or(wrong.clone())?;
        // 26 digits hold 130 bits: a first digit above 7 would overflow.
        if digits.len() != DIGITS || digits.as_bytes().first().is_none_or(|first| b'7' < *first) {
            return Err(wrong);
        }
        let mut bits = 0u128;
        for digit in digits.bytes() {
            let value = VALUES.get(usize::from(digit)).copied().unwrap_or(NONE);
            if value == NONE {
                return Err(wrong);
            }
            bits = (bits << 5) | u128::from(value);
        }
        Ok(Self::from_bits(bits))
    }
}

impl<K: Kind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(K::PREFIX)?;
        f.write_str("_")?;
        let mut digits = [0u8; DIGITS];
        for (place, digit) in digits.iter_mut().rev().enumerate() {
            let value = (self.bits >> (5 * place)) & 31;
            *digit = ALPHABET.get(value as usize).copied().unwrap_or(b'0');
        }
        f.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl<K: Kind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// Derives would demand the same of the marker type.
impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Id<K> {}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.bits == other.bits
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bits.cmp(&other.bits)
    }
}
impl<K> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits.hash(state);
    }
}

impl<K: Kind> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, K: Kind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl<K: Kind> utoipa::PartialSchema for Id<K> {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .pattern(Some(format!("^{}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$", K::PREFIX)))
            .into()
    }
}

impl<K: Kind> utoipa::ToSchema for Id<K> {
    fn name() -> std::borrow::Cow<'static, str> {
        std::borrow::Cow::Owned(format!("{}_id", K::PREFIX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Session;
    impl Kind for Session {
        const PREFIX: &'static str = "ses";
    }

    #[test]
    fn text_form_round_trips_and_keeps_order() {
        for bits in [0, 1, 31, 32, u128::MAX, 1 << 127] {
            let id = Id::<Session>::from_bits(bits);
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(id.to_string().len(), 4 + DIGITS);
        }
        assert!(Id::<Session>::from_bits(7).to_string() < Id::<Session>::from_bits(1 << 90).to_string());
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "ses_",
            "turn_00000000000000000000000000",
            "ses_80000000000000000000000000",
            "ses_0000000000000000000000000u",
            "ses_é0000000000000000000000000",
        ] {
            assert!(text.parse::<Id<Session>>().is_err(), "{text}");
        }
    }
}
