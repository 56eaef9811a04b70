//! What clients of the drop-in surfaces may rely on beyond one request: keys that
//! outlive the server, approvals that do, images that arrive, pages of an origin
//! that is allowed.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::client::Client;
use crate::harness::http::{Answer, KEY};
use crate::harness::on_both;
use crate::harness::script::{guarded, mark};

/// One key for each kind of body: a key is a route's own.
async fn keyed(client: &Client, path: &str, body: &Value) -> Answer {
    let key = if body["background"] == true {
        "background"
    } else {
        "the-key"
    };
    let request = client.request(Method::POST, path).json(body);
    let sent = request.header("idempotency-key", key).send().await;
    Answer::of(sent.unwrap()).await
}

/// Routes that begin a turn and answer with its stream.
fn streams(said: &str) -> [(&'static str, Value); 4] {
    let messages = json!([{"role": "user", "content": said}]);
    let parts = json!([{"role": "user", "parts": [{"type": "text", "text": said}]}]);
    [
        ("/v1/chat/completions", json!({"messages": messages, "stream": true})),
        ("/v1/responses", json!({"input": said, "stream": true})),
        ("/api/sessions/talk/chat/stream", json!({"message": said})),
        ("/v1/ui/chat", json!({"id": "page", "messages": parts})),
    ]
}

/// The stream under a key, and whether it was there before.
async fn keyed_stream(client: &Client, path: &str, body: &Value) -> (bool, String) {
    let request = client.request(Method::POST, path).json(body);
    let sent = request.header("idempotency-key", "streamed").send().await.unwrap();
    assert_eq!(sent.status(), 200, "{path}");
    (
        sent.headers().contains_key("idempotency-replayed"),
        sent.text().await.unwrap(),
    )
}

#[test]
fn a_stream_is_safe_to_ask_for_again_after_a_restart() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.client(KEY);
        client.post("/api/sessions", &json!({"id": "talk"})).await.expect(201);
        let all = streams(&format!("{}\n/then\n/say all done", mark("x")));
        for (path, body) in &all {
            let (replayed, text) = keyed_stream(&client, path, body).await;
            assert!(!replayed && text.contains("done"), "{path}: {text}");
        }
        web.stop().await;
        let web = place.serve().await;
        let client = web.client(KEY);
        let turns = async || {
            let mut count = 0;
            for session in client.get("/v1/sessions").await.expect(200)["data"].as_array().unwrap() {
                let path = format!("/v1/sessions/{}/turns", session["id"].as_str().unwrap());
                count += client.get(&path).await.expect(200)["data"].as_array().unwrap().len();
            }
            count
        };
        let before = turns().await;
        for (path, body) in &all {
            let (replayed, text) = keyed_stream(&client, path, body).await;
            assert!(replayed && text.contains("done"), "{path}: {text}");
        }
        assert_eq!(turns().await, before, "nothing ran again");
        web.stop().await;
    });
}

