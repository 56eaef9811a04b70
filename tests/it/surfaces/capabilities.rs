//! What the server says it can do, and how it is.

use serde_json::{Value, json};

use crate::harness::client::Client;
use crate::harness::on_both;
use crate::harness::script::{guarded, mark};

#[test]
fn health_is_open_and_says_little() {
    on_both(async |mut place| {
        let web = place.serve().await;
        for path in ["/health", "/v1/health"] {
            let health = web.anonymous().get(path).await.expect(200);
            assert_eq!(
                health,
                json!({"status": "ok", "platform": "hermes-agent", "version": env!("CARGO_PKG_VERSION")})
            );
        }
        assert_eq!(web.anonymous().get("/health/detailed").await.status, 401);
        let detailed = web.owner().await.get("/health/detailed").await.expect(200);
        assert_eq!(detailed["readiness"]["checks"]["state_db"]["status"], "ok");
        assert_eq!(
            (&detailed["status"], &detailed["gateway_state"]),
            (&json!("ok"), &json!("running"))
        );
        assert!(detailed["pid"].is_u64());
        web.stop().await;
    });
}

#[test]
fn the_document_has_what_strict_clients_insist_on() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let text = web
            .bare(reqwest::Method::GET, "/v1/capabilities")
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        assert!(text.len() < 65_536);
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(told["object"], "hermes.api_server.capabilities");
        assert_eq!(told["platform"], "hermes-agent");
        assert_eq!(told["auth"], json!({"type": "bearer", "required": true}));
        assert_eq!(web.client("hsk_wrong").get("/v1/capabilities").await.status, 401);
        assert_eq!(web.owner().await.get("/v1/capabilities").await.expect(200), told);
        web.stop().await;
    });
}

/// What is told as true and was not yet seen to work.
struct Told(Vec<String>);

impl Told {
    fn works(&mut self, names: &[&str]) {
        for name in names {
            let place = self.0.iter().position(|told| told == name);
            self.0
                .remove(place.unwrap_or_else(|| panic!("`{name}` works and is not told of")));
        }
    }
}

/// What is done for each feature; of what is not listed here nothing may be told.
#[test]
fn fc_101_every_feature_that_is_told_of_works() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let document = client.get("/v1/capabilities").await.expect(200);
        let flags = document["features"].as_object().unwrap();
        let on = flags.iter().filter(|(_, flag)| **flag == json!(true));
        let mut told = Told(on.map(|(name, _)| name.clone()).collect());
        chat_works(&client, &mut told).await;
        runs_work(&client, &mut told).await;
        responses_work(&client, &mut told).await;
        sessions_work(&client, &mut told).await;
        others_work(&client, &mut told).await;
        what_waits_for_a_client_works(&client, &mut told).await;
        assert_eq!(told.0, [""; 0], "told of and not tried");
        let kept = &document["features"]["runs_idempotency"];
        assert_eq!(
            (&kept["supported"], &kept["retention_seconds"]),
            (&json!(true), &json!(86_400))
        );
        for (name, one) in document["endpoints"].as_object().unwrap() {
            let path = one["path"].as_str().unwrap().replace(['{', '}'], "");
            let method = reqwest::Method::from_bytes(one["method"].as_str().unwrap().as_bytes()).unwrap();
            let answer = web.client("hsk_wrong").request(method, &path).send().await.unwrap();
            assert!(
                [200, 401].contains(&answer.status().as_u16()),
                "{name}: {}",
                answer.status()
            );
        }
        web.stop().await;
    });
}

