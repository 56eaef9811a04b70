//! Which tokens hold: every algorithm, every forgery, every claim. Tokens are
//! signed with the keys under `tests/data/keys` and judged at one fixed instant.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;

use super::*;
use crate::base::Secret;
use crate::model::principal::Scope;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const RSA: &[u8] = include_bytes!("../../../../tests/data/keys/rsa.pem");
const RSA_PUBLIC: &[u8] = include_bytes!("../../../../tests/data/keys/rsa.public.pem");
const EC: &[u8] = include_bytes!("../../../../tests/data/keys/ec.pem");
const EC_384: &[u8] = include_bytes!("../../../../tests/data/keys/ec384.pem");
const ED: &[u8] = include_bytes!("../../../../tests/data/keys/ed.pem");

/// 2026-01-31T09:30:00Z; every token here is judged at this instant.
const NOW: Timestamp = Timestamp(1_769_851_800_000);
const NOW_SECONDS: i64 = NOW.0 / 1000;

fn config(change: impl FnOnce(&mut config::Jwt)) -> config::Jwt {
    let mut jwt = config::Config::load(&config::Sources::default()).unwrap().auth.jwt;
    change(&mut jwt);
    jwt
}

fn with_secret(jwt: &mut config::Jwt) {
    jwt.hs256_secret = Some(Secret::new(SECRET));
}

fn with_file(jwt: &mut config::Jwt) {
    jwt.jwks_file = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keys/jwks.json").into());
}

fn verifier(change: impl FnOnce(&mut config::Jwt)) -> Verifier {
    Verifier::new(&config(change), NOW, &TaskTracker::new())
        .unwrap()
        .unwrap()
}

fn claims() -> Json {
    json!({ "tenant": "acme", "sub": "ada", "scope": "sessions:read turns:write", "exp": NOW_SECONDS + 60 })
}

