//! Tokens that nobody signed, or that were signed with what everybody knows, on
//! every operation.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hermes_server::base::Secret;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use crate::harness::Place;
use crate::isolation::{World, body, call, closed, filled};
use crate::openapi::document;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const PUBLIC: &str = include_str!("../../data/keys/rsa.public.pem");
const JWKS: &str = include_str!("../../data/keys/jwks.json");

fn signed(algorithm: Algorithm, kid: Option<&str>, secret: &str, claims: &Value) -> String {
    let mut header = Header::new(algorithm);
    header.kid = kid.map(str::to_owned);
    let key = EncodingKey::from_secret(secret.as_bytes()).unwrap();
    encode(&header, claims, &key).unwrap()
}

/// The claims without a signature, however `none` is written.
fn unsigned(claims: &Value) -> Vec<String> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let heads = ["none", "None", "nOnE", "NONE", "", "HS256", "RS256"];
    let heads = heads.map(|name| json!({"alg": name, "typ": "JWT"}));
    let heads = heads.into_iter().chain([json!({"typ": "JWT"}), json!({"alg": null})]);
    heads.map(|head| format!("{}.{}.", part(&head), part(claims))).collect()
}

#[tokio::test]
async fn a_token_that_no_trusted_key_signed_opens_nothing() {
    let mut place = Place::sqlite();
    place.config.auth.jwt.hs256_secret = Some(Secret::new(SECRET));
    place.config.auth.jwt.jwks_file = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keys/jwks.json").into());
    let soon = place.clock.now().0 / 1000 + 600;
    let web = place.serve().await;
    let document = document();
    let world = World::of(&web, &web.owner().await).await;
    let claims = json!({"tenant": "default", "sub": "owner", "scope": "admin", "exp": soon});
    let good = signed(Algorithm::HS256, None, SECRET, &claims);
    web.client(&good).get("/v1/sessions").await.expect(200);

    let mut tokens = unsigned(&claims);
    for public in [PUBLIC, PUBLIC.trim_end(), JWKS] {
        for kid in [None, Some("rsa-1")] {
            tokens.push(signed(Algorithm::HS256, kid, public, &claims));
        }
    }
    tokens.push(signed(Algorithm::HS512, None, SECRET, &claims));
    let (head, signature) = good.rsplit_once('.').unwrap();
    let forged = URL_SAFE_NO_PAD.encode(json!({"tenant": "default", "sub": "other", "exp": soon}).to_string());
    tokens.push(format!("{}.{forged}.{signature}", head.split('.').next().unwrap()));
    for (number, operation) in closed(&document).iter().enumerate() {
        let path = filled(operation, &world.ids);
        let body = body(&document, operation);
        // All of them on the first, and each in its turn on the others.
        let some: Vec<&String> = match number {
            0 => tokens.iter().collect(),
            number => tokens.iter().cycle().skip(number).take(4).collect(),
        };
        for token in some {
            let answer = call(&web.client(token), operation, &path, body.as_ref()).await;
            assert_eq!(answer.status, 401, "{} {token}: {}", operation.id, answer.body);
            answer.is_problem(401, "unauthenticated");
        }
    }
    web.stop().await;
}
