//! An open stream ends with the credential that opened it.

use std::time::Duration;

use hermes_server::api::auth::jwt::{Claims, mint};
use hermes_server::base::{Clock, Secret, Timestamp};
use hermes_server::model::principal::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_rest::Talk;
use crate::harness::client::Client;
use crate::harness::http::{Answer, Events, Web};
use crate::harness::{Place, on_both};

/// A key of the owner and its id.
async fn key(web: &Web, owner: &Client, more: Value) -> (Client, String) {
    let mut new = json!({"name": "viewer", "scopes": ["sessions:read", "tenant:all"]});
    new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = owner.post("/v1/keys", &new).await.expect(201);
    (
        web.client(made["key"].as_str().unwrap()),
        made["id"].as_str().unwrap().to_owned(),
    )
}

/// Reads to the end, which has to come.
async fn ends(mut events: Events) {
    while events.next().await.is_some() {}
}

#[test]
fn a_revoked_key_ends_every_stream_that_it_opened() {
    on_both(async |mut place| {
        place.config.server.heartbeat = Duration::from_millis(100);
        let web = place.serve().await;
        let owner = web.owner().await;
        let talk = Talk::new(&web, &owner, &json!({})).await;
        let turn = talk.say("/say hi\n/sleep 60000").await;
        let (viewer, id) = key(&web, &owner, json!({})).await;
        let paths = [
            talk.path("/stream"),
            talk.path(&format!("/turns/{turn}/stream")),
            "/v1/stream".to_owned(),
            "/v1/approvals/stream".to_owned(),
        ];
        let mut open = Vec::new();
        for path in &paths {
            open.push(viewer.stream(&web, path).await);
        }
        let token = viewer.post("/v1/stream-tokens", &json!({})).await.expect(201)["token"].clone();
        let path = format!("/v1/stream?token={}", token.as_str().unwrap());
        open.push(web.stream(web.bare(Method::GET, &path)).await);
        let text = viewer.request(Method::GET, &paths[1]).header("accept", "text/plain");
        let mut text = text.send().await.unwrap();
        text.chunk().await.unwrap().unwrap();
        let mut others = owner.stream(&web, "/v1/stream").await;
        for events in &mut open {
            events.until("heartbeat").await;
        }
        owner.delete(&format!("/v1/keys/{id}")).await;
        for events in open {
            ends(events).await;
        }
        let last = loop {
            match text.chunk().await {
                Ok(Some(chunk)) => assert!(String::from_utf8_lossy(&chunk).contains("[the server ended this stream")),
                other => break other,
            }
        };
        assert!(last.is_err(), "a part is not taken for the whole");
        Answer::of(web.bare(Method::GET, &path).send().await.unwrap())
            .await
            .is_problem(401, "unauthenticated");
        for _ in 0..3 {
            others.until("heartbeat").await;
        }
        let turn = talk.path(&format!("/turns/{turn}"));
        let found = owner.get(&turn).await.expect(200);
        assert_eq!(found["status"], "running", "the turn does not care who watches");
        owner.post(&format!("{turn}/cancel"), &json!({})).await;
        web.stop().await;
    });
}

/// A stream that always has something to send is looked at all the same.
#[test]
fn a_busy_stream_ends_as_well() {
    on_both(async |mut place| {
        place.config.server.heartbeat = Duration::from_millis(100);
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = Talk::new(&web, &owner, &json!({})).await;
        let (viewer, id) = key(&web, &owner, json!({})).await;
        let turn = talk.say("/tokens 1000000 2000").await;
        talk.events.until("message.delta").await;
        let mut events = viewer.stream(&web, &talk.path("/stream")).await;
        events.until("message.delta").await;
        owner.delete(&format!("/v1/keys/{id}")).await;
        ends(events).await;
        owner
            .post(&talk.path(&format!("/turns/{turn}/cancel")), &json!({}))
            .await;
        web.stop().await;
    });
}

#[tokio::test]
async fn a_key_or_token_that_expires_takes_its_streams_along() {
    let mut place = Place::sqlite();
    place.clock = Clock::stepped(Timestamp(1_769_851_800_000));
    place.config.auth.jwt.hs256_secret = Some(Secret::new("a secret of at least thirty-two bytes"));
    place.config.auth.jwt.leeway = Duration::from_secs(5);
    let web = place.serve().await;
    let owner = web.owner().await;
    let (viewer, _) = key(&web, &owner, json!({"expires_at": "2026-01-31T09:31:00.000Z"})).await;
    let claims = Claims {
        tenant: "default".to_owned(),
        user: "ada".to_owned(),
        scopes: [Scope::SessionsRead].into_iter().collect(),
    };
    let life = Duration::from_secs(55);
    let token = mint(&place.config.auth.jwt, &claims, place.clock.now(), life).unwrap();
    let bearer = web.client(token.expose());
    let from_token = bearer.post("/v1/stream-tokens", &json!({})).await.expect(201)["token"].clone();
    let with_token = format!("/v1/stream?token={}", from_token.as_str().unwrap());
    let mut open = vec![
        viewer.stream(&web, "/v1/stream").await,
        bearer.stream(&web, "/v1/stream").await,
        web.stream(web.bare(Method::GET, &with_token)).await,
    ];
    let mut others = owner.stream(&web, "/v1/stream").await;
    for events in open.iter_mut().chain([&mut others]) {
        // A heartbeat is counted from the frame before it.
        events.until("stream.hello").await;
    }
    place.clock.step(Duration::from_millis(59_999));
    for events in open.iter_mut().chain([&mut others]) {
        events.until("heartbeat").await;
    }
    place.clock.step(Duration::from_millis(1));
    for events in open {
        ends(events).await;
    }
    place.clock.step(Duration::from_secs(20));
    others.until("heartbeat").await;
    web.stop().await;
}
