//! What strict clients rely on whatever happens: frames that fit, failures without
//! secrets, refusals that a page may read, choices that count for as long as they
//! may.

use reqwest::Method;
use serde_json::{Value, json};

use super::chat::{checked, says, text};
use super::wire::Stream;
use crate::harness::client::Client;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::on_both;
use crate::harness::script::guarded;

const CHAT: &str = "/v1/chat/completions";

#[test]
fn a_yes_for_always_counts_for_as_long_as_one_may_be_given() {
    on_both(async |mut place| {
        place.config.approvals.allow_permanent = false;
        let web = place.serve().await;
        let client = web.owner().await;
        for surface in ["runs", "responses", "ui"] {
            let script = format!("{}\n/then\n/say after", guarded(surface));
            let run = json!({"input": script, "session_id": surface});
            let run = client.post("/v1/runs", &run).await.expect(202)["run_id"].clone();
            let run = format!("/v1/runs/{}", run.as_str().unwrap());
            let mut events = client.get_stream(&format!("{run}/events")).await;
            let asked = events.until(|frame| frame.named() == "approval.request").await;
            let asked = asked.last().unwrap().json();
            assert_eq!(
                (&asked["allow_permanent"], &asked["choices"]),
                (&json!(false), &json!(["once", "session", "deny"]))
            );
            let id = asked["approval_id"].as_str().unwrap();
            let part = json!({"type": "dynamic-tool", "state": "approval-responded",
                "approval": {"id": id, "approved": true}});
            let (path, body) = match surface {
                "runs" => (
                    format!("{run}/approval"),
                    json!({"choice": "always", "approval_id": id}),
                ),
                "responses" => (
                    "/v1/responses".to_owned(),
                    json!({"input": [{"type": "mcp_approval_response", "approval_request_id": id, "approve": true,
                        "choice": "always"}]}),
                ),
                _ => (
                    "/v1/ui/chat".to_owned(),
                    json!({"id": surface, "messages": [{"role": "assistant", "parts": [part]}],
                        "choices": {id: "always"}}),
                ),
            };
            let sent = client.request(Method::POST, &path).json(&body).send().await.unwrap();
            assert_eq!(sent.status(), 200, "{surface}");
            sent.text().await.unwrap();
            let decided = client.get(&format!("/v1/approvals/{id}")).await.expect(200);
            assert_eq!(decided["decision"]["choice"], "session", "{surface}");
            events.rest().await;
        }
        web.stop().await;
    });
}

/// Whatever the surface tells of a turn that says this.
async fn told(client: &Client, surface: &str) -> String {
    let said = json!([{"role": "user", "content": "go"}]);
    let parts = json!([{"role": "user", "parts": [{"type": "text", "text": "go"}]}]);
    let (path, body) = match surface {
        "chat" => (CHAT, json!({"messages": said})),
        "chat stream" => (CHAT, json!({"messages": said, "stream": true})),
        "responses" => ("/v1/responses", json!({"input": "go"})),
        "responses stream" => ("/v1/responses", json!({"input": "go", "stream": true})),
        "session chat" => ("/api/sessions/talk/chat", json!({"message": "go"})),
        "session chat stream" => ("/api/sessions/talk/chat/stream", json!({"message": "go"})),
        "ui" => ("/v1/ui/chat", json!({"id": "page", "messages": parts})),
        _ => ("/v1/runs", json!({"input": "go"})),
    };
    let answer = client.request(Method::POST, path).json(&body).send().await.unwrap();
    let headers = format!("{:?}", answer.headers());
    let text = answer.text().await.unwrap();
    if surface != "runs" {
        return headers + &text;
    }
    let begun: Value = serde_json::from_str(&text).unwrap();
    let run = format!("/v1/runs/{}", begun["run_id"].as_str().unwrap());
    let events = client.get_stream(&format!("{run}/events")).await.rest().await;
    format!("{events:?}{}", client.get(&run).await.body)
}

#[test]
fn a_failure_says_why_and_shows_no_secret() {
    const SECRET: &str = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    on_both(async |mut place| {
        let refusal = || Reply::refusal(401, &format!("Incorrect API key provided: {SECRET}."));
        let model = ModelServer::start((0..20).map(|_| refusal()).collect::<Vec<_>>()).await;
        place.config.openai.base_url = Some(model.base_url.clone());
        place.config.model = Some("scripted".to_owned());
        let web = place.serve().await;
        let client = web.owner().await;
        client.post("/api/sessions", &json!({"id": "talk"})).await.expect(201);
        for surface in [
            "chat",
            "chat stream",
            "responses",
            "responses stream",
            "runs",
            "session chat",
            "session chat stream",
            "ui",
        ] {
            let told = told(&client, surface).await;
            assert!(!told.contains(SECRET), "{surface}: {told}");
            assert!(told.contains("error"), "{surface}: {told}");
        }
        web.stop().await;
    });
}

