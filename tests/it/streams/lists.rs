//! The stream of a tenant's sessions and approvals.

use std::collections::BTreeMap;
use std::time::Duration;

use hermes_server::live::lists::{FollowLists, ListFollower};
use hermes_server::model::event::EventBody;
use hermes_server::model::event_types::Types;
use serde_json::{Value, json};

use super::{through, types};
use crate::api_rest::{Talk, decision_of};
use crate::harness::http::Web;
use crate::harness::script::guarded;
use crate::harness::{PATIENCE, on_both};

/// What a page that shows a list of sessions does with the frames.
#[derive(Default)]
struct Shown(BTreeMap<String, Value>);

impl Shown {
    fn put(&mut self, session: &Value) {
        let id = session["id"].as_str().unwrap().to_owned();
        let newer = |known: &Value| known["head_seq"].as_i64() <= session["head_seq"].as_i64();
        if self.0.get(&id).is_none_or(newer) {
            self.0.insert(id, session.clone());
        }
    }
}

#[test]
fn a_list_that_follows_the_stream_is_what_the_list_is() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let before = client
            .post("/v1/sessions", &json!({"title": "before"}))
            .await
            .expect(201);
        let mut events = client.stream(&web, "/v1/stream").await;
        let hello = events.next().await.unwrap();
        assert_eq!((hello.event.as_str(), &hello.id), ("stream.hello", &None));
        let mut shown = Shown::default();
        for session in client.get("/v1/sessions").await.expect(200)["data"].as_array().unwrap() {
            shown.put(session);
        }
        assert_eq!(shown.0.len(), 1);

        let talk = Talk::new(&web, &client, &json!({"title": "new"})).await;
        let turn = talk
            .client
            .post(&talk.path("/turns?wait=20"), &json!({"input": "/say hi"}))
            .await
            .expect(200);
        assert_eq!(turn["turn"]["status"], "completed");
        client
            .patch(&talk.path(""), &json!({"title": "renamed"}))
            .await
            .expect(200);
        let id = before["id"].as_str().unwrap();
        client.delete(&format!("/v1/sessions/{id}")).await;

        let frames = through(&mut events, "session.deleted").await;
        let seen: Vec<&str> = types(&frames);
        assert_eq!(seen[0], "session.created");
        assert!(seen.contains(&"session.updated") && seen.iter().filter(|one| **one == "session.status").count() >= 2);
        let numbers: Vec<i64> = frames.iter().filter_map(|frame| frame.data["seq"].as_i64()).collect();
        assert!(
            numbers.is_sorted_by(|a, b| a < b),
            "one session's events, in order: {numbers:?}"
        );
        for frame in &frames {
            match frame.event.as_str() {
                "session.deleted" => {
                    shown.0.remove(frame.data["data"]["session_id"].as_str().unwrap());
                }
                _ => shown.put(&frame.data["data"]["session"]),
            }
        }
        let list = client.get("/v1/sessions").await.expect(200);
        let list: Vec<&Value> = list["data"].as_array().unwrap().iter().collect();
        let mut shown: Vec<Value> = shown.0.into_values().collect();
        // Events of turns raise it too, and lists of sessions show none.
        for session in &mut shown {
            session["head_seq"] = list[0]["head_seq"].clone();
        }
        assert_eq!(shown.iter().collect::<Vec<_>>(), list);
        assert_eq!(list[0]["title"], "renamed");
        web.stop().await;
    });
}

#[test]
fn approvals_are_told_beside_the_state_of_their_session() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let mut events = client.stream(&web, "/v1/stream?types=approval.*,session.status").await;
        let mut talk = Talk::new(&web, &client, &json!({})).await;
        let asked = talk.ask(&guarded("a")).await;
        let frames = through(&mut events, "approval.requested").await;
        assert!(!types(&frames).contains(&"session.created"), "not asked for");
        client
            .post(&decision_of(&asked), &json!({"choice": "deny"}))
            .await
            .expect(200);
        let resolved = events.until("approval.resolved").await;
        assert_eq!(resolved.data["data"]["approval"]["status"], "denied");
        let idle = loop {
            let frame = events.until("session.status").await;
            if frame.data["data"]["session"]["status"] == "idle" {
                break frame;
            }
        };
        assert_eq!(idle.data["data"]["session"]["required_actions"], json!([]));
        web.stop().await;
    });
}

