//! Requests that are sent twice under one `Idempotency-Key`.

use std::sync::{Arc, Condvar, Mutex};

use hermes_server::model::principal::Scope;
use hermes_server::store::Fate;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::harness::client::{Client, NewKey};
use crate::harness::http::{Answer, Events, Web};
use crate::harness::script::{guarded, mark};
use crate::harness::{Place, lines, on_both, probe};

const KEY: &str = "Idempotency-Key";
const REPLAYED: &str = "idempotency-replayed";

fn keyed(client: &Client, path: &str, key: &str, body: &Value) -> RequestBuilder {
    client.request(Method::POST, path).header(KEY, key).json(body)
}

async fn post(client: &Client, path: &str, key: &str, body: &Value) -> Answer {
    Answer::of(keyed(client, path, key, body).send().await.unwrap()).await
}

/// Both answers are one; only the second says that it is a replay.
#[track_caller]
fn assert_replay(first: &Answer, second: &Answer) {
    assert_eq!(
        (second.status, &second.body, second.header("location")),
        (first.status, &first.body, first.header("location"))
    );
    assert_eq!(
        (first.header(REPLAYED).as_str(), second.header(REPLAYED).as_str()),
        ("", "true"),
        "{}",
        second.body
    );
}

async fn count(client: &Client, list: &str) -> usize {
    client.get(list).await.expect(200)["data"].as_array().unwrap().len()
}

/// The path of a new session.
async fn session(client: &Client) -> String {
    let made = client.post("/v1/sessions", &json!({})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.header("location")
}

#[test]
fn a_session_is_made_once_and_answered_twice() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let body = json!({"title": "t", "external_id": "chat/1", "metadata": {"z": 1, "a": 1.50}});
        let first = post(&owner, "/v1/sessions", "k", &body).await;
        assert_eq!(first.status, 201, "{}", first.body);
        // The session has moved on; the answer has not.
        let path = first.header("location");
        let patch = owner.request(Method::PATCH, &path).json(&json!({"title": "u"}));
        Answer::of(patch.send().await.unwrap()).await.expect(200);
        assert_replay(&first, &post(&owner, "/v1/sessions", "k", &body).await);
        assert_eq!(count(&owner, "/v1/sessions").await, 1);

        let other = post(&owner, "/v1/sessions", "k", &json!({"title": "v"})).await;
        other.problem(422, "idempotency_key_reused");
        // Bytes are compared, not what they mean.
        let spaced = owner.request(Method::POST, "/v1/sessions").header(KEY, "k");
        let spaced = spaced
            .header("content-type", "application/json")
            .body(format!("{body} "));
        Answer::of(spaced.send().await.unwrap())
            .await
            .problem(422, "idempotency_key_reused");
        assert_eq!(count(&owner, "/v1/sessions").await, 1);
        web.stop().await;
    });
}

#[test]
fn a_key_is_the_callers_own_and_the_routes_own() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let tenant = web.tenant("another").await;
        let elsewhere = NewKey {
            tenant,
            user: "owner",
            scopes: &[Scope::Admin],
            tools: None,
        };
        // The same user in another tenant, with another key, and another user.
        let callers = [
            web.owner().await,
            web.with_key(elsewhere).await,
            web.owner().await,
            web.user("colleague", &[Scope::Admin]).await,
        ];
        let mut seen = Vec::new();
        for caller in &callers {
            let made = post(caller, "/v1/sessions", "k", &json!({})).await;
            assert_eq!(
                (made.status, made.header(REPLAYED).as_str()),
                (201, ""),
                "{}",
                made.body
            );
            assert!(!seen.contains(&made.body["id"]));
            seen.push(made.body["id"].clone());
        }
        let owner = &callers[0];
        let (one, two) = (session(owner).await, session(owner).await);
        for path in [one, two] {
            let taken = post(owner, &format!("{path}/turns"), "k", &json!({"input": "/say x"})).await;
            assert_eq!(
                (taken.status, taken.header(REPLAYED).as_str()),
                (202, ""),
                "{}",
                taken.body
            );
        }
        web.stop().await;
    });
}

