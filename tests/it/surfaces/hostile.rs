//! Bodies, headers and queries that no client means: refused in the form of their
//! surface or taken, and never a fault of the server.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::on_both;
use crate::harness::script::guarded;

/// Values of every wrong kind, in the place of any field.
fn odd() -> Vec<Value> {
    let deep = (0..40).fold(json!("x"), |inner, _| json!([inner]));
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(9_007_199_254_740_993_u64),
        json!(u64::MAX),
        json!(1.5e300),
        json!(""),
        json!(" \t\n"),
        json!("\u{0}\u{202e}🦀"),
        json!("x".repeat(9_000)),
        json!("yes"),
        json!([]),
        json!({}),
        json!([null, 5, [], {}]),
        json!([{"role": 5, "content": {}, "type": []}]),
        json!([{"role": "assistant", "content": [{"type": "image_url", "image_url": 5}]}]),
        json!([{"type": "function_call_output", "call_id": null, "output": 5}]),
        json!([{"type": "mcp_approval_response", "approval_request_id": "apr_", "approve": "yes"}]),
        json!({"id": {"id": 5}, "type": "function", "times": -1, "session_id": []}),
        deep,
    ]
}

/// Texts that are no body at all, or no object.
const RAW: [&str; 12] = [
    "",
    "null",
    "[]",
    "5",
    "\"x\"",
    "{",
    "{\"input\": \"x\",}",
    "{\"input\": NaN}",
    "{\"input\": \"\\ud800\"}",
    "{\"input\": \"x\", \"input\": 5}",
    "{\"stream\": 1e999}",
    "\u{feff}{}",
];

/// A route with a body that it takes.
fn routes(run: &str, job: &str) -> Vec<(Method, String, Value)> {
    let post = |path: &str, body: Value| (Method::POST, path.to_owned(), body);
    let patch = |path: &str, body: Value| (Method::PATCH, path.to_owned(), body);
    let said = json!([{"role": "user", "content": "/say x"}]);
    let parts = json!([{"role": "user", "parts": [{"type": "text", "text": "/say x"}]}]);
    vec![
        post(
            "/v1/chat/completions",
            json!({"messages": said, "stream": false, "model": "x", "hermes": {}, "tools": [], "temperature": 1}),
        ),
        post(
            "/v1/responses",
            json!({"input": "/say x", "instructions": "x", "previous_response_id": null, "conversation": "c",
                "conversation_history": said, "store": true, "stream": false, "background": false, "model": "x",
                "metadata": {}, "tools": [], "tool_choice": "auto"}),
        ),
        post(
            "/v1/runs",
            json!({"input": "/say x", "instructions": "x", "previous_response_id": "resp_1",
                "conversation_history": said, "session_id": "talk"}),
        ),
        post(
            &format!("/v1/runs/{run}/approval"),
            json!({"choice": "perhaps", "request_id": "apr_1", "approval_id": "apr_1", "digest": "x", "reason": "x",
                "all": false, "resolve_all": false}),
        ),
        post(
            &format!("/v1/runs/{run}/steer"),
            json!({"input": "x", "message": "x", "text": "x"}),
        ),
        post(
            &format!("/v1/runs/{run}/clarifications/qst_1/respond"),
            json!({"answer": "x", "response": "x", "text": "x", "choice": "x"}),
        ),
        post(&format!("/v1/runs/{run}/tool-results"), json!({"results": [{}]})),
        post(
            "/api/sessions",
            json!({"id": "talk", "session_id": "talk", "title": "x", "system_prompt": "x"}),
        ),
        patch(
            "/api/sessions/talk",
            json!({"title": "x", "end_reason": "x", "archived": false}),
        ),
        post(
            "/api/sessions/talk/fork",
            json!({"id": "fork", "session_id": "fork", "title": "x"}),
        ),
        post(
            "/api/sessions/talk/chat",
            json!({"message": "/say x", "input": "/say x", "system_message": "x", "instructions": "x"}),
        ),
        post("/api/sessions/talk/chat/stream", json!({"message": "/say x"})),
        post(
            "/api/jobs",
            json!({"name": "x", "schedule": "every 1d", "time_zone": "UTC", "prompt": "x", "deliver": "local",
                "origin_session_id": "talk", "origin": {}, "skills": [], "skill": "x", "repeat": 1,
                "context_from": [], "workdir": "x", "script": "x", "no_agent": false, "model": "x",
                "enabled_toolsets": [], "enabled": true}),
        ),
        patch(
            &format!("/api/jobs/{job}"),
            json!({"name": "x", "schedule": "every 1d", "repeat": 1, "enabled": true}),
        ),
        post(&format!("/api/jobs/{job}/pause"), json!({"reason": "x"})),
        post(&format!("/api/jobs/{job}/run"), json!({"prompt": "/say x"})),
        post(
            "/v1/ui/chat",
            json!({"id": "page", "messages": parts, "instructions": "x", "tools": [], "choices": {}}),
        ),
    ]
}

