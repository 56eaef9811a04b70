//! The text of API keys: how one is made, what of it is stored, how one that
//! is not stored is compared. A key carries 256 random bits, so a plain hash
//! hides it and no slow one is needed.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::base::Secret;
use crate::base::random::{NoRandomness, unguessable};

/// Marks our keys for people and for scanners that look for leaked ones.
const PREFIX: &str = "hsk_";
const RANDOM_BYTES: usize = 32;

/// A new key, to be shown once.
pub fn generate() -> Result<Secret, NoRandomness> {
    Ok(Secret::new(format!(
        "{PREFIX}{}",
        URL_SAFE_NO_PAD.encode(unguessable()?)
    )))
}

/// Whether a credential has the shape of a stored key. Whatever has not need
/// not be looked up.
pub fn is_key(text: &str) -> bool {
    let random = text
        .strip_prefix(PREFIX)
        .and_then(|rest| URL_SAFE_NO_PAD.decode(rest).ok());
    random.is_some_and(|random| random.len() == RANDOM_BYTES)
}

/// What is stored of a key and looked up by: SHA-256 in lower-case hex.
pub fn hash(text: &str) -> String {
    digest(text.as_bytes())
}

/// SHA-256 in lower-case hex.
pub fn digest(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _written = write!(hex, "{byte:02x}");
    }
    hex
}

/// Compares a shown key with a configured one in a time that tells nothing of
/// either, not even the length: the digests are compared.
pub fn is_same(shown: &str, expected: &Secret) -> bool {
    let (shown, expected) = (
        Sha256::digest(shown.as_bytes()),
        Sha256::digest(expected.expose().as_bytes()),
    );
    bool::from(shown.as_slice().ct_eq(expected.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_has_its_shape_and_is_never_the_same() {
        let (one, two) = (generate().unwrap(), generate().unwrap());
        assert!(is_key(one.expose()));
        assert_eq!(one.expose().len(), 4 + 43);
        assert_ne!(one, two);
    }

    #[test]
    fn other_text_is_not_a_key() {
        let key = generate().unwrap();
        let key = key.expose();
        for text in [
            "",
            "hsk_",
            "sk-abc",
            &key[4..],
            &key[..46],
            &format!("{key}A"),
            &key.replace("hsk_", "hsk-"),
        ] {
            assert!(!is_key(text), "{text}");
        }
    }

    #[test]
    fn the_hash_is_plain_sha256_in_hex() {
        // FIPS 180-4, example of one block.
        assert_eq!(
            hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn only_the_same_key_is_the_same() {
        let key = Secret::new("0123456789abcdef");
        assert!(is_same("0123456789abcdef", &key));
        for other in ["", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef "] {
            assert!(!is_same(other, &key), "{other}");
        }
    }
}
