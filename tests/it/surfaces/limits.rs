//! Limits as the drop-in surfaces tell them, and names that are none.

use std::time::Duration;

use hermes_server::config::Quota;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::on_both;
use crate::harness::script::mark;

const LONG: &str = "/tokens 100000 200";

/// Every route that begins a turn, with a body that would.
fn beginnings(input: &str) -> Vec<(&'static str, Value)> {
    let messages = json!([{"role": "user", "content": input}]);
    let parts = json!([{"role": "user", "parts": [{"type": "text", "text": input}]}]);
    vec![
        ("/v1/chat/completions", json!({"messages": messages})),
        ("/v1/chat/completions", json!({"messages": messages, "stream": true})),
        ("/v1/responses", json!({"input": input})),
        ("/v1/responses", json!({"input": input, "stream": true})),
        ("/v1/responses", json!({"input": input, "background": true})),
        ("/v1/runs", json!({"input": input})),
        ("/api/sessions/talk/chat", json!({"message": input})),
        ("/api/sessions/talk/chat/stream", json!({"message": input})),
        ("/v1/ui/chat", json!({"id": "page", "messages": parts})),
    ]
}

fn assert_limited(answer: &Answer, path: &str) {
    assert_eq!(answer.status, 429, "{path}: {}", answer.body);
    let error = &answer.body["error"];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("rate_limit_error"), &json!("rate_limit_exceeded")),
        "{path}"
    );
    assert!(1 <= answer.header("retry-after").parse::<u32>().unwrap(), "{path}");
}

async fn sessions(client: &Client) -> usize {
    client.get("/v1/sessions").await.expect(200)["data"]
        .as_array()
        .unwrap()
        .len()
}

#[test]
fn fc_070_a_full_server_starts_nothing_for_clients_of_other_surfaces() {
    on_both(async |mut place| {
        place.config.limits.server.executing_turns = Some(1);
        let web = place.serve().await;
        let client = web.owner().await;
        client.post("/api/sessions", &json!({"id": "talk"})).await.expect(201);
        let busy = client.post("/v1/runs", &json!({"input": LONG})).await.expect(202);
        let before = sessions(&client).await;
        for (path, body) in beginnings(&format!("{}\n/then\n/say no", mark("x"))) {
            assert_limited(&client.post(path, &body).await, path);
        }
        assert_eq!(sessions(&client).await, before, "nothing of it was stored");
        let said = client.get("/api/sessions/talk/messages").await.expect(200);
        assert_eq!(said["data"], json!([]));
        let stop = format!("/v1/runs/{}/stop", busy["run_id"].as_str().unwrap());
        client.post(&stop, &json!({})).await.expect(200);
        let events = format!("/v1/runs/{}/events", busy["run_id"].as_str().unwrap());
        client.get_stream(&events).await.rest().await;
        for (path, body) in beginnings("/say yes") {
            let taken = client.request(Method::POST, path).json(&body).send().await.unwrap();
            assert!(taken.status().is_success(), "{path}");
            let id = taken.headers().get("x-hermes-session-id").cloned();
            assert!(path.contains("runs") || path.contains("ui") || id.is_some(), "{path}");
            taken.text().await.unwrap();
            idle(&client).await;
        }
        web.stop().await;
    });
}

