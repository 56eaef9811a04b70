//! `auth`: how a caller proves who it is. Keys in the database are not here.

use std::path::PathBuf;
use std::time::Duration;

use crate::base::Secret;

use super::original;
use super::section::Section;

#[derive(Clone, Debug)]
pub struct Auth {
    /// A key from the environment; never stored.
    pub api_key: Option<Secret>,
    pub jwt: Jwt,
}

/// Tokens that somebody else signs.
#[derive(Clone, Debug)]
pub struct Jwt {
    pub hs256_secret: Option<Secret>,
    pub jwks_file: Option<PathBuf>,
    pub jwks_url: Option<url::Url>,
    /// How old the keys of the URL may get.
    pub jwks_ttl: Duration,
    /// Checked when set.
    pub issuer: Option<String>,
    /// Checked when set.
    pub audience: Option<String>,
    pub tenant_claim: String,
    pub scope_claim: String,
    pub user_claim: String,
    pub leeway: Duration,
    /// A tenant that no row knows appears on its first token.
    pub create_tenants: bool,
}

/// RFC 7518 section 3.2 asks an HS256 key to be as long as the hash.
const MIN_HS256_BYTES: usize = 32;
/// The original refuses shorter keys too.
const MIN_API_KEY_BYTES: usize = 16;

impl Auth {
    pub(super) fn read(section: &mut Section<'_>) -> Self {
        section.ignore(original::AUTH);
        Self {
            api_key: section.secret("api_key", "16 or more visible ASCII characters", is_strong_token),
            jwt: section.section("jwt", Jwt::read),
        }
    }

    /// Some credential other than the key of the first start is configured.
    pub fn is_configured(&self) -> bool {
        self.api_key.is_some() || self.jwt.is_configured()
    }
}

impl Jwt {
    fn read(section: &mut Section<'_>) -> Self {
        Self {
            hs256_secret: section.secret("hs256_secret", "text of at least 32 bytes", |text| {
                MIN_HS256_BYTES <= text.len()
            }),
            jwks_file: section.optional_path("jwks_file"),
            jwks_url: section.trusted_url("jwks_url"),
            jwks_ttl: section.seconds("jwks_ttl_seconds", 300, 10..=86_400),
            issuer: section.optional_text("issuer"),
            audience: section.optional_text("audience"),
            tenant_claim: section.text("tenant_claim", "tenant"),
            scope_claim: section.text("scope_claim", "scope"),
            user_claim: section.text("user_claim", "sub"),
            leeway: section.seconds("leeway_seconds", 30, 0..=600),
            create_tenants: section.flag("create_tenants", false),
        }
    }

    pub fn is_configured(&self) -> bool {
        self.hs256_secret.is_some() || self.jwks_file.is_some() || self.jwks_url.is_some()
    }
}

/// A key travels in a header, where only visible ASCII arrives whole, and is
/// tried against an open port, where a short one is guessed.
fn is_strong_token(text: &str) -> bool {
    MIN_API_KEY_BYTES <= text.len() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
