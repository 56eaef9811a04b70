//! Stream tokens: a signed note that its bearer may watch one thing for a
//! minute, in the name of whoever asked for it. It stands in a URL, so it is
//! short-lived, opens streams only, and is kept nowhere.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::api::failure::Failure;
use crate::base::{Secret, Timestamp};
use crate::model::id::{KeyId, SessionId, TenantId};

/// Marks our tokens for people and for scanners that look for leaked ones.
const PREFIX: &str = "hst_";
/// The key that signs is the database's, but for nothing else: what signs
/// cursors signs no token.
const PURPOSE: &[u8] = b"hermes-server stream token 1";
const SIGNATURE: usize = 32;

/// What may be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The session and each of its turns.
    Session(SessionId),
    /// The tenant's list streams.
    Tenant,
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    pub subject: Subject,
    pub tenant: TenantId,
    pub user: String,
    /// Sees the rows of all users.
    pub whole_tenant: bool,
    /// The key of whoever asked for it: when it ends, so does the token.
    pub key: Option<KeyId>,
    /// When the credential of whoever asked for it expires.
    pub until: Option<Timestamp>,
    /// No stream can be opened from then on.
    pub expires_at: Timestamp,
}

/// The text of a token.
pub fn write(secret: &Secret, pass: &Pass) -> Result<Secret, Failure> {
    let said = serde_json::to_vec(pass).map_err(Failure::internal)?;
    let mut signed = signer(secret)?.chain_update(&said).finalize().into_bytes().to_vec();
    signed.extend(said);
    Ok(Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(signed))))
}

/// What a token of ours says, also when it has expired.
pub fn read(secret: &Secret, token: &str) -> Result<Option<Pass>, Failure> {
    let signed = token
        .strip_prefix(PREFIX)
        .and_then(|rest| URL_SAFE_NO_PAD.decode(rest).ok());
    let Some((signature, said)) = signed.as_ref().and_then(|signed| signed.split_at_checked(SIGNATURE)) else {
        return Ok(None);
    };
    let genuine = signer(secret)?.chain_update(said).verify_slice(signature).is_ok();
    Ok(serde_json::from_slice(said).ok().filter(|_| genuine))
}

fn signer(secret: &Secret) -> Result<Hmac<Sha256>, Failure> {
    let keyed = |key: &[u8]| Hmac::<Sha256>::new_from_slice(key).map_err(Failure::internal);
    let own = keyed(secret.expose().as_bytes())?.chain_update(PURPOSE).finalize();
    keyed(&own.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass() -> Pass {
        Pass {
            subject: Subject::Session(SessionId::from_bits(7)),
            tenant: TenantId::from_bits(1),
            user: "ada".to_owned(),
            whole_tenant: false,
            key: Some(KeyId::from_bits(3)),
            until: None,
            expires_at: Timestamp(5),
        }
    }

    #[test]
    fn a_token_says_what_was_signed() {
        let secret = Secret::new("s");
        let token = write(&secret, &pass()).unwrap();
        assert_eq!(read(&secret, token.expose()).unwrap(), Some(pass()));
        assert!(
            token
                .expose()
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
    }

    #[test]
    fn what_was_changed_or_signed_by_others_says_nothing() {
        let secret = Secret::new("s");
        let token = write(&secret, &pass()).unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(&token.expose()[PREFIX.len()..]).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            let changed = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(changed));
            assert_eq!(read(&secret, &changed).unwrap(), None, "{place}");
        }
        for text in ["", "hst_", "hst_AAAA", &token.expose()[PREFIX.len()..]] {
            assert_eq!(read(&secret, text).unwrap(), None, "{text}");
        }
        assert_eq!(read(&Secret::new("t"), token.expose()).unwrap(), None);
        // A cursor's signature over the same bytes is none of a token.
        let said = serde_json::to_vec(&pass()).unwrap();
        let signer = Hmac::<Sha256>::new_from_slice(b"s").unwrap();
        let mut forged = signer.chain_update(&said).finalize().into_bytes().to_vec();
        forged.extend(said);
        let forged = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(forged));
        assert_eq!(read(&secret, &forged).unwrap(), None);
    }
}