async fn chat_works(client: &Client, told: &mut Told) {
    let messages = json!([{"role": "user", "content": format!("{}\n/then\n/say done", mark("x"))}]);
    client
        .post("/v1/chat/completions", &json!({"messages": messages}))
        .await
        .expect(200);
    let frames = client
        .post_stream("/v1/chat/completions", &json!({"messages": messages, "stream": true}))
        .await
        .rest()
        .await;
    assert!(
        frames
            .iter()
            .any(|frame| frame.event.as_deref() == Some("hermes.tool.progress"))
    );
    told.works(&["chat_completions", "chat_completions_streaming", "tool_progress_events"]);

    let waits = json!({"messages": [{"role": "user", "content": guarded("x")}]});
    let waits = client.post("/v1/chat/completions", &waits).await.expect(200);
    let asked = &waits["hermes"]["approvals"][0];
    let run = waits["hermes"]["run_id"].as_str().unwrap();
    let answer = json!({"choice": "deny", "approval_id": asked["approval_id"]});
    client
        .post(&format!("/v1/runs/{run}/approval"), &answer)
        .await
        .expect(200);
    told.works(&["chat_approvals", "approval_ids", "run_approval_response"]);
    let events = client.get_stream(&format!("/v1/runs/{run}/events")).await.rest().await;
    let asked = events
        .iter()
        .find(|frame| frame.comment.is_none() && frame.named() == "approval.request")
        .unwrap();
    let path = format!("/v1/runs/{run}/events?after={}", asked.id.as_deref().unwrap());
    assert!(client.get_stream(&path).await.rest().await.len() < events.len());
    client.get(&format!("/v1/runs/{run}")).await.expect(200);
    told.works(&["approval_events", "run_events_sse", "run_events_resume", "run_status"]);
}

async fn runs_work(client: &Client, told: &mut Told) {
    let begun = client
        .post("/v1/runs", &json!({"input": "/tokens 100000 100"}))
        .await
        .expect(202);
    let run = begun["run_id"].as_str().unwrap();
    let mut stream = client.get_stream(&format!("/v1/runs/{run}/events")).await;
    stream
        .until(|frame| frame.comment.is_none() && frame.named() == "message.delta")
        .await;
    client
        .post(&format!("/v1/runs/{run}/steer"), &json!({"text": "more"}))
        .await
        .expect(200);
    client
        .post(&format!("/v1/runs/{run}/stop"), &json!({}))
        .await
        .expect(200);
    told.works(&["run_submission", "run_steer", "run_stop"]);
}

async fn responses_work(client: &Client, told: &mut Told) {
    let response = client
        .post("/v1/responses", &json!({"input": "/say x", "background": true}))
        .await
        .expect(200);
    let path = format!("/v1/responses/{}?stream=true", response["id"].as_str().unwrap());
    assert_eq!(
        client.get_stream(&path).await.rest().await.last().unwrap().named(),
        "response.completed"
    );
    let waits = client
        .post("/v1/responses", &json!({"input": guarded("x")}))
        .await
        .expect(200);
    let answer =
        json!({"type": "mcp_approval_response", "approval_request_id": waits["output"][1]["id"], "approve": false});
    let next = json!({"previous_response_id": waits["id"], "input": [answer]});
    client.post("/v1/responses", &next).await.expect(200);
    told.works(&[
        "responses_api",
        "responses_streaming",
        "responses_background",
        "responses_approvals",
    ]);
}

async fn sessions_work(client: &Client, told: &mut Told) {
    client.post("/api/sessions", &json!({"id": "talk"})).await.expect(201);
    client
        .post("/api/sessions/talk/chat", &json!({"message": "/say heron"}))
        .await
        .expect(200);
    client
        .post_stream("/api/sessions/talk/chat/stream", &json!({"message": "/say x"}))
        .await
        .rest()
        .await;
    client.post("/api/sessions/talk/fork", &json!({})).await.expect(201);
    assert!(
        0 < client.get("/api/sessions/search?q=heron").await.expect(200)["count"]
            .as_u64()
            .unwrap()
    );
    told.works(&[
        "session_resources",
        "session_chat",
        "session_chat_streaming",
        "session_fork",
        "session_search",
    ]);
}

async fn others_work(client: &Client, told: &mut Told) {
    client.get("/p/default/v1/models").await.expect(200);
    let chat = json!({"id": "talk", "messages": [{"role": "user", "parts": [{"type": "text", "text": "/say x"}]}]});
    let parts = client.post_stream("/v1/ui/chat", &chat).await.rest().await;
    assert!(parts.iter().any(|part| part.data.contains("text-delta")));
    told.works(&["profiles", "ui_message_stream"]);
}