/// A refusal in the form of its surface, or what was asked for.
#[track_caller]
fn is_sound(answer: &Answer, path: &str, body: &str) {
    assert!(answer.status < 500, "{path} {body}: {}", answer.body);
    if answer.status < 400 {
        return;
    }
    let error = &answer.body["error"];
    if path.starts_with("/api/jobs") {
        assert!(error.is_string(), "{path} {body}: {}", answer.body);
        return;
    }
    let fields = error
        .as_object()
        .unwrap_or_else(|| panic!("{path} {body}: {}", answer.body));
    for name in ["message", "type", "param", "code"] {
        assert!(fields.contains_key(name), "{path} {body}: {}", answer.body);
    }
    assert_eq!(answer.header("content-type"), "application/json", "{path}");
}

async fn sent(request: RequestBuilder, path: &str, body: &str) {
    let response = request.send().await.unwrap();
    let is_stream = response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind == "text/event-stream");
    if is_stream {
        response.text().await.unwrap();
        return;
    }
    is_sound(&Answer::of(response).await, path, body);
}

async fn begun(client: &Client) -> (String, String) {
    client.post("/api/sessions", &json!({"id": "talk"})).await.expect(201);
    let run = json!({"input": guarded("x"), "session_id": "waits"});
    let run = client.post("/v1/runs", &run).await.expect(202)["run_id"].clone();
    let job = json!({"schedule": "every 1d", "prompt": "/say x"});
    let job = client.post("/api/jobs", &job).await.expect(200)["job"]["id"].clone();
    (run.as_str().unwrap().to_owned(), job.as_str().unwrap().to_owned())
}

/// Sends what is no body, and every odd value in the place of each field.
async fn tortured(client: &Client, (method, path, body): &(Method, String, Value)) {
    for raw in RAW {
        let request = client.request(method.clone(), path).body(raw);
        sent(request, path, raw).await;
    }
    let fields: Vec<String> = body.as_object().unwrap().keys().cloned().collect();
    for field in fields {
        for value in odd() {
            let mut other = body.clone();
            other[&field] = value;
            let shown = format!("{field}: {}", &other[&field]);
            let shown: String = shown.chars().take(100).collect();
            sent(client.request(method.clone(), path).json(&other), path, &shown).await;
        }
    }
}

#[test]
fn no_body_is_a_fault_of_the_server() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let (run, job) = begun(&client).await;
        let all = routes(&run, &job);
        futures::future::join_all(all.iter().map(|route| tortured(&client, route))).await;
        // The server is as it was.
        let said = json!({"messages": [{"role": "user", "content": "/say still here"}]});
        let answer = client.post("/v1/chat/completions", &said).await.expect(200);
        assert_eq!(answer["choices"][0]["message"]["content"], "still here");
        web.stop().await;
    });
}

#[test]
fn no_header_and_no_query_is_a_fault_of_the_server() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let (run, job) = begun(&client).await;
        let long = "x".repeat(5_000);
        for name in [
            "x-hermes-session-id",
            "x-hermes-session-key",
            "x-hermes-on-disconnect",
            "x-hermes-approval-events",
            "idempotency-key",
            "last-event-id",
            "content-type",
            "accept",
        ] {
            for value in [&b""[..], b" ", b"\xff\xfe", "🦀".as_bytes(), b"a\tb", long.as_bytes()] {
                for (method, path, body) in routes(&run, &job) {
                    let value = reqwest::header::HeaderValue::from_bytes(value).unwrap();
                    let request = client.request(method, &path).json(&body);
                    // Twice: the first counts, or it is refused.
                    let twice = request.header(name, value.clone()).header(name, value);
                    sent(twice, &path, name).await;
                }
            }
        }
        for query in [
            "limit=-1",
            "limit=99999999999999999999",
            "offset=x&order=%00",
            "after=%ff",
            "cursor=1.2.3.4.5",
            "stream=true&starting_after=9223372036854775807",
            "stream=true&starting_after=-9223372036854775808",
            "stream=true&starting_after=",
            "q=%00%ff%F0%9F%A6%80",
            "include_children=&include_disabled=maybe&title=%00",
            "&&=&limit=1&limit=2",
        ] {
            for path in [
                "/api/sessions",
                "/api/sessions/search",
                "/api/sessions/talk/messages",
                "/api/jobs",
                &format!("/v1/runs/{run}/events"),
                &format!("/v1/responses/{}", run.replace("run_", "resp_")),
            ] {
                let path = format!("{path}?{query}");
                if path.contains("/events?") && !path.contains("after=%") && !path.contains("cursor=") {
                    // It would stay open: its run waits.
                    continue;
                }
                sent(client.request(Method::GET, &path), &path, query).await;
            }
        }
        web.stop().await;
    });
}