#[test]
fn what_was_refused_may_be_tried_again_under_its_key() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let held = post(&owner, "/v1/sessions", "first", &json!({"external_id": "x"})).await;
        let path = held.header("location");
        let body = json!({"external_id": "x"});
        post(&owner, "/v1/sessions", "k", &body)
            .await
            .problem(409, "external_id_taken");
        owner.delete(&path).await;
        let made = post(&owner, "/v1/sessions", "k", &body).await;
        assert_eq!(
            (made.status, made.header(REPLAYED).as_str()),
            (201, ""),
            "{}",
            made.body
        );
        web.stop().await;
    });
}

#[tokio::test]
async fn what_is_no_key_is_refused() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let owner = web.owner().await;
    let too_long = "k".repeat(256);
    for key in ["", "two words", too_long.as_str()] {
        let refused = post(&owner, "/v1/sessions", key, &json!({})).await;
        let problem = refused.problem(400, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], KEY, "{key}");
    }
    assert_eq!(count(&owner, "/v1/sessions").await, 0);
    let longest = "k".repeat(255);
    post(&owner, "/v1/sessions", &longest, &json!({})).await.expect(201);
    web.stop().await;
}

/// FC-064. The report asks for 409 where another body comes with the key; here
/// it is 422, so that a client can tell it from a request that is under way.
#[test]
fn fc_064_a_turn_that_is_posted_twice_runs_once() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        // The key of the environment: it is the same after a restart.
        let owner = web.client(crate::harness::http::KEY);
        let session = session(&owner).await;
        let turns = format!("{session}/turns");
        let body = json!({"input": format!("{}\n/then\n/say ok", mark("log"))});
        let (one, two) = tokio::join!(post(&owner, &turns, "k", &body), post(&owner, &turns, "k", &body));
        assert_eq!((one.status, two.status), (202, 202), "{} {}", one.body, two.body);
        assert_eq!(one.body["id"], two.body["id"]);
        let replays = [one.header(REPLAYED), two.header(REPLAYED)];
        assert_eq!(replays.iter().filter(|replayed| *replayed == "true").count(), 1);
        let done = post(&owner, &format!("{turns}?wait=20"), "k", &body).await;
        assert_eq!(
            (done.status, done.header(REPLAYED).as_str()),
            (200, "true"),
            "{}",
            done.body
        );
        assert_eq!(
            (&done.body["turn"]["id"], &done.body["message"]["content"][0]["text"]),
            (&one.body["id"], &json!("ok"))
        );
        assert_eq!(done.header("content-location"), one.header("location"));
        web.stop().await;

        let web = place.serve().await;
        let owner = web.client(crate::harness::http::KEY);
        let again = post(&owner, &turns, "k", &body).await;
        assert_eq!(
            (again.status, again.header(REPLAYED).as_str()),
            (202, "true"),
            "{}",
            again.body
        );
        assert_eq!(
            (&again.body["id"], again.header("location")),
            (&one.body["id"], one.header("location"))
        );
        post(&owner, &turns, "k", &json!({"input": "/say other"}))
            .await
            .problem(422, "idempotency_key_reused");
        assert_eq!(count(&owner, &turns).await, 1);
        let id = session.rsplit('/').next().unwrap().parse().unwrap();
        assert_eq!(lines(&web.server.workspace(id).join("log")), 1);
        web.stop().await;
    });
}

#[test]
fn a_replayed_stream_shows_the_turn_from_its_start() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let turns = format!("{}/turns", session(&owner).await);
        let body = json!({"input": "/say hello"});
        let first = web.stream(keyed(&owner, &turns, "k", &body)).await;
        let location = first.response_headers["content-location"].clone();
        let of_first = first.rest().await;
        let second: Events = web.stream(keyed(&owner, &turns, "k", &body)).await;
        assert_eq!(
            (
                &second.response_headers[REPLAYED],
                &second.response_headers["content-location"]
            ),
            (&"true".parse().unwrap(), &location)
        );
        let of_second = second.rest().await;
        let ids = |frames: &[crate::harness::http::WireFrame]| {
            let durable = frames.iter().filter(|frame| frame.event.starts_with("turn."));
            durable
                .map(|frame| (frame.event.clone(), frame.data["seq"].clone()))
                .collect::<Vec<_>>()
        };
        assert!(2 <= ids(&of_first).len());
        assert_eq!(ids(&of_first), ids(&of_second));
        assert_eq!(count(&owner, &turns).await, 1);
        web.stop().await;
    });
}

