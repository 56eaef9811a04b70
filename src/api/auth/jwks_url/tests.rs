//! An issuer that really answers over HTTP, and the keys that tokens are judged
//! by while it changes them, fails, or is slow. Time is what the tests say.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::LOCATION;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::*;
use crate::api::auth::jwt::{TokenError, Verifier};
use crate::config;

const SET: &str = include_str!("../../../../tests/data/keys/jwks.json");
const NOW: Timestamp = Timestamp(1_769_851_800_000);

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Serves(&'static [&'static str]),
    Fails,
    Rambles,
    Redirects,
}

/// What the issuer does, and how often it was asked.
#[derive(Clone)]
struct Issuer(Arc<(Mutex<Mood>, AtomicUsize)>);

impl Issuer {
    async fn start(mood: Mood) -> (Self, SocketAddr) {
        let issuer = Self(Arc::new((Mutex::new(mood), AtomicUsize::new(0))));
        let router = Router::new().route("/keys", get(answer)).with_state(issuer.clone());
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        (issuer, address)
    }

    fn now(&self, mood: Mood) {
        *self.0.0.lock().unwrap() = mood;
    }

    fn asked(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

async fn answer(State(issuer): State<Issuer>) -> Response {
    issuer.0.1.fetch_add(1, Ordering::SeqCst);
    let mood = *issuer.0.0.lock().unwrap();
    match mood {
        Mood::Serves(ids) => {
            let mut set: Value = serde_json::from_str(SET).unwrap();
            let keys = set["keys"].as_array_mut().unwrap();
            keys.retain(|key| ids.contains(&key["kid"].as_str().unwrap()));
            set.to_string().into_response()
        }
        Mood::Fails => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mood::Rambles => "x".repeat(MOST_BYTES + 1).into_response(),
        Mood::Redirects => (StatusCode::FOUND, [(LOCATION, "/keys")]).into_response(),
    }
}

fn verifier(address: SocketAddr) -> Verifier {
    let mut jwt = config::Config::load(&config::Sources::default()).unwrap().auth.jwt;
    jwt.jwks_url = Some(format!("http://{address}/keys").parse().unwrap());
    Verifier::new(&jwt, NOW, &TaskTracker::new()).unwrap().unwrap()
}

fn token(algorithm: Algorithm, id: &str) -> String {
    let key = match algorithm {
        Algorithm::RS256 => EncodingKey::from_rsa_pem(include_bytes!("../../../../tests/data/keys/rsa.pem")),
        Algorithm::ES256 => EncodingKey::from_ec_pem(include_bytes!("../../../../tests/data/keys/ec.pem")),
        _ => EncodingKey::from_ed_pem(include_bytes!("../../../../tests/data/keys/ed.pem")),
    };
    let mut header = Header::new(algorithm);
    header.kid = Some(id.to_owned());
    let claims = json!({"tenant": "acme", "sub": "ada", "exp": NOW.0 / 1000 + 86_400});
    encode(&header, &claims, &key.unwrap()).unwrap()
}

fn rsa() -> String {
    token(Algorithm::RS256, "rsa-1")
}

fn ec() -> String {
    token(Algorithm::ES256, "ec-1")
}

fn after(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

#[tokio::test]
async fn the_first_tokens_share_one_fetch_and_the_next_need_none() {
    let (issuer, address) = Issuer::start(Mood::Serves(&["rsa-1"])).await;
    let (verifier, token) = (verifier(address), rsa());
    let all = (0..20).map(|_| verifier.verify(&token, NOW));
    for seen in futures::future::join_all(all).await {
        assert!(seen.is_ok(), "{seen:?}");
    }
    assert!(verifier.verify(&token, after(299)).await.is_ok());
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test]
async fn a_new_key_works_when_it_is_first_used_and_a_removed_one_stops() {
    let (issuer, address) = Issuer::start(Mood::Serves(&["rsa-1"])).await;
    let verifier = verifier(address);
    assert!(verifier.verify(&rsa(), NOW).await.is_ok());
    issuer.now(Mood::Serves(&["ec-1"]));
    // Too soon to ask again.
    assert_eq!(verifier.verify(&ec(), after(9)).await, Err(TokenError::Untrusted));
    assert_eq!(issuer.asked(), 1);
    assert!(verifier.verify(&ec(), after(10)).await.is_ok());
    assert_eq!(verifier.verify(&rsa(), after(11)).await, Err(TokenError::Untrusted));
    assert_eq!(issuer.asked(), 2);
}

#[tokio::test]
async fn made_up_keys_do_not_make_us_ask_more_often() {
    let (issuer, address) = Issuer::start(Mood::Serves(&["rsa-1"])).await;
    let verifier = verifier(address);
    assert!(verifier.verify(&rsa(), NOW).await.is_ok());
    for second in 10..40 {
        let made_up = token(Algorithm::EdDSA, &format!("made-up-{second}"));
        assert_eq!(
            verifier.verify(&made_up, after(second)).await,
            Err(TokenError::Untrusted)
        );
        // A known key with a bad signature is no reason to ask.
        let forged = format!("{}x", rsa());
        assert!(verifier.verify(&forged, after(second)).await.is_err());
    }
    assert_eq!(issuer.asked(), 1 + 3);
}

#[tokio::test]
async fn while_the_issuer_fails_the_known_keys_stay_in_force() {
    let (issuer, address) = Issuer::start(Mood::Serves(&["rsa-1"])).await;
    let verifier = verifier(address);
    assert!(verifier.verify(&rsa(), NOW).await.is_ok());
    for (mood, second) in [
        (Mood::Fails, 400),
        (Mood::Rambles, 500),
        (Mood::Redirects, 600),
        (Mood::Serves(&[]), 700),
    ] {
        issuer.now(mood);
        let asked = issuer.asked();
        assert!(verifier.verify(&rsa(), after(second)).await.is_ok());
        // Joins the fetch that has begun, so that it is over.
        let unknown = token(Algorithm::EdDSA, "other");
        assert_eq!(
            verifier.verify(&unknown, after(second)).await,
            Err(TokenError::Untrusted)
        );
        assert_eq!(issuer.asked(), asked + 1, "and is not asked in a loop");
    }
    issuer.now(Mood::Serves(&["ec-1"]));
    assert!(verifier.verify(&ec(), after(800)).await.is_ok());
}

#[tokio::test]
async fn without_any_keys_nobody_can_tell() {
    let (issuer, address) = Issuer::start(Mood::Fails).await;
    let verifier = verifier(address);
    assert_eq!(verifier.verify(&rsa(), NOW).await, Err(TokenError::NoKeys));
    assert_eq!(verifier.verify(&rsa(), after(5)).await, Err(TokenError::NoKeys));
    assert_eq!(issuer.asked(), 1);
    issuer.now(Mood::Serves(&["rsa-1"]));
    assert!(verifier.verify(&rsa(), after(10)).await.is_ok());
}
