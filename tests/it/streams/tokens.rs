//! Stream tokens: one stream, one minute, in the name of whoever made them.

use std::time::Duration;

use hermes_server::base::{Clock, Timestamp};
use hermes_server::model::principal::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use super::{through, types};
use crate::api_rest::Talk;
use crate::harness::client::Client;
use crate::harness::http::{Answer, Web};
use crate::harness::{Place, on_both};

async fn token(client: &Client, path: &str) -> String {
    let made = client.post(path, &json!({})).await.expect(201);
    made["token"].as_str().unwrap().to_owned()
}

/// What a page in a browser gets, which sends no header.
async fn opened(web: &Web, path: &str, token: &str) -> Answer {
    let request = web.bare(Method::GET, &format!("{path}?token={token}"));
    let response = request.send().await.unwrap();
    if response.status() == 200 {
        return Answer {
            status: 200,
            headers: response.headers().clone(),
            body: Value::Null,
        };
    }
    Answer::of(response).await
}

#[test]
fn a_token_opens_its_own_streams_and_nothing_else() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let talk = Talk::new(&web, &client, &json!({})).await;
        let other = Talk::new(&web, &client, &json!({})).await;
        let turn = talk.say("/say hi").await;
        let (stream, of_turn) = (talk.path("/stream"), talk.path(&format!("/turns/{turn}/stream")));
        let own = token(&client, &talk.path("/stream-tokens")).await;
        let lists = token(&client, "/v1/stream-tokens").await;

        let mut events = web
            .stream(web.bare(Method::GET, &format!("{stream}?token={own}")))
            .await;
        through(&mut events, "turn.completed").await;
        let frames = web
            .stream(web.bare(Method::GET, &format!("{of_turn}?token={own}&deltas=off")))
            .await;
        assert_eq!(frames.rest().await.last().unwrap().event, "turn.completed");
        for path in ["/v1/stream", "/v1/approvals/stream"] {
            assert_eq!(opened(&web, path, &lists).await.status, 200);
            opened(&web, path, &own).await.is_problem(403, "forbidden");
        }
        for path in [&stream, &of_turn] {
            opened(&web, path, &lists).await.is_problem(403, "forbidden");
        }
        opened(&web, &other.path("/stream"), &own)
            .await
            .is_problem(403, "forbidden");
        // Nothing but streams looks at the query.
        for path in [
            talk.path(""),
            talk.path("/events"),
            talk.path("/messages"),
            talk.path(&format!("/turns/{turn}")),
            "/v1/sessions".to_owned(),
            "/v1/approvals".to_owned(),
            "/v1/keys".to_owned(),
        ] {
            opened(&web, &path, &own).await.is_problem(401, "unauthenticated");
            let bearer = web.bare(Method::GET, &path).bearer_auth(&own).send().await.unwrap();
            Answer::of(bearer).await.is_problem(401, "unauthenticated");
        }
        let posted = web.bare(Method::POST, &format!("{}?token={own}", talk.path("/turns")));
        let posted = posted.json(&json!({"input": "x"})).send().await.unwrap();
        Answer::of(posted).await.is_problem(401, "unauthenticated");
        for wrong in ["", "x", "hst_", &own[..own.len() - 3], &format!("{own}A")] {
            opened(&web, &stream, wrong).await.is_problem(401, "unauthenticated");
        }
        web.stop().await;
    });
}

#[test]
fn a_token_sees_what_its_maker_sees() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let rights = [Scope::SessionsRead, Scope::SessionsWrite];
        let (ada, bob) = (web.user("ada", &rights).await, web.user("bob", &rights).await);
        let manager = web.user("eve", &[Scope::SessionsRead, Scope::TenantAll]).await;
        let made = ada.post("/v1/sessions", &json!({"title": "ada's"})).await.expect(201);
        let path = format!("/v1/sessions/{}", made["id"].as_str().unwrap());
        bob.post(&format!("{path}/stream-tokens"), &json!({}))
            .await
            .problem(404, "not_found");
        let mut streams = Vec::new();
        for client in [&bob, &manager] {
            let token = token(client, "/v1/stream-tokens").await;
            let mut events = web
                .stream(web.bare(Method::GET, &format!("/v1/stream?token={token}")))
                .await;
            events.until("stream.hello").await;
            streams.push(events);
        }
        ada.patch(&path, &json!({"title": "still ada's"})).await.expect(200);
        bob.post("/v1/sessions", &json!({"title": "bob's"})).await.expect(201);
        let seen = through(&mut streams[0], "session.created").await;
        assert_eq!(types(&seen), ["session.created"]);
        assert_eq!(seen[0].data["data"]["session"]["title"], "bob's");
        assert_eq!(
            types(&through(&mut streams[1], "session.created").await),
            ["session.updated", "session.created"]
        );
        let cannot = web.user("ada", &[Scope::TurnsWrite]).await;
        cannot
            .post("/v1/stream-tokens", &json!({}))
            .await
            .problem(403, "forbidden");
        web.stop().await;
    });
}

#[tokio::test]
async fn a_minute_later_it_opens_nothing_and_what_is_open_goes_on() {
    let mut place = Place::sqlite();
    place.clock = Clock::stepped(Timestamp(1_769_851_800_000));
    let web = place.serve().await;
    let client = web.owner().await;
    let talk = Talk::new(&web, &client, &json!({})).await;
    let made = client.post(&talk.path("/stream-tokens"), &json!({})).await.expect(201);
    assert_eq!(made["expires_at"], "2026-01-31T09:31:00.000Z");
    let token = made["token"].as_str().unwrap();
    let path = talk.path("/stream");
    place.clock.step(Duration::from_millis(59_999));
    let mut open = web
        .stream(web.bare(Method::GET, &format!("{path}?token={token}")))
        .await;
    open.until("session.created").await;
    place.clock.step(Duration::from_millis(1));
    opened(&web, &path, token).await.is_problem(401, "unauthenticated");
    place.clock.step(Duration::from_secs(120));
    client
        .patch(&talk.path(""), &json!({"title": "later"}))
        .await
        .expect(200);
    open.until("session.updated").await;
    web.stop().await;
}
