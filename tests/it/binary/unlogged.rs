//! A token in a URL appears in no log, however much is logged.

use reqwest::Method;
use serde_json::json;

use super::program::{Program, log};
use crate::harness::Place;
use crate::harness::http::{Answer, Events};

#[tokio::test]
async fn a_stream_token_is_not_logged() {
    let place = Place::sqlite();
    let program = Program::start_with(&place, &[("HERMES__LOG__LEVEL", "trace")]).await;
    let session = program.session().await;
    let path = format!("/v1/sessions/{session}/stream");
    let made = program.post(&format!("{path}-tokens"), json!({})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let token = made.body["token"].as_str().unwrap();
    let client = reqwest::Client::new();
    let opened = |path: &str| {
        client
            .request(Method::GET, format!("{}{path}?token={token}", program.base))
            .send()
    };
    let mut events = Events::of(opened(&path).await.unwrap());
    events.until("session.created").await;
    // Refused ones as well, and what is no path at all.
    for (path, status) in [("/v1/stream", 403), ("/v1/sessions", 401), ("/nowhere", 404)] {
        assert_eq!(Answer::of(opened(path).await.unwrap()).await.status, status);
    }
    drop(events);
    program.stop().await;
    let logged = log(&place);
    assert!(
        logged.contains(&path) && logged.contains("/nowhere"),
        "requests are logged: {logged}"
    );
    assert!(!logged.contains("token=") && !logged.contains(&token[..20]), "{logged}");
}
