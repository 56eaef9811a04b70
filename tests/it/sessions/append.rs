//! Messages from elsewhere that are added to a session: what a client sees of
//! them, and what the model is told.

use reqwest::Method;
use serde_json::{Value, json};

use super::{list, messages, say, session, text};
use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::on_both;
use crate::harness::script::guarded;

fn said(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn named(name: &str) -> Value {
    json!({"role": "user", "content": name, "external_id": name})
}

async fn append(client: &Client, session: &str, new: &[Value]) -> Answer {
    let path = format!("{session}/messages");
    client.post(&path, &json!({"messages": new})).await
}

fn texts(messages: &[Value]) -> Vec<String> {
    let texts = messages.iter().map(|message| text(&message["content"][0]["text"]));
    texts.collect()
}

#[test]
fn the_next_turn_knows_what_was_said_elsewhere() {
    on_both(async |mut place| {
        let model = ModelServer::start(vec![Reply::say("first"), Reply::say("second")]).await;
        place.config.openai.base_url = Some(model.base_url.clone());
        place.config.model = Some("scripted".to_owned());
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        say(&owner, &path, "one").await;
        let head = owner.get(&path).await.expect(200)["head_seq"].clone();
        let mut events = owner.stream(&web, &format!("{path}/stream?after={head}")).await;
        let image = json!([{"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]);
        let new = [
            said("assistant", "by the way"),
            said("user", "two"),
            said("assistant", "three"),
            json!({"role": "user", "content": image}),
        ];
        let added = append(&owner, &path, &new).await.expect(201);
        assert_eq!(added["added"], 4);
        assert_eq!(model.asked().len(), 1, "no model is asked");
        let all = messages(&owner, &path).await;
        assert_eq!(all[2..], *added["messages"].as_array().unwrap());
        assert_eq!(texts(&all), ["one", "first", "by the way", "two", "three", "look"]);

        // Who follows sees turns that begin, speak and end.
        let mut seen = Vec::new();
        for _ in 0..11 {
            let frame = events.next().await.unwrap();
            if frame.event != "heartbeat" {
                seen.push(frame.event);
            }
        }
        let turn = |count| {
            let spoken = vec!["message.completed"; count];
            [vec!["turn.started"], spoken, vec!["turn.completed"]].concat()
        };
        let expected = [vec!["stream.hello", "session.updated"], turn(1), turn(2), turn(1)].concat();
        assert_eq!(seen, expected[..11]);
        let turns = list(&owner, &format!("{path}/turns")).await;
        assert_eq!(turns.len(), 4);
        for turn in &turns[..3] {
            assert_eq!(
                (&turn["status"], &turn["usage"]["steps"]),
                (&json!("completed"), &json!(0))
            );
            let own = owner
                .stream(&web, &format!("{path}/turns/{}/stream?after=0", text(&turn["id"])))
                .await;
            assert_eq!(own.rest().await.last().unwrap().event, "turn.completed");
        }

        say(&owner, &path, "four").await;
        let asked = model.asked()[1]["messages"].to_string();
        let places: Vec<Option<usize>> = ["one", "by the way", "two", "three", "look", "a.png", "four"]
            .iter()
            .map(|word| asked.find(word))
            .collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{asked}");
        let found = owner.get("/v1/search?q=way").await.expect(200);
        assert_eq!(found["data"][0]["message_id"], all[2]["id"]);
        web.stop().await;
    });
}

#[test]
fn a_name_is_taken_once_and_only_what_is_new_is_added() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        let first = append(&owner, &path, &[named("a"), named("b")]).await.expect(201);
        let head = owner.get(&path).await.expect(200);
        let again = append(&owner, &path, &[named("a"), named("b")]).await.expect(200);
        assert_eq!((&again["messages"], &again["added"]), (&first["messages"], &json!(0)));
        assert_eq!(owner.get(&path).await.expect(200), head, "nothing has changed");
        let more = [named("b"), named("c"), said("user", "d"), named("a")];
        let more = append(&owner, &path, &more).await.expect(201);
        assert_eq!(texts(more["messages"].as_array().unwrap()), ["b", "c", "d", "a"]);
        assert_eq!(more["added"], 2);
        assert_eq!(more["messages"][0], first["messages"][1]);
        assert_eq!(texts(&messages(&owner, &path).await), ["a", "b", "c", "d"]);
        // Another session knows nothing of the names; a fork and a file take them along.
        let other = session(&owner, &json!({})).await;
        append(&owner, &other, &[named("a")]).await.expect(201);
        let fork = owner.post(&format!("{path}/fork"), &json!({})).await.expect(201);
        let fork = format!("/v1/sessions/{}", text(&fork["id"]));
        append(&owner, &fork, &[named("c")]).await.expect(200);
        let file = owner
            .request(Method::GET, &format!("{path}/export"))
            .send()
            .await
            .unwrap();
        let file = file.text().await.unwrap();
        let import = owner
            .request(Method::POST, "/v1/sessions/import")
            .header("content-type", "application/x-ndjson");
        let copy = Answer::of(import.body(file).send().await.unwrap())
            .await
            .header("location");
        append(&owner, &copy, &[named("b")]).await.expect(200);
        assert_eq!(texts(&messages(&owner, &copy).await), ["a", "b", "c", "d"]);
        web.stop().await;
    });
}

#[test]
fn a_session_that_is_busy_takes_no_messages() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        let turn = say(&owner, &path, &guarded("a")).await["turn"].clone();
        assert_eq!(turn["status"], "waiting");
        let problem = append(&owner, &path, &[named("a")]).await.problem(409, "session_busy");
        assert_eq!(problem["context"]["turn_id"], turn["id"]);
        let pending = owner.get(&path).await.expect(200)["required_actions"][0]["id"].clone();
        assert_eq!(problem["context"]["pending_approval_ids"], json!([pending]));
        let cancel = format!("{path}/turns/{}/cancel", text(&turn["id"]));
        owner.post(&cancel, &json!({})).await.expect(200);
        append(&owner, &path, &[named("a")]).await.expect(201);
        web.stop().await;
    });
}

#[test]
fn what_is_no_message_is_refused_and_none_of_the_request_is_added() {
    on_both(async |mut place| {
        place.config.server.max_input_chars = 20;
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        let many: Vec<Value> = (0..201).map(|number| named(&number.to_string())).collect();
        let with = |field: &str, value: Value| {
            let mut message = named("n");
            message[field] = value;
            vec![named("fine"), message]
        };
        for (wrong, pointer) in [
            (Vec::new(), "/messages"),
            (many, "/messages"),
            (with("role", json!("system")), "/messages/1/role"),
            (with("role", json!("tool")), "/messages/1/role"),
            (with("content", json!(" ")), "/messages/1/content"),
            (with("content", json!([])), "/messages/1/content"),
            (with("content", json!("x".repeat(21))), "/messages/1/content"),
            (
                with(
                    "content",
                    json!([{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]),
                ),
                "/messages/1/content/0/image_url/url",
            ),
            (with("external_id", json!("")), "/messages/1/external_id"),
            (with("external_id", json!("x".repeat(257))), "/messages/1/external_id"),
            (with("external_id", json!("fine")), "/messages/1/external_id"),
            (with("created_at", json!("yesterday")), "/messages/1/created_at"),
            (with("tool_calls", json!([])), "/messages/1/tool_calls"),
        ] {
            let problem = append(&owner, &path, &wrong).await.problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        }
        assert_eq!(messages(&owner, &path).await, Vec::<Value>::new());
        web.stop().await;
    });
}