#[test]
fn a_frame_of_a_chat_fits_however_much_is_said_or_asked() {
    on_both(async |mut place| {
        let long = "한".repeat(90_000);
        let model = ModelServer::start(vec![Reply::say(&long)]).await;
        place.config.openai.base_url = Some(model.base_url.clone());
        place.config.model = Some("scripted".to_owned());
        let web = place.serve().await;
        let client = web.owner().await;
        let body = json!({"messages": [{"role": "user", "content": "go"}], "stream": true});
        let frames = client.post_stream(CHAT, &body).await.rest().await;
        // An escape is at most six characters.
        assert!(frames.iter().all(|frame| frame.data.chars().count() * 6 < 65_536));
        let chunks: Vec<Value> = frames
            .iter()
            .filter_map(|frame| serde_json::from_str(&frame.data).ok())
            .collect();
        assert_eq!(text(&chunks), long);
        web.stop().await;
    });
}

#[test]
fn arguments_that_fit_no_frame_are_left_to_the_transcript() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let tool = json!({"type": "function", "function": {"name": "look_up"}});
        let session = json!({"external_id": "talk", "tools": [tool]});
        client.post("/v1/sessions", &session).await.expect(201);
        let order = "x".repeat(70_000);
        let script = format!("/tool look_up {{\"order\": \"{order}\"}}\n/then\n/say done");
        let body = json!({"messages": [{"role": "user", "content": script}], "stream": true});
        let request = client
            .request(Method::POST, CHAT)
            .header("x-hermes-session-id", "talk")
            .json(&body);
        let mut stream = Stream::open(request).await;
        let mut frames = stream.until(|frame| frame.data.contains("tool_call_id")).await;
        let told = frames.last().unwrap().json()["hermes"]["tool_call"].clone();
        assert_eq!(told["arguments"], Value::Null);
        let results = json!({"results": [{"tool_call_id": told["tool_call_id"], "output": "sent"}]});
        client.post(told["href"].as_str().unwrap(), &results).await.expect(200);
        frames.extend(stream.rest().await);
        assert_eq!(text(&checked(&frames)), "done");
        let messages = client.get("/api/sessions/talk/messages").await.expect(200);
        assert!(messages.to_string().contains(&order));
        web.stop().await;
    });
}

#[test]
fn a_header_asks_for_named_events_as_the_body_does() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let mut body = says(&format!("{}\n/then\n/say after", guarded("x")));
        body["stream"] = json!("yes");
        let request = client
            .request(Method::POST, CHAT)
            .header("x-hermes-approval-events", "true")
            .json(&body);
        let mut stream = Stream::open(request).await;
        let named = |name: &'static str| move |frame: &super::wire::Frame| frame.event.as_deref() == Some(name);
        let asked = stream.until(named("hermes.approval.request")).await;
        let id = asked.last().unwrap().json()["approval_id"].clone();
        let path = format!("/v1/approvals/{}/decision", id.as_str().unwrap());
        client.post(&path, &json!({"choice": "deny"})).await.expect(200);
        stream.until(named("hermes.approval.responded")).await;
        web.stop().await;
    });
}

#[test]
fn a_page_may_read_a_refusal() {
    on_both(async |mut place| {
        place.config.server.allowed_origins = vec!["https://app.example".to_owned()];
        let web = place.serve().await;
        let client = web.owner().await;
        for (client, method, path, status) in [
            (&client, Method::GET, "/v1/runs/run_1", 404),
            (&client, Method::GET, "/v1/chat/completions", 405),
            (&client, Method::GET, "/api/nothing", 404),
            (&client, Method::POST, "/v1/responses", 400),
            (&client, Method::GET, "/api/jobs/job_1", 404),
            (&web.client("hsk_wrong"), Method::GET, "/api/sessions", 401),
        ] {
            let request = client.request(method, path).header("origin", "https://app.example");
            let refused = request.send().await.unwrap();
            assert_eq!(refused.status(), status, "{path}");
            assert_eq!(
                refused.headers()["access-control-allow-origin"],
                "https://app.example",
                "{path}"
            );
            assert_eq!(refused.headers()["x-content-type-options"], "nosniff", "{path}");
            let body: Value = refused.json().await.unwrap();
            assert!(!body["error"].is_null(), "{path}");
        }
        web.stop().await;
    });
}

#[test]
fn who_comes_back_in_the_middle_of_a_message_is_told_the_whole_at_its_end() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let body = json!({"input": "/say begun\n/tokens 200 200", "background": true});
        let begun = client.post("/v1/responses", &body).await.expect(200);
        let path = format!("/v1/responses/{}?stream=true", begun["id"].as_str().unwrap());
        let mut stream = client.get_stream(&path).await;
        let seen = stream.until(|frame| frame.data.contains("word3")).await;
        drop(stream);
        let number = &seen.last().unwrap().json()["sequence_number"];
        let rest = client
            .get_stream(&format!("{path}&starting_after={number}"))
            .await
            .rest()
            .await;
        let done = rest
            .iter()
            .find(|frame| frame.named() == "response.output_text.done")
            .unwrap()
            .json();
        let words = done["text"].as_str().unwrap();
        assert!(words.starts_with("begun") && words.ends_with("word200"), "{words}");
        let last = rest.last().unwrap().json()["response"]["output"][0]["content"][0]["text"].clone();
        assert_eq!(last, done["text"]);
        web.stop().await;
    });
}