#[test]
fn a_key_and_what_waits_outlive_the_server_on_every_surface() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.client(KEY);
        let said = format!("{}\n/then\n/say done", mark("x"));
        let messages = json!([{"role": "user", "content": said}]);
        client.post("/api/sessions", &json!({"id": "talk"})).await.expect(201);
        let all = [
            ("/v1/runs", json!({"input": said}), "/run_id"),
            ("/v1/responses", json!({"input": said}), "/id"),
            ("/v1/chat/completions", json!({"messages": messages}), "/id"),
            ("/api/sessions/talk/chat", json!({"message": said}), "/runtime/run_id"),
            ("/v1/responses", json!({"input": said, "background": true}), "/id"),
            ("/api/sessions", json!({"id": "kept"}), "/session/session_id"),
            (
                "/api/sessions/talk/fork",
                json!({"id": "forked"}),
                "/session/session_id",
            ),
            (
                "/api/jobs",
                json!({"schedule": "every 1d", "prompt": "/say x"}),
                "/job/id",
            ),
        ];
        let mut first = Vec::new();
        for (path, body, id) in &all {
            let answer = keyed(&client, path, body).await;
            assert!(answer.status < 300, "{path}: {}", answer.body);
            first.push(answer.body.pointer(id).cloned().unwrap());
        }
        let waits = client
            .post("/v1/runs", &json!({"input": guarded("y")}))
            .await
            .expect(202);
        let run = format!("/v1/runs/{}", waits["run_id"].as_str().unwrap());
        let mut events = client.get_stream(&format!("{run}/events")).await;
        let asked = events.until(|frame| frame.named() == "approval.request").await;
        let asked = asked.last().unwrap().json()["approval_id"].clone();
        drop(events);
        web.stop().await;

        let web = place.serve().await;
        let client = web.client(KEY);
        let before = client.get("/v1/sessions").await.expect(200)["data"]
            .as_array()
            .unwrap()
            .len();
        for ((path, body, id), first) in all.iter().zip(&first) {
            let again = keyed(&client, path, body).await;
            assert_eq!(again.header("idempotency-replayed"), "true", "{path}");
            assert_eq!(again.body.pointer(id), Some(first), "{path}: {}", again.body);
            let mut other = body.clone();
            other["more"] = json!(true);
            let refused = keyed(&client, path, &other).await;
            assert_eq!(refused.status, 422, "{path}");
            let code = &refused.body["error"]["code"];
            assert!(
                code == "idempotency_key_conflict" || path.contains("jobs"),
                "{path}: {}",
                refused.body
            );
        }
        let sessions = client.get("/v1/sessions").await.expect(200);
        assert_eq!(sessions["data"].as_array().unwrap().len(), before, "nothing ran again");
        let status = client.get(&run).await.expect(200);
        assert_eq!(
            (&status["status"], &status["approval"]["approval_id"]),
            (&json!("waiting_for_approval"), &asked)
        );
        let answer = json!({"choice": "deny", "request_id": asked});
        client.post(&format!("{run}/approval"), &answer).await.expect(200);
        let rest = client.get_stream(&format!("{run}/events")).await.rest().await;
        assert!(rest.iter().any(|frame| frame.data.contains("run.completed")));
        web.stop().await;
    });
}

#[test]
fn an_image_reaches_the_transcript_from_every_surface() {
    const IMAGE: &str = "data:image/png;base64,iVBORw0KGgo=";
    on_both(async |mut place| {
        let web = place.serve().await;
        client_sends_images(&web.owner().await, IMAGE).await;
        web.stop().await;
    });
}

async fn client_sends_images(client: &Client, image: &str) {
    let chat = json!([{"type": "text", "text": "/say seen"}, {"type": "image_url", "image_url": {"url": image}}]);
    let responses = json!([{"type": "input_text", "text": "/say seen"}, {"type": "input_image", "image_url": image}]);
    let page = json!([{"type": "text", "text": "/say seen"},
        {"type": "file", "mediaType": "image/png", "url": image}]);
    client.post("/api/sessions", &json!({"id": "talk"})).await.expect(201);
    for (path, body) in [
        (
            "/v1/chat/completions",
            json!({"messages": [{"role": "user", "content": chat}]}),
        ),
        (
            "/v1/responses",
            json!({"input": [{"role": "user", "content": responses}], "conversation": "own"}),
        ),
        ("/api/sessions/talk/chat", json!({"message": chat})),
        (
            "/v1/ui/chat",
            json!({"id": "page", "messages": [{"role": "user", "parts": page}]}),
        ),
    ] {
        let answer = client.request(Method::POST, path).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        assert!(answer.text().await.unwrap().contains("seen"), "{path}");
    }
    let sessions = client.get("/v1/sessions").await.expect(200);
    let sessions = sessions["data"].as_array().unwrap();
    assert_eq!(sessions.len(), 4);
    for session in sessions {
        let path = format!("/v1/sessions/{}/messages", session["id"].as_str().unwrap());
        let first = client.get(&path).await.expect(200)["data"][0]["content"].clone();
        assert_eq!(first[1]["image_url"]["url"], image, "{first}");
    }
}