/// FC-065, its first half: a replay is no new turn and meets no limit.
#[test]
fn fc_065_at_the_cap_a_replay_gets_its_turn_and_not_429() {
    on_both(async |mut place: Place| {
        place.config.limits.server.executing_turns = Some(1);
        let web = place.serve().await;
        let owner = web.owner().await;
        let turns = format!("{}/turns", session(&owner).await);
        let body = json!({"input": "/sleep 60000\n/say late"});
        let first = post(&owner, &turns, "k", &body).await;
        assert_eq!(first.status, 202, "{}", first.body);
        let other = format!("{}/turns", session(&owner).await);
        owner
            .post(&other, &json!({"input": "/say x"}))
            .await
            .problem(429, "server_turn_limit");
        let again = post(&owner, &turns, "k", &body).await;
        assert_eq!(
            (again.status, &again.body["id"], again.header(REPLAYED).as_str()),
            (202, &first.body["id"], "true")
        );
        web.stop().await;
    });
}

#[test]
fn a_cancel_a_decision_and_a_key_are_answered_again() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let turns = format!("{}/turns", session(&owner).await);
        let asked = owner
            .post(&format!("{turns}?wait=20"), &json!({"input": guarded("log")}))
            .await
            .expect(200);
        let decision = format!(
            "/v1/approvals/{}/decision",
            asked["approvals"][0]["id"].as_str().unwrap()
        );
        let first = post(&owner, &decision, "k", &json!({"choice": "deny"})).await;
        assert_eq!(first.status, 200, "{}", first.body);
        assert_replay(&first, &post(&owner, &decision, "k", &json!({"choice": "deny"})).await);
        post(&owner, &decision, "k", &json!({"choice": "once"}))
            .await
            .problem(422, "idempotency_key_reused");

        let other = format!("{}/turns", session(&owner).await);
        let slow = owner.post(&other, &json!({"input": "/sleep 60000\n/say late"})).await;
        let cancel = format!("{}/cancel", slow.header("location"));
        let first = post(&owner, &cancel, "k", &json!({})).await;
        assert_eq!(first.status, 202, "{}", first.body);
        owner.get(&format!("{}/stream", slow.header("location"))).await;
        assert_replay(&first, &post(&owner, &cancel, "k", &json!({})).await);

        let body = json!({"name": "ci", "scopes": ["sessions:read"]});
        let first = post(&owner, "/v1/keys", "k", &body).await;
        assert_eq!(first.status, 201, "{}", first.body);
        let again = post(&owner, "/v1/keys", "k", &body).await;
        // The text of a key is nowhere in the store, so it cannot come again.
        assert!(first.body["key"].is_string());
        assert_eq!(
            (
                again.status,
                &again.body["id"],
                &again.body["key"],
                again.header(REPLAYED).as_str()
            ),
            (201, &first.body["id"], &Value::Null, "true")
        );
        web.stop().await;
    });
}

/// A gate that the commit of a new session waits at.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.opened.wait(open).unwrap();
        }
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// SQLite has one writer, so that the second request is not begun before the
/// first has ended: there it waits for its turn and replays.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_that_is_still_carried_out_is_waited_for_and_then_named() {
    let Some(mut place) = Place::postgres().await else {
        return;
    };
    let gate = Arc::new(Gate::default());
    let at = gate.clone();
    let probe = probe(move |label| {
        if label == "create_session" {
            // Tells the runtime, so that no task is stuck behind this one.
            tokio::task::block_in_place(|| at.pass());
        }
        Fate::Go
    });
    let web: Web = place.serve_probed(probe).await;
    let owner = web.owner().await;
    let first = {
        let owner = owner.clone();
        tokio::spawn(async move { post(&owner, "/v1/sessions", "k", &json!({})).await })
    };
    // Whichever of the two comes first holds the key until the gate opens.
    let body = json!({});
    let second = post(&owner, "/v1/sessions", "k", &body);
    tokio::pin!(first);
    let (refused, other) = tokio::select! {
        refused = second => (refused, Some(first)),
        refused = &mut first => (refused.unwrap(), None),
    };
    assert_eq!(refused.header("retry-after"), "1");
    refused.problem(409, "idempotency_in_flight");
    gate.open();
    if let Some(first) = other {
        first.await.unwrap().expect(201);
    }
    let again = post(&owner, "/v1/sessions", "k", &json!({})).await;
    assert_eq!(again.status, 201, "{}", again.body);
    assert_eq!(count(&owner, "/v1/sessions").await, 1);
    web.stop().await;
}