async fn what_waits_for_a_client_works(client: &Client, told: &mut Told) {
    let look_up = "/tool look_up {}\n/then\n/say done";
    let tools = json!([{"type": "function", "name": "look_up"}]);
    let asked = client
        .post("/v1/responses", &json!({"input": look_up, "tools": tools}))
        .await
        .expect(200);
    let output = json!([{"type": "function_call_output", "call_id": asked["output"][0]["call_id"], "output": "x"}]);
    let done = client
        .post("/v1/responses", &json!({"input": output}))
        .await
        .expect(200);
    assert_eq!(done["output"][0]["content"][0]["text"], "done");
    told.works(&["responses_function_tools"]);

    let tool = json!([{"type": "function", "function": {"name": "look_up"}}]);
    let session = json!({"external_id": "waits", "tools": tool, "toolsets": {"enabled": ["clarify"]}});
    client.post("/v1/sessions", &session).await.expect(201);
    let script = format!("/tool clarify {{\"question\": \"Which?\"}}\n/then\n{look_up}");
    let begun = client
        .post("/v1/runs", &json!({"input": script, "session_id": "waits"}))
        .await
        .expect(202);
    let run = format!("/v1/runs/{}", begun["run_id"].as_str().unwrap());
    let mut events = client.get_stream(&format!("{run}/events")).await;
    let asked = events.until(|frame| frame.named() == "clarify.request").await;
    let question = asked.last().unwrap().json()["clarification_id"].clone();
    let respond = format!("{run}/clarifications/{}/respond", question.as_str().unwrap());
    client.post(&respond, &json!({"answer": "this"})).await.expect(200);
    let handed = events.until(|frame| frame.named() == "tool.handed_over").await;
    let call = handed.last().unwrap().json()["tool_call_id"].clone();
    let results = json!({"results": [{"tool_call_id": call, "output": "x"}]});
    client.post(&format!("{run}/tool-results"), &results).await.expect(200);
    let rest = events.rest().await;
    assert!(rest.iter().any(|frame| frame.data.contains("run.completed")));
    told.works(&["run_clarifications", "run_tool_results"]);

    let job = client
        .post("/api/jobs", &json!({"schedule": "every 1d", "prompt": "/say x"}))
        .await
        .expect(200);
    let path = format!("/api/jobs/{}", job["job"]["id"].as_str().unwrap());
    assert_eq!(client.delete(&path).await.expect(200), json!({"ok": true}));
    told.works(&["jobs_admin"]);

    let skill = json!({"content": "---\nname: tidy\ndescription: Tidies up.\n---\nTidy up."});
    let put = client
        .request(reqwest::Method::PUT, "/v1/skills/tidy")
        .json(&skill)
        .send()
        .await
        .unwrap();
    assert_eq!(put.status(), 201);
    let skills = client.get("/v1/skills").await.expect(200);
    assert_eq!(skills["object"], "list");
    let all = skills["data"].as_array().unwrap();
    let tidy = all.iter().find(|skill| skill["name"] == "tidy").unwrap();
    assert_eq!(tidy["description"], "Tidies up.");
    assert!(tidy.as_object().unwrap().contains_key("category"));
    told.works(&["skills_api"]);
}

#[test]
fn lists_of_what_there_is_serve_both_surfaces() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let toolsets = client.get("/v1/toolsets").await.expect(200);
        assert_eq!(
            (&toolsets["object"], &toolsets["platform"]),
            (&json!("list"), &json!("api_server"))
        );
        let all = toolsets["data"].as_array().unwrap();
        let terminal = all.iter().find(|one| one["name"] == "terminal").unwrap();
        for (field, is_right) in [
            ("label", terminal["label"].is_string()),
            ("description", terminal["description"].is_string()),
            ("enabled", terminal["enabled"] == true),
            ("configured", terminal["configured"] == true),
            (
                "tools",
                terminal["tools"].as_array().unwrap().contains(&json!("terminal")),
            ),
        ] {
            assert!(is_right, "{field}: {terminal}");
        }
        let models = client.get("/v1/models").await.expect(200);
        let model = &models["data"][0];
        assert_eq!(
            (
                &models["object"],
                &model["object"],
                &model["owned_by"],
                &model["permission"]
            ),
            (&json!("list"), &json!("model"), &json!("hermes"), &json!([]))
        );
        assert_eq!(model["root"], model["id"]);
        let refused = client.get("/v1/models/nothing").await;
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (404, &json!("not_found"))
        );
        assert_eq!(refused.body["status"], 404, "a problem and an error at once");
        web.stop().await;
    });
}
