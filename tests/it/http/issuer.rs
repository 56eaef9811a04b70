//! Tokens whose keys are at an address, over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

use crate::harness::Place;

async fn keys(State(works): State<Arc<AtomicBool>>) -> Response {
    match works.load(Ordering::SeqCst) {
        true => include_str!("../../data/keys/jwks.json").into_response(),
        false => http::StatusCode::BAD_GATEWAY.into_response(),
    }
}

#[tokio::test]
async fn a_token_is_judged_by_the_keys_of_its_issuer() {
    let works = Arc::new(AtomicBool::new(false));
    let router = axum::Router::new()
        .route("/keys", get(keys))
        .with_state(Arc::clone(&works));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let issuer = tokio::spawn(async move { axum::serve(listener, router).await });

    let mut place = Place::sqlite();
    place.config.auth.jwt.jwks_url = Some(url.parse().unwrap());
    let signed = |seconds: i64| {
        let now = place.clock.now().0 / 1000;
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some("ed-1".to_owned());
        let claims = json!({"tenant": "default", "sub": "ada", "scope": "sessions:read", "exp": now + seconds});
        let key = EncodingKey::from_ed_pem(include_bytes!("../../data/keys/ed.pem")).unwrap();
        encode(&header, &claims, &key).unwrap()
    };
    let (token, late) = (signed(600), signed(-600));
    let web = place.serve().await;
    // The server is up although its issuer is not; keys of its own still work.
    let answer = web.client(&token).get("/v1/sessions").await;
    assert_eq!(answer.header("retry-after"), "1");
    answer.problem(503, "issuer_unavailable");
    web.owner().await.get("/v1/sessions").await.expect(200);
    web.stop().await;

    works.store(true, Ordering::SeqCst);
    let web = place.serve().await;
    web.client(&token).get("/v1/sessions").await.expect(200);
    web.client(&late)
        .get("/v1/sessions")
        .await
        .problem(401, "unauthenticated");
    issuer.abort();
    web.client(&token).get("/v1/sessions").await.expect(200);
    web.stop().await;
}
