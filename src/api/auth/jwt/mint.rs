//! Signing a token with our own secret, for trying things out before an
//! identity provider is there. The server itself never needs one.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Map, Value as Json, json};

use super::Claims;
use crate::base::{Secret, Timestamp};
use crate::config;
use crate::model::principal::Scope;

/// No token can be signed.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    #[error("`auth.jwt.hs256_secret` is not configured; a token cannot be signed")]
    NoSecret,
    #[error("the token could not be signed")]
    Signing(#[from] jsonwebtoken::errors::Error),
}

/// A token that a server with this configuration accepts from `now` on until
/// the claims expire.
pub fn mint(config: &config::Jwt, claims: &Claims, now: Timestamp) -> Result<Secret, MintError> {
    let secret = config.hs256_secret.as_ref().ok_or(MintError::NoSecret)?;
    let scopes: Vec<&str> = claims.scopes.iter().map(Scope::name).collect();
    let mut body = Map::new();
    for (claim, value) in [("iss", &config.issuer), ("aud", &config.audience)] {
        if let Some(value) = value {
            body.insert(claim.to_owned(), json!(value));
        }
    }
    body.insert("iat".to_owned(), seconds(now));
    body.insert("exp".to_owned(), seconds(claims.expires_at));
    body.insert(config.tenant_claim.clone(), json!(claims.tenant));
    body.insert(config.user_claim.clone(), json!(claims.user));
    body.insert(config.scope_claim.clone(), json!(scopes.join(" ")));
    let key = EncodingKey::from_secret(secret.expose().as_bytes())?;
    Ok(Secret::new(encode(&Header::new(Algorithm::HS256), &body, &key)?))
}

fn seconds(at: Timestamp) -> Json {
    json!(at.0.div_euclid(1000))
}
