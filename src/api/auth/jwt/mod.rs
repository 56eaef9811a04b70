//! Tokens that somebody else signed. The algorithm is a property of our key,
//! never of the token: a token names one only to say which keys to try. Times
//! are judged by the server's clock, not by the library's.

mod mint;

pub use mint::{MintError, mint};

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::{Map, Value as Json};

use crate::base::Timestamp;
use crate::config;
use crate::model::principal::Scopes;

use crate::api::auth::jwks::{JwksError, JwksFile, Key};

/// What a token that holds says about its bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The tenant by the issuer's name for it.
    pub tenant: String,
    pub user: String,
    pub scopes: Scopes,
}

/// Why a token does not hold. The text may be shown to whoever sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token is not a JSON Web Token")]
    Malformed,
    /// Also for a key that is unknown: which keys there are is not told.
    #[error("the token is not signed by a key that this server trusts")]
    Untrusted,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
    #[error("the token's claim `{0}` is missing or not acceptable")]
    Claim(String),
}

/// Longer tokens are refused unread; header limits of common proxies are 8 KiB.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The longest name of a tenant and of a user.
const MAX_NAME_CHARS: usize = 128;

/// Verifies tokens as configured.
pub struct Verifier {
    secret: Option<Key>,
    file: Option<JwksFile>,
    config: config::Jwt,
}

impl Verifier {
    /// Nothing when no key is configured.
    pub fn new(config: &config::Jwt, now: Timestamp) -> Result<Option<Self>, JwksError> {
        if !config.is_configured() {
            return Ok(None);
        }
        // The library refuses empty secrets only, and the configuration has none.
        let secret = config.hs256_secret.as_ref().and_then(|secret| {
            let key = DecodingKey::from_secret(secret.expose().as_bytes()).ok()?;
            Some(Key {
                id: None,
                algorithm: Algorithm::HS256,
                key,
            })
        });
        let file = config
            .jwks_file
            .as_deref()
            .map(|path| JwksFile::open(path, now))
            .transpose()?;
        Ok(Some(Self {
            secret,
            file,
            config: config.clone(),
        }))
    }

    /// The claims of a token that holds at `now`.
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, TokenError> {
        self.verify_until(token, now).await.map(|(claims, _)| claims)
    }

    /// As [`Verifier::verify`], with the instant from which on it is void.
    pub async fn verify_until(&self, token: &str, now: Timestamp) -> Result<(Claims, Timestamp), TokenError> {
        let keys: Arc<[Key]> = match &self.file {
            Some(file) => file.keys(now).await,
            None => Arc::default(),
        };
        let claims = verified(token, self.secret.iter().chain(keys.iter()))?;
        let until = self.check_times(&claims, now)?;
        self.check_parties(&claims)?;
        let claims = Claims {
            tenant: name(&claims, &self.config.tenant_claim)?,
            user: name(&claims, &self.config.user_claim)?,
            scopes: scopes(claims.get(&self.config.scope_claim)),
        };
        Ok((claims, until))
    }

    /// When the token becomes void, if it holds now.
    fn check_times(&self, claims: &Map<String, Json>, now: Timestamp) -> Result<Timestamp, TokenError> {
        let leeway = i64::try_from(self.config.leeway.as_secs()).unwrap_or(i64::MAX);
        let now = now.0.div_euclid(1000);
        let expiry = instant(claims, "exp")?.ok_or_else(|| TokenError::Claim("exp".to_owned()))?;
        // RFC 7519 section 4.1.4: on or after this instant the token is void.
        let void = expiry.saturating_add(leeway);
        if void <= now {
            return Err(TokenError::Expired);
        }
        match instant(claims, "nbf")? {
            Some(start) if now.saturating_add(leeway) < start => Err(TokenError::NotYetValid),
            _ => Ok(Timestamp(void.saturating_mul(1000))),
        }
    }

    fn check_parties(&self, claims: &Map<String, Json>) -> Result<(), TokenError> {
        let expected = [("iss", &self.config.issuer), ("aud", &self.config.audience)];
        for (claim, expected) in expected {
            let Some(expected) = expected else { continue };
            let holds = match claims.get(claim) {
                Some(Json::String(given)) => given == expected,
                // Only an audience may be several.
                Some(Json::Array(given)) if claim == "aud" => given.iter().any(|one| one == expected),
                _ => false,
            };
            if !holds {
                return Err(TokenError::Claim(claim.to_owned()));
            }
        }
        Ok(())
    }
}

/// The claims of a token that one of `keys` signed.
fn verified<'k>(token: &str, keys: impl Iterator<Item = &'k Key>) -> Result<Map<String, Json>, TokenError> {
    if MAX_TOKEN_BYTES < token.len() {
        return Err(TokenError::Malformed);
    }
    // `none` and algorithms that the library does not know fail here.
    let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
    let named = |key: &&Key| match (&header.kid, &key.id) {
        (Some(wanted), Some(id)) => wanted == id,
        _ => true,
    };
    for key in keys.filter(|key| key.algorithm == header.alg).filter(named) {
        match decode(token, &key.key, &signature_only(key.algorithm)) {
            Ok(token) => return Ok(token.claims),
            // Claims are read after the signature was found good.
            Err(error) if matches!(error.kind(), ErrorKind::Json(_)) => return Err(TokenError::Malformed),
            Err(_) => {}
        }
    }
    Err(TokenError::Untrusted)
}

/// The library checks the signature; claims are checked here.
fn signature_only(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation
}

/// Seconds since the epoch; fractions are allowed and cut.
fn instant(claims: &Map<String, Json>, claim: &str) -> Result<Option<i64>, TokenError> {
    let Some(value) = claims.get(claim) else {
        return Ok(None);
    };
    // A cast of a float saturates.
    let seconds = value
        .as_i64()
        .or_else(|| value.as_f64().map(|seconds| seconds.floor() as i64));
    seconds.map(Some).ok_or_else(|| TokenError::Claim(claim.to_owned()))
}

fn name(claims: &Map<String, Json>, claim: &str) -> Result<String, TokenError> {
    let text = claims.get(claim).and_then(Json::as_str).filter(|text| is_name(text));
    text.map(str::to_owned)
        .ok_or_else(|| TokenError::Claim(claim.to_owned()))
}

/// Control characters would split log lines and upset stores.
fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= MAX_NAME_CHARS && !text.chars().any(char::is_control)
}

/// Words in one text, or a list of texts. Scopes of other servers are nothing
/// to us.
fn scopes(claim: Option<&Json>) -> Scopes {
    match claim {
        Some(Json::String(words)) => Scopes::from_known_names(words.split_ascii_whitespace()),
        Some(Json::Array(list)) => Scopes::from_known_names(list.iter().filter_map(Json::as_str)),
        _ => Scopes::NONE,
    }
}

#[cfg(test)]
mod tests;
