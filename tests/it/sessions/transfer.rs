//! Sessions as files: written, read, and refused.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use super::{list, messages, say, session, text};
use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::script::{guarded, mark};
use crate::harness::{Place, on_both};

async fn export(client: &Client, session: &str) -> String {
    let response = client
        .request(Method::GET, &format!("{session}/export"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let id = session.rsplit('/').next().unwrap();
    assert_eq!(
        response.headers()["content-disposition"],
        format!("attachment; filename=\"{id}.jsonl\"")
    );
    response.text().await.unwrap()
}

async fn import(client: &Client, query: &str, file: &str) -> Answer {
    let request = client
        .request(Method::POST, &format!("/v1/sessions/import{query}"))
        .header("content-type", "application/x-ndjson")
        .body(file.to_owned());
    Answer::of(request.send().await.unwrap()).await
}

fn lines(file: &str) -> Vec<Value> {
    file.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The file with ids by the order in which they come, and without the times and
/// names that belong to the session rather than to what is in it.
fn plain(file: &str) -> Vec<Value> {
    let mut names = BTreeMap::new();
    let mut lines = lines(file);
    for line in &mut lines {
        rename(line, &mut names);
        if line["type"] == "session" {
            (line["created_at"], line["external_id"]) = (Value::Null, Value::Null);
        }
    }
    lines
}

fn rename(value: &mut Value, names: &mut BTreeMap<String, usize>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_id = ["id", "tool_call_id"].contains(&key.as_str());
                match value.as_str().filter(|_| is_id) {
                    Some(id) => {
                        let count = names.len();
                        *value = json!(*names.entry(id.to_owned()).or_insert(count));
                    }
                    None => rename(value, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

/// A session with everything in it that a past can hold.
async fn eventful(client: &Client) -> String {
    let new = json!({"title": "여행", "instructions": "be brief", "temperature": 0.5, "budget": {"max_tokens": 1_000_000_000}, "metadata": {"z": 1, "a": [null]},
        "toolsets": {"disabled": ["web"]}, "response_format": {"type": "json_object"}});
    let path = session(client, &new).await;
    let todo = json!({"todos": [{"id": "1", "content": "pack", "status": "pending"}]});
    say(
        client,
        &path,
        &format!("/reason hm\n/tool todo {todo}\n/then\n/say one"),
    )
    .await;
    say(client, &path, &format!("{}\n{}\n/then\n/say two", mark("a"), mark("b"))).await;
    let waits = say(client, &path, &guarded("c")).await;
    let approval = text(&waits["approvals"][0]["id"]);
    let decision = format!("/v1/approvals/{approval}/decision");
    client
        .post(&decision, &json!({"choice": "deny", "stop_turn": true}))
        .await
        .expect(200);
    let turns = format!("{path}/turns?wait=20");
    client.post(&turns, &json!({"input": "/error 400"})).await.expect(502);
    path
}

#[test]
fn what_is_read_from_a_file_is_written_into_one_again() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        assert_eq!(lines(&export(&owner, &path).await).len(), 2);

        let path = eventful(&owner).await;
        let first = export(&owner, &path).await;
        let kinds: Vec<String> = lines(&first).iter().map(|line| text(&line["type"])).collect();
        assert_eq!(
            (kinds.first().unwrap().as_str(), kinds.last().unwrap().as_str()),
            ("session", "end")
        );
        assert_eq!(kinds.iter().filter(|kind| *kind == "turn").count(), 4);
        let made = import(&owner, "", &first).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let copy = made.header("location");
        let old = path.rsplit('/').next().unwrap();
        assert_eq!(made.body["external_id"], old);
        let found = owner.get(&format!("/v1/sessions?external_id={old}")).await.expect(200);
        assert_eq!(found["data"][0]["id"], made.body["id"]);
        let second = export(&owner, &copy).await;
        assert_eq!(plain(&second), plain(&first));
        assert_ne!(second, first);
        // What clients see of both is the same too.
        let (theirs, ours) = (messages(&owner, &path).await, messages(&owner, &copy).await);
        let shape = |messages: &[Value]| -> Vec<Value> {
            let shape = |message: &Value| json!([message["role"], message["content"], message["reasoning"]]);
            messages.iter().map(shape).collect()
        };
        assert_eq!(shape(&ours), shape(&theirs));
        // It goes on where the other stood.
        let done = say(&owner, &copy, "/tool todo\n/then\n/say on").await;
        assert_eq!(done["turn"]["status"], "completed", "{done}");
        let result = messages(&owner, &copy)
            .await
            .into_iter()
            .rfind(|message| message["role"] == "tool");
        assert!(result.unwrap()["content"][0]["text"].as_str().unwrap().contains("pack"));
        // And its words are found.
        let hits = list(&owner, "/v1/search?q=%EC%97%AC%ED%96%89").await;
        assert_eq!(hits.len(), 2, "{hits:?}");
        // A file is taken once, unless it gets another name.
        import(&owner, "", &first).await.problem(409, "external_id_taken");
        let again = import(&owner, "?external_id=again", &first).await.expect(201);
        assert_eq!(again["external_id"], "again");
        web.stop().await;
    });
}

#[test]
fn what_runs_is_not_in_the_file() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        say(&owner, &path, "/say one").await;
        let before = export(&owner, &path).await;
        let waits = say(&owner, &path, &guarded("log")).await;
        assert_eq!(waits["turn"]["status"], "waiting");
        assert_eq!(plain(&export(&owner, &path).await), plain(&before));
        web.stop().await;
    });
}