/// Waits until no session of the user has a turn.
async fn idle(client: &Client) {
    for _ in 0..2_000 {
        let sessions = client.get("/v1/sessions").await.expect(200);
        let all = sessions["data"].as_array().unwrap();
        if all.iter().all(|session| session["status"] == "idle") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the turns do not end");
}

#[test]
fn rates_are_told_on_every_surface_and_a_refusal_has_its_form() {
    on_both(async |mut place| {
        place.config.limits.key.requests = Some(Quota {
            requests: 9,
            window: Duration::from_hours(24),
        });
        let web = place.serve().await;
        let client = web.owner().await;
        for path in [
            "/v1/models",
            "/v1/capabilities",
            "/api/sessions",
            "/api/jobs",
            "/v1/toolsets",
        ] {
            let answer = client.get(path).await;
            assert_eq!(answer.status, 200, "{path}");
            assert!(answer.header("ratelimit").starts_with("\"key\";r="), "{path}");
            assert!(answer.header("ratelimit-policy").starts_with("\"key\";q=9"), "{path}");
        }
        let body = json!({"messages": [{"role": "user", "content": "/say x"}], "stream": true});
        let stream = client.post_stream("/v1/chat/completions", &body).await;
        assert!(stream.headers["ratelimit"].to_str().unwrap().starts_with("\"key\";r=3"));
        stream.rest().await;
        for _ in 0..3 {
            client.get("/v1/models").await.expect(200);
        }
        for path in ["/v1/chat/completions", "/v1/responses", "/v1/runs", "/api/sessions"] {
            assert_limited(&client.post(path, &json!({})).await, path);
        }
        let bare = client.get("/api/jobs").await;
        assert_eq!((bare.status, bare.body["error"].is_string()), (429, true));
        web.stop().await;
    });
}

#[test]
fn fc_092_names_that_are_none_reach_nothing_on_any_surface() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let long = "x".repeat(300);
        let messages = json!([{"role": "user", "content": "/say x"}]);
        for name in ["../../etc/passwd", "a/b", "a\\b", "c:\\x", long.as_str()] {
            let chat = client
                .request(Method::POST, "/v1/chat/completions")
                .json(&json!({"messages": messages}))
                .header("x-hermes-session-id", name);
            let chat = Answer::of(chat.send().await.unwrap()).await;
            assert_eq!(
                (chat.status, &chat.body["error"]["code"]),
                (400, &json!("invalid_session_id")),
                "{name}"
            );
            for (path, body) in [
                ("/v1/runs", json!({"input": "/say x", "session_id": name})),
                ("/api/sessions", json!({"id": name})),
                ("/v1/ui/chat", json!({"id": name, "messages": messages})),
            ] {
                let refused = client.post(path, &body).await;
                assert_eq!(refused.status, 400, "{path} {name}: {}", refused.body);
            }
        }
        for name in [
            "%2e%2e%2f",
            "..%2f..%2fetc%2fpasswd",
            "%00",
            "%F0%9F%A6%80",
            long.as_str(),
        ] {
            for path in [
                format!("/api/sessions/{name}"),
                format!("/api/sessions/{name}/messages"),
                format!("/api/jobs/{name}"),
                format!("/v1/runs/{name}"),
                format!("/v1/responses/{name}"),
                format!("/p/{name}/v1/models"),
            ] {
                let answer = client.get(&path).await;
                assert!(
                    [400, 404].contains(&answer.status),
                    "{path}: {} {}",
                    answer.status,
                    answer.body
                );
            }
        }
        assert_eq!(sessions(&client).await, 0, "nothing was made");
        // What is no path is a name, in any writing.
        for name in ["🦀", "Gespräch 1"] {
            client.post("/api/sessions", &json!({"id": name})).await.expect(201);
            let chat = json!({"message": "/say x"});
            let path = format!("/api/sessions/{}/chat", name.replace(' ', "%20"));
            client.post(&path, &chat).await.expect(200);
        }
        web.stop().await;
    });
}

#[test]
fn a_name_of_model_routes_is_answered_by_its_model_on_every_surface() {
    on_both(async |mut place| {
        let replies: Vec<Reply> = (0..9).map(|_| Reply::say("hi")).collect();
        let model = ModelServer::start(replies).await;
        place.config.openai.base_url = Some(model.base_url.clone());
        place.config.model = Some("usual".to_owned());
        place.config.model_routes = [("fast".to_owned(), "small".to_owned())].into();
        let web = place.serve().await;
        let client = web.owner().await;
        let listed = client.get("/v1/models").await.expect(200);
        let shown: Vec<Value> = listed["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| json!([one["id"], one["root"], one["parent"]]))
            .collect();
        assert_eq!(
            shown,
            [json!(["usual", "usual", null]), json!(["fast", "small", "usual"])]
        );
        assert_eq!(client.get("/v1/models/fast").await.expect(200)["root"], "small");
        let session = client.post("/v1/sessions", &json!({"model": "fast"})).await.expect(201);
        let turns = format!("/v1/sessions/{}/turns?wait=20", session["id"].as_str().unwrap());
        let messages = json!([{"role": "user", "content": "go"}]);
        for (path, body, answers) in [
            (
                "/v1/chat/completions",
                json!({"messages": messages, "model": "fast"}),
                "small",
            ),
            (
                "/v1/chat/completions",
                json!({"messages": messages, "model": "gpt-4o"}),
                "usual",
            ),
            ("/v1/responses", json!({"input": "go", "model": "fast"}), "small"),
            ("/v1/responses", json!({"input": "go", "model": "gpt-4o"}), "usual"),
            ("/v1/runs", json!({"input": "go", "model": "fast"}), "small"),
            ("/v1/runs", json!({"input": "go", "model": 5}), "usual"),
            (turns.as_str(), json!({"input": "go"}), "small"),
        ] {
            let before = model.asked().len();
            let answer = client.post(path, &body).await;
            assert!(answer.status < 300, "{path}: {}", answer.body);
            idle(&client).await;
            let asked = model.asked();
            assert_eq!(asked[before]["model"], answers, "{path} {body}");
            // What was asked for comes back, whoever answers.
            let echoed = &answer.body["model"];
            assert!(
                path.contains("runs") || path.contains("turns") || *echoed == body["model"],
                "{path}: {echoed}"
            );
        }
        web.stop().await;
    });
}