/// A reader that takes nothing while more happens than is kept for it.
#[test]
fn a_reader_that_missed_changes_is_told_and_begins_anew() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        server.turn(session, &guarded("a")).await;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let follow = FollowLists {
            scope: server.scope.clone(),
            inbox: true,
            session: None,
            status: None,
            types: Types::default(),
            heartbeat: Duration::from_secs(5),
        };
        let lists = FollowLists {
            inbox: false,
            ..follow.clone()
        };
        let mut inbox = follow.start(server.engine.clock().clone());
        let mut lists = lists.start(server.engine.clock().clone());
        for _ in 0..600 {
            server.session().await;
        }
        let shown = names(&mut inbox, 6).await;
        let beginning = ["approval.requested", "stream.ready"];
        assert_eq!(shown[..1], ["stream.hello"]);
        assert_eq!(shown[1..3], beginning);
        assert_eq!(shown[3..4], ["stream.reset"]);
        assert_eq!(shown[4..], beginning);
        assert_eq!(names(&mut lists, 2).await, ["stream.hello", "stream.reset"]);
        server.session().await;
        // What is still kept comes in its order, the newest at last.
        let newest = server.session().await.id;
        loop {
            let event = lists.next().await.unwrap().unwrap();
            if event.session_id == Some(newest) {
                break;
            }
        }
        drop((inbox, lists));
        server.stop().await;
    });
}

async fn names(follower: &mut ListFollower, count: usize) -> Vec<&'static str> {
    let mut names = Vec::new();
    while names.len() < count {
        let event = tokio::time::timeout(PATIENCE, follower.next())
            .await
            .expect("an event in time");
        names.push(event.unwrap().unwrap().body.name());
    }
    names
}

/// Every change of many sessions at once reaches a reader, each session's in
/// its order and once.
#[test]
fn nothing_is_missed_and_nothing_comes_twice_while_many_sessions_run() {
    on_both(async |mut place| {
        let web: Web = place.serve().await;
        let client = web.owner().await;
        let mut events = client.stream(&web, "/v1/stream").await;
        events.until("stream.hello").await;
        let sessions = (0..12).map(|_| async {
            let talk = Talk::new(&web, &client, &json!({})).await;
            for _ in 0..3 {
                let done = client
                    .post(&talk.path("/turns?wait=20"), &json!({"input": "/say hi"}))
                    .await;
                done.expect(200);
            }
            talk
        });
        let talks = futures::future::join_all(sessions).await;
        client
            .post("/v1/sessions", &json!({"title": "the last"}))
            .await
            .expect(201);
        let mut told: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        loop {
            let frame = events.next().await.unwrap();
            if frame.data["data"]["session"]["title"] == "the last" {
                break;
            }
            if let (Some(session), Some(seq)) = (frame.data["session_id"].as_str(), frame.data["seq"].as_i64()) {
                told.entry(session.to_owned()).or_default().push(seq);
            }
        }
        for talk in talks {
            let log = client.get(&talk.path("/events?limit=200")).await.expect(200);
            let of_lists = |event: &&Value| {
                let name = event["type"].as_str().unwrap();
                name.starts_with("session.") || name.starts_with("approval.")
            };
            let expected = log["data"].as_array().unwrap().iter().filter(of_lists);
            let expected: Vec<i64> = expected.map(|event| event["seq"].as_i64().unwrap()).collect();
            assert_eq!(told[&talk.session], expected);
        }
        web.stop().await;
    });
}