#[test]
fn a_file_of_many_pages_comes_whole() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        let batch: Vec<String> = (0..100)
            .map(|n| format!("/tool read_file {{\"path\": \"f{n}\"}}"))
            .collect();
        say(&owner, &path, &format!("{}\n/then\n/say done", batch.join("\n"))).await;
        let file = export(&owner, &path).await;
        let end = lines(&file).pop().unwrap();
        assert_eq!(end, json!({"type": "end", "turns": 1, "messages": 103}));
        let made = import(&owner, "", &file).await.expect(201);
        let copy = format!("/v1/sessions/{}", text(&made["id"]));
        assert_eq!(plain(&export(&owner, &copy).await), plain(&file));
        web.stop().await;
    });
}

#[test]
fn a_file_with_a_fault_leaves_nothing() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = eventful(&owner).await;
        let file = export(&owner, &path).await;
        owner.delete(&path).await;
        let whole: Vec<&str> = file.lines().collect();
        let last = whole.len() - 1;
        let with = |line: usize, change: &dyn Fn(&mut Value)| {
            let mut value: Value = serde_json::from_str(whole[line]).unwrap();
            change(&mut value);
            let mut lines: Vec<String> = whole.iter().map(|line| (*line).to_owned()).collect();
            lines[line] = value.to_string();
            lines.join("\n")
        };
        let calling = lines(&file)
            .iter()
            .position(|line| line["tool_calls"].is_array())
            .unwrap();
        let cases = [
            (String::new(), "/0".to_owned()),
            ("{}".to_owned(), "/0/type".to_owned()),
            (whole[..last].join("\n"), format!("/{}", last - 1)),
            ([&whole[..2], &whole[3..]].concat().join("\n"), format!("/{}", last - 1)),
            (with(0, &|line| line["version"] = json!(2)), "/0/version".to_owned()),
            (with(0, &|line| line["preset"] = json!("none")), "/toolsets".to_owned()),
            (with(0, &|line| line["extra"] = json!(1)), "/0/extra".to_owned()),
            (
                with(0, &|line| line["sampling"]["top_p"] = json!(3)),
                "/0/sampling/top_p".to_owned(),
            ),
            (
                with(0, &|line| line["environment"]["backend"] = json!("moon")),
                "/0/environment/backend".to_owned(),
            ),
            (with(0, &|line| line["todo"] = json!([{"id": 1}])), "/0/todo".to_owned()),
            (
                with(1, &|line| line["status"] = json!("running")),
                "/1/status".to_owned(),
            ),
            (with(2, &|line| line["role"] = json!("robot")), "/2/role".to_owned()),
            (
                with(2, &|line| {
                    line["content"] = json!([{"type": "image_url", "image_url": {"url": "file:///x"}}]);
                }),
                "/2/content/0/image_url/url".to_owned(),
            ),
            (
                with(calling, &|line| line["tool_calls"][0]["status"] = json!("running")),
                format!("/{calling}/tool_calls"),
            ),
            (
                with(calling + 1, &|line| line["tool_call_id"] = json!("call_x")),
                format!("/{}/tool_call_id", calling + 1),
            ),
            (with(last, &|line| line["messages"] = json!(1)), format!("/{last}")),
            (format!("{file}{}", whole[0]), format!("/{}", last + 1)),
            (
                file.replacen("\"version\":1", "\"version\":1,\"version\":1", 1),
                "/0".to_owned(),
            ),
        ];
        for (broken, pointer) in cases {
            let problem = import(&owner, "", &broken).await.problem(400, "invalid_request");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        }
        let as_json = owner.post("/v1/sessions/import", &json!({})).await;
        as_json.problem(415, "unsupported_media_type");
        assert!(list(&owner, "/v1/sessions?archived=all").await.is_empty());
        assert!(list(&owner, "/v1/search?q=brief").await.is_empty());
        import(&owner, "", &file).await.expect(201);
        web.stop().await;
    });
}

#[test]
fn a_file_is_as_long_as_any_body_and_is_taken_once_under_its_key() {
    on_both(async |mut place: Place| {
        place.config.server.max_body_bytes = 2_000;
        let web = place.serve().await;
        let owner = web.owner().await;
        let path = session(&owner, &json!({})).await;
        say(&owner, &path, "/say one").await;
        let file = export(&owner, &path).await;
        assert!(file.len() < 2_000, "{}", file.len());
        let post = async || {
            let request = owner
                .request(Method::POST, "/v1/sessions/import")
                .header("content-type", "application/x-ndjson")
                .header("Idempotency-Key", "k")
                .body(file.clone());
            Answer::of(request.send().await.unwrap()).await
        };
        let (one, two) = (post().await, post().await);
        assert_eq!((one.status, &one.body), (201, &two.body), "{}", two.body);
        assert_eq!(two.header("idempotency-replayed"), "true");
        let long = file.replacen(
            "\"instructions\":null",
            &format!("\"instructions\":\"{}\"", "x".repeat(2_000)),
            1,
        );
        assert_ne!(long, file);
        import(&owner, "?external_id=l", &long)
            .await
            .problem(413, "payload_too_large");
        web.stop().await;
    });
}