/// The usual claims, with some replaced; null takes one out.
fn claims_with(changes: &Json) -> Json {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

fn sign(algorithm: Algorithm, kid: Option<&str>, key: &EncodingKey, claims: &Json) -> String {
    let header = Header {
        kid: kid.map(str::to_owned),
        ..Header::new(algorithm)
    };
    encode(&header, claims, key).unwrap()
}

fn hs256(claims: &Json) -> String {
    sign(
        Algorithm::HS256,
        None,
        &EncodingKey::from_secret(SECRET.as_bytes()).unwrap(),
        claims,
    )
}

async fn outcome(verifier: &Verifier, changes: &Json) -> Result<Claims, TokenError> {
    verifier.verify(&hs256(&claims_with(changes)), NOW).await
}

fn refused(claim: &str) -> Result<Claims, TokenError> {
    Err(TokenError::Claim(claim.to_owned()))
}

#[tokio::test]
async fn a_token_of_each_algorithm_is_accepted() {
    let verifier = verifier(|jwt| {
        with_secret(jwt);
        with_file(jwt);
    });
    let rsa = EncodingKey::from_rsa_pem(RSA).unwrap();
    let ec = EncodingKey::from_ec_pem(EC).unwrap();
    let ed = EncodingKey::from_ed_pem(ED).unwrap();
    let tokens = [
        hs256(&claims()),
        sign(Algorithm::RS256, Some("rsa-1"), &rsa, &claims()),
        sign(Algorithm::RS256, None, &rsa, &claims()),
        sign(Algorithm::ES256, Some("ec-1"), &ec, &claims()),
        sign(Algorithm::EdDSA, Some("ed-1"), &ed, &claims()),
    ];
    let expected = Claims {
        tenant: "acme".to_owned(),
        user: "ada".to_owned(),
        scopes: [Scope::SessionsRead, Scope::TurnsWrite].into_iter().collect(),
        expires_at: NOW.after(std::time::Duration::from_secs(60)),
    };
    for token in tokens {
        assert_eq!(verifier.verify(&token, NOW).await, Ok(expected.clone()), "{token}");
    }
}

#[tokio::test]
async fn a_key_is_used_with_its_own_algorithm_only() {
    let file = verifier(with_file);
    let rsa = EncodingKey::from_rsa_pem(RSA).unwrap();
    // The old confusion: the public key as the secret of an HMAC.
    for secret in [RSA_PUBLIC, RSA_PUBLIC.trim_ascii_end()] {
        let key = EncodingKey::from_secret(secret).unwrap();
        for algorithm in [Algorithm::HS256, Algorithm::HS512] {
            let token = sign(algorithm, Some("rsa-1"), &key, &claims());
            assert_eq!(
                file.verify(&token, NOW).await,
                Err(TokenError::Untrusted),
                "{algorithm:?}"
            );
        }
    }
    for algorithm in [Algorithm::RS512, Algorithm::PS256] {
        let token = sign(algorithm, Some("rsa-1"), &rsa, &claims());
        assert_eq!(
            file.verify(&token, NOW).await,
            Err(TokenError::Untrusted),
            "{algorithm:?}"
        );
    }
    let secret = verifier(with_secret);
    let token = sign(
        Algorithm::HS512,
        None,
        &EncodingKey::from_secret(SECRET.as_bytes()).unwrap(),
        &claims(),
    );
    assert_eq!(secret.verify(&token, NOW).await, Err(TokenError::Untrusted));
}

#[tokio::test]
async fn a_token_without_a_trusted_signature_is_refused() {
    let verifier = verifier(|jwt| {
        with_secret(jwt);
        with_file(jwt);
    });
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let good = hs256(&claims());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let forged = encode(&claims_with(&json!({ "tenant": "other" })).to_string());
    let head = signed.split('.').next().unwrap();
    for token in [
        String::new(),
        "a.b".to_owned(),
        "hsk_x".to_owned(),
        "a".repeat(MAX_TOKEN_BYTES + 1),
    ] {
        assert_eq!(
            verifier.verify(&token, NOW).await,
            Err(TokenError::Malformed),
            "{token:.20}"
        );
    }
    for none in ["none", "None", "NONE", ""] {
        let header = encode(&json!({ "alg": none, "typ": "JWT" }).to_string());
        for token in [format!("{header}.{forged}."), format!("{header}.{forged}.{signature}")] {
            assert_eq!(verifier.verify(&token, NOW).await, Err(TokenError::Malformed), "{none}");
        }
    }
    let stranger = EncodingKey::from_ec_pem(EC_384).unwrap();
    for token in [
        format!("{head}.{forged}.{signature}"),
        format!("{signed}."),
        sign(
            Algorithm::HS256,
            None,
            &EncodingKey::from_secret(b"another secret").unwrap(),
            &claims(),
        ),
        sign(Algorithm::ES384, Some("ec-384"), &stranger, &claims()),
        sign(
            Algorithm::RS256,
            Some("rsa-9"),
            &EncodingKey::from_rsa_pem(RSA).unwrap(),
            &claims(),
        ),
    ] {
        assert_eq!(
            verifier.verify(&token, NOW).await,
            Err(TokenError::Untrusted),
            "{token}"
        );
    }
}

#[tokio::test]
async fn a_token_lives_from_nbf_until_exp_with_the_leeway_on_both_sides() {
    let verifier = verifier(with_secret);
    for (changes, expected) in [
        (json!({ "exp": NOW_SECONDS - 29 }), None),
        (json!({ "exp": NOW_SECONDS - 30 }), Some(TokenError::Expired)),
        (json!({ "exp": 0 }), Some(TokenError::Expired)),
        (json!({ "exp": -1 }), Some(TokenError::Expired)),
        (json!({ "exp": i64::MAX }), None),
        (json!({ "exp": 1e300 }), None),
        (json!({ "exp": NOW_SECONDS as f64 + 0.5 }), None),
        (json!({ "nbf": NOW_SECONDS + 30 }), None),
        (json!({ "nbf": NOW_SECONDS + 31 }), Some(TokenError::NotYetValid)),
        (json!({ "nbf": "soon" }), Some(TokenError::Claim("nbf".to_owned()))),
        (json!({ "exp": "never" }), Some(TokenError::Claim("exp".to_owned()))),
        (json!({ "exp": null }), Some(TokenError::Claim("exp".to_owned()))),
    ] {
        assert_eq!(outcome(&verifier, &changes).await.err(), expected, "{changes}");
    }
}

#[tokio::test]
async fn issuer_and_audience_are_held_to_where_configured() {
    let open = verifier(with_secret);
    assert!(outcome(&open, &json!({ "iss": "anyone", "aud": ["x"] })).await.is_ok());
    let strict = verifier(|jwt| {
        with_secret(jwt);
        jwt.issuer = Some("https://id".to_owned());
        jwt.audience = Some("hermes".to_owned());
    });
    let good = json!({ "iss": "https://id", "aud": "hermes" });
    assert!(outcome(&strict, &good).await.is_ok());
    assert!(
        outcome(&strict, &json!({ "iss": "https://id", "aud": ["a", "hermes"] }))
            .await
            .is_ok()
    );
    for (iss, aud, wrong) in [
        (json!("https://id/"), json!("hermes"), "iss"),
        (json!(["https://id"]), json!("hermes"), "iss"),
        (json!(null), json!("hermes"), "iss"),
        (json!("https://id"), json!(null), "aud"),
        (json!("https://id"), json!("Hermes"), "aud"),
        (json!("https://id"), json!([]), "aud"),
        (json!("https://id"), json!({ "hermes": true }), "aud"),
    ] {
        let changes = json!({ "iss": iss, "aud": aud });
        assert_eq!(outcome(&strict, &changes).await, refused(wrong), "{changes}");
    }
}

#[tokio::test]
async fn tenant_and_user_must_be_names() {
    let verifier = verifier(with_secret);
    let longest = "é".repeat(MAX_NAME_CHARS);
    assert_eq!(
        outcome(&verifier, &json!({ "tenant": longest })).await.unwrap().tenant,
        longest
    );
    for claim in ["tenant", "sub"] {
        let long = "é".repeat(MAX_NAME_CHARS + 1);
        for value in [
            json!(null),
            json!(""),
            json!("  "),
            json!(5),
            json!("a\u{0}"),
            json!("a\nb"),
            json!(long),
        ] {
            assert_eq!(
                outcome(&verifier, &json!({ claim: value })).await,
                refused(claim),
                "{claim} {value}"
            );
        }
    }
}

#[tokio::test]
async fn signed_claims_of_the_wrong_shape_are_no_token() {
    let verifier = verifier(with_secret);
    assert_eq!(
        outcome(&verifier, &json!({ "sub": ["a"] })).await,
        Err(TokenError::Malformed)
    );
    for payload in [json!([]), json!("text"), json!(null)] {
        assert_eq!(
            verifier.verify(&hs256(&payload), NOW).await,
            Err(TokenError::Malformed),
            "{payload}"
        );
    }
}

#[tokio::test]
async fn scopes_are_words_or_a_list_and_strange_ones_are_nothing() {
    let verifier = verifier(with_secret);
    let both: Scopes = [Scope::Admin, Scope::GrantsWrite].into_iter().collect();
    for (value, expected) in [
        (json!("openid admin  grants:write email"), both),
        (json!(["grants:write", "admin", "profile", 5]), both),
        (json!("Admin ADMIN admin:all"), Scopes::NONE),
        (json!(null), Scopes::NONE),
        (json!({ "admin": true }), Scopes::NONE),
    ] {
        assert_eq!(
            outcome(&verifier, &json!({ "scope": value })).await.unwrap().scopes,
            expected,
            "{value}"
        );
    }
}

#[tokio::test]
async fn claims_may_have_other_names() {
    let verifier = verifier(|jwt| {
        with_secret(jwt);
        jwt.tenant_claim = "https://example.com/org".to_owned();
        jwt.user_claim = "email".to_owned();
        jwt.scope_claim = "scp".to_owned();
    });
    let changes = json!({ "https://example.com/org": "o", "email": "a@b", "scp": ["audit:read"] });
    let claims = outcome(&verifier, &changes).await.unwrap();
    assert_eq!((claims.tenant.as_str(), claims.user.as_str()), ("o", "a@b"));
    assert_eq!(claims.scopes, [Scope::AuditRead].into_iter().collect());
}

#[test]
fn without_a_key_there_is_no_verifier_and_without_its_file_no_start() {
    assert!(
        Verifier::new(&config(|_| {}), NOW, &TaskTracker::new())
            .unwrap()
            .is_none()
    );
    let missing = config(|jwt| jwt.jwks_file = Some("/nowhere/keys.json".into()));
    assert!(Verifier::new(&missing, NOW, &TaskTracker::new()).is_err());
}

#[tokio::test]
async fn a_token_of_our_own_is_accepted_for_its_life() {
    let jwt = config(|jwt| {
        with_secret(jwt);
        jwt.issuer = Some("https://id".to_owned());
        jwt.audience = Some("hermes".to_owned());
        jwt.tenant_claim = "org".to_owned();
    });
    let life = std::time::Duration::from_secs(300);
    let claims = Claims {
        tenant: "acme".to_owned(),
        user: "ada".to_owned(),
        scopes: [Scope::AuditRead, Scope::TenantAll].into_iter().collect(),
        expires_at: NOW.after(life),
    };
    let token = mint(&jwt, &claims, NOW).unwrap();
    let verifier = Verifier::new(&jwt, NOW, &TaskTracker::new()).unwrap().unwrap();
    assert_eq!(verifier.verify(token.expose(), NOW).await, Ok(claims.clone()));
    let late = NOW.after(life + jwt.leeway);
    assert_eq!(verifier.verify(token.expose(), late).await, Err(TokenError::Expired));
    assert!(matches!(
        mint(&config(with_file), &claims, NOW),
        Err(MintError::NoSecret)
    ));
}