#[test]
fn pages_of_an_origin_that_is_allowed_may_use_every_surface() {
    on_both(async |mut place| {
        place.config.server.allowed_origins = vec!["https://app.example".to_owned()];
        let web = place.serve().await;
        let client = web.owner().await;
        assert_eq!(
            client.get("/v1/capabilities").await.expect(200)["features"]["cors"],
            true
        );
        for path in [
            "/v1/chat/completions",
            "/api/sessions/talk",
            "/v1/runs",
            "/v1/ui/chat",
            "/api/jobs",
        ] {
            let asked = web
                .bare(Method::OPTIONS, path)
                .header("origin", "https://app.example")
                .header("access-control-request-method", "PATCH")
                .header("access-control-request-headers", "authorization, x-hermes-session-id")
                .send()
                .await
                .unwrap();
            let said = |name: &str| {
                let value = asked.headers().get(name).map(|value| value.to_str().unwrap());
                value.unwrap_or_default().to_ascii_lowercase()
            };
            assert_eq!(said("access-control-allow-origin"), "https://app.example", "{path}");
            assert!(said("access-control-allow-methods").contains("patch"), "{path}");
            assert!(
                said("access-control-allow-headers").contains("x-hermes-session-id"),
                "{path}"
            );
        }
        let begun = client.post("/v1/runs", &json!({"input": "/say x"})).await.expect(202);
        let path = format!("/v1/runs/{}/events", begun["run_id"].as_str().unwrap());
        let stream = client
            .request(Method::GET, &path)
            .header("origin", "https://app.example");
        let stream = stream.send().await.unwrap();
        assert_eq!(stream.headers()["access-control-allow-origin"], "https://app.example");
        let exposed = stream.headers()["access-control-expose-headers"].to_str().unwrap();
        assert!(
            exposed.to_ascii_lowercase().contains("x-hermes-session-id"),
            "{exposed}"
        );
        stream.text().await.unwrap();
        let foreign = client
            .request(Method::GET, "/v1/models")
            .header("origin", "https://evil.example");
        assert_eq!(foreign.send().await.unwrap().status(), 403);
        web.stop().await;
    });
}

#[test]
fn an_image_that_the_model_names_is_in_the_answer_and_the_conversation_goes_on() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let path = "/v1/chat/completions";
        let draw =
            "/tool terminal {\"command\": \"printf abc > pic.png; printf abc > pic.txt; pwd\"}\n/then\n/say drawn";
        let mut said = vec![json!({"role": "user", "content": draw})];
        let answer = client.post(path, &json!({"messages": said})).await.expect(200);
        said.push(answer["choices"][0]["message"].clone());
        let sessions = client.get("/v1/sessions").await.expect(200);
        let session = sessions["data"][0]["id"].as_str().unwrap().to_owned();
        let messages = client
            .get(&format!("/v1/sessions/{session}/messages"))
            .await
            .expect(200);
        let printed = messages["data"][2]["content"][0]["text"].as_str().unwrap();
        let printed: Value = serde_json::from_str(printed).unwrap();
        let here = printed["output"].as_str().unwrap().trim();

        let show = format!("/say See MEDIA:{here}/pic.png and MEDIA:{here}/pic.txt and MEDIA:/etc/hosts.png");
        said.push(json!({"role": "user", "content": show}));
        let answer = client.post(path, &json!({"messages": said})).await.expect(200);
        let shown = answer["choices"][0]["message"]["content"].as_str().unwrap();
        let expected =
            format!("See ![pic.png](data:image/png;base64,YWJj) and MEDIA:{here}/pic.txt and MEDIA:/etc/hosts.png");
        assert_eq!(shown, expected);
        said.push(answer["choices"][0]["message"].clone());
        said.push(json!({"role": "user", "content": "/say on"}));
        client.post(path, &json!({"messages": said})).await.expect(200);
        let sessions = client.get("/v1/sessions").await.expect(200);
        assert_eq!(sessions["data"].as_array().unwrap().len(), 1, "it is one conversation");
        web.stop().await;
    });
}
