//! Chat completions as strict clients read them.

use reqwest::Method;
use serde_json::{Value, json};

use super::wire::{Frame, Stream};
use crate::harness::client::Client;
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;
use crate::harness::script::{guarded, mark};

const PATH: &str = "/v1/chat/completions";

pub fn says(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}]})
}

fn streamed(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}], "stream": true, "model": "anything"})
}

/// The chunks of a stream, each checked against the grammar of strict clients.
pub fn checked(frames: &[Frame]) -> Vec<Value> {
    let (last, before) = frames.split_last().unwrap();
    assert_eq!(last.data, "[DONE]", "{frames:?}");
    let mut chunks = Vec::new();
    for frame in before {
        assert!(frame.data.len() < 65_536);
        match frame.event.as_deref() {
            None => chunks.push(frame.json()),
            Some("hermes.tool.progress") => {
                let told = frame.json();
                for name in ["tool", "toolCallId"] {
                    let text = told[name].as_str().unwrap();
                    assert!((1..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()));
                }
                assert!(
                    ["running", "completed"].contains(&told["status"].as_str().unwrap()),
                    "{told}"
                );
            }
            Some(other) => panic!("a strict client does not know `{other}`"),
        }
    }
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    for chunk in &chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["id"], chunks[0]["id"]);
        assert_eq!(chunk["choices"].as_array().unwrap().len(), 1);
        let choice = &chunk["choices"][0];
        let finish = choice["finish_reason"].as_str();
        assert!(choice["delta"]["content"].is_string() || finish.is_some(), "{chunk}");
        if let Some(finish) = finish {
            assert!(["stop", "length", "error"].contains(&finish));
            assert!(chunk["usage"]["total_tokens"].is_u64(), "{chunk}");
            assert_eq!(chunk["hermes"].is_object(), finish != "stop", "{chunk}");
        }
    }
    let finished = chunks
        .iter()
        .filter(|chunk| chunk["choices"][0]["finish_reason"].is_string());
    assert_eq!(finished.count(), 1);
    chunks
}

pub fn text(chunks: &[Value]) -> String {
    chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect()
}

#[test]
fn an_answer_is_a_completion_and_its_stream_says_the_same() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let answer = client.post(PATH, &says("/say hello there")).await;
        let session = answer.header("x-hermes-session-id");
        assert!(session.starts_with("api-"), "{session}");
        let body = answer.expect(200);
        let choice = &body["choices"][0];
        assert_eq!(choice["message"]["content"], "hello there");
        assert_eq!(
            (&body["object"], &choice["finish_reason"]),
            (&json!("chat.completion"), &json!("stop"))
        );
        assert_eq!(body["hermes"], Value::Null);
        assert!(body["usage"]["total_tokens"].as_u64().unwrap() > 0);

        let stream = client.post_stream(PATH, &streamed("/say hello there")).await;
        assert!(stream.headers.contains_key("x-hermes-session-id"));
        let chunks = checked(&stream.rest().await);
        assert_eq!(text(&chunks), "hello there");
        assert_eq!(chunks[0]["model"], "anything");
        web.stop().await;
    });
}

#[test]
fn tools_are_told_while_they_run() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let script = format!("/say I look.\n{}\n/then\n/say done", mark("ran"));
        let frames = client.post_stream(PATH, &streamed(&script)).await.rest().await;
        let told: Vec<Value> = frames
            .iter()
            .filter(|frame| frame.event.is_some())
            .map(Frame::json)
            .collect();
        assert_eq!(told.len(), 2, "{frames:?}");
        assert_eq!(
            (&told[0]["status"], &told[1]["status"]),
            (&json!("running"), &json!("completed"))
        );
        assert_eq!(
            (&told[0]["tool"], &told[0]["label"]),
            (&json!("terminal"), &json!("echo ran >> ran"))
        );
        assert_eq!(told[0]["toolCallId"], told[1]["toolCallId"]);
        assert_eq!(text(&checked(&frames)), "I look.\n\ndone");
        web.stop().await;
    });
}

#[test]
fn fc_052_a_conversation_that_is_sent_whole_each_time_is_one_session() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.user("ada", &hermes_server::model::principal::Scope::ALL[..6]).await;
        let mut messages = Vec::new();
        for round in 0..5 {
            messages.push(json!({"role": "user", "content": format!("/say answer {round}")}));
            let request = client
                .request(Method::POST, PATH)
                .header("x-hermes-session-key", "conversation-7");
            let answer = Answer::of(request.json(&json!({"messages": messages})).send().await.unwrap()).await;
            assert_eq!(answer.header("x-hermes-session-key"), "conversation-7");
            let body = answer.expect(200);
            let said = body["choices"][0]["message"]["content"].clone();
            assert_eq!(said, format!("answer {round}"));
            messages.push(json!({"role": "assistant", "content": said}));
        }
        let sessions = client.get("/v1/sessions").await.expect(200);
        assert_eq!(sessions["data"].as_array().unwrap().len(), 1, "{sessions}");
        // One that says something else before is another conversation.
        messages[1] = json!({"role": "assistant", "content": "something else"});
        messages.push(json!({"role": "user", "content": "/say apart"}));
        client.post(PATH, &json!({"messages": messages})).await.expect(200);
        let sessions = client.get("/v1/sessions").await.expect(200);
        assert_eq!(sessions["data"].as_array().unwrap().len(), 2);
        let newest = sessions["data"][0]["id"].as_str().unwrap();
        let kept = client.get(&format!("/v1/sessions/{newest}/messages")).await.expect(200);
        assert_eq!(kept["data"].as_array().unwrap().len(), 12, "the past came along");
        web.stop().await;
    });
}

#[test]
fn a_named_session_remembers_and_only_the_last_message_counts() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let named = async |text: &str| {
            let request = client
                .request(Method::POST, PATH)
                .header("x-hermes-session-id", "chat-9");
            let body = json!({"messages": [{"role": "user", "content": "never said"},
                {"role": "assistant", "content": "nor this"}, {"role": "user", "content": text}]});
            Answer::of(request.json(&body).send().await.unwrap()).await
        };
        for text in ["/say one", "/say two"] {
            let answer = named(text).await;
            assert_eq!(answer.header("x-hermes-session-id"), "chat-9");
            answer.expect(200);
        }
        let sessions = client.get("/v1/sessions?external_id=chat-9").await.expect(200);
        let session = sessions["data"][0]["id"].as_str().unwrap();
        let messages = client
            .get(&format!("/v1/sessions/{session}/messages"))
            .await
            .expect(200);
        let said: Vec<&str> = messages["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["content"][0]["text"].as_str().unwrap())
            .collect();
        // What came with the first request began the session; later ones add nothing but their last.
        assert_eq!(said, ["never said", "nor this", "/say one", "one", "/say two", "two"]);
        web.stop().await;
    });
}

async fn decided(client: &Client, approval: &str, choice: &str) {
    let path = format!("/v1/approvals/{approval}/decision");
    client.post(&path, &json!({"choice": choice})).await.expect(200);
}

/// The approval that a chunk carries.
fn approval(frame: &Frame) -> Option<Value> {
    let chunk: Value = serde_json::from_str(&frame.data).ok()?;
    let asked = &chunk["hermes"]["approval"];
    (asked["event"] == "approval.request").then(|| asked.clone())
}

#[test]
fn fc_023_an_approval_is_asked_in_the_stream_which_goes_on_after_the_decision() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        for (choice, said) in [("once", "completed"), ("deny", "nothing")] {
            let script = format!("{}\n/then\n/say after {choice}", guarded("ran"));
            let mut stream = client.post_stream(PATH, &streamed(&script)).await;
            let mut frames = stream.until(|frame| approval(frame).is_some()).await;
            let asked = approval(frames.last().unwrap()).unwrap();
            assert_eq!(asked["approval_id"], asked["request_id"]);
            assert_eq!(asked["tool"], "terminal");
            assert!(asked["choices"].as_array().unwrap().contains(&json!("once")));
            decided(&client, asked["approval_id"].as_str().unwrap(), choice).await;
            frames.extend(stream.rest().await);
            assert_eq!(text(&checked(&frames)), format!("after {choice}"));
            let ran = frames
                .iter()
                .filter(|frame| frame.event.is_some())
                .any(|frame| frame.json()["status"] == said);
            assert_eq!(ran, choice == "once");
        }
        web.stop().await;
    });
}

#[test]
fn named_events_of_approvals_are_for_those_who_ask_for_them() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let mut body = streamed(&format!("{}\n/then\n/say after", guarded("ran")));
        body["hermes"] = json!({"approval_events": "yes"});
        let mut stream = client.post_stream(PATH, &body).await;
        let frames = stream
            .until(|frame| frame.event.as_deref() == Some("hermes.approval.request"))
            .await;
        let asked = frames.last().unwrap().json();
        decided(&client, asked["approval_id"].as_str().unwrap(), "once").await;
        let rest = stream.rest().await;
        assert!(
            rest.iter()
                .any(|frame| frame.event.as_deref() == Some("hermes.approval.responded"))
        );
        web.stop().await;
    });
}

#[test]
fn an_answer_that_waits_says_for_what_and_is_had_after_the_decision() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let body = says(&format!("{}\n/then\n/say after", guarded("ran")));
        let send = async || {
            let request = client.request(Method::POST, PATH).header("idempotency-key", "k1");
            Answer::of(request.json(&body).send().await.unwrap()).await
        };
        let waits = send().await;
        assert_eq!(
            (waits.header("x-hermes-completed"), waits.header("x-hermes-partial")),
            ("false".into(), "true".into())
        );
        let told = waits.expect(200);
        let asked = told["hermes"]["approvals"][0]["approval_id"]
            .as_str()
            .unwrap()
            .to_owned();
        let content = told["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(content.contains(&asked) && content.contains("/decision"), "{content}");
        // A message is no decision.
        let session = told["hermes"]["session_id"].as_str().unwrap();
        let request = client
            .request(Method::POST, PATH)
            .header("x-hermes-session-id", session);
        let busy = Answer::of(request.json(&says("yes, do it")).send().await.unwrap())
            .await
            .expect(409);
        assert_eq!(busy["error"]["code"], "session_busy");
        assert_eq!(busy["error"]["hermes"]["pending_approval_ids"], json!([asked]));

        decided(&client, &asked, "once").await;
        let done = send().await;
        assert_eq!(done.header("idempotency-replayed"), "true");
        assert_eq!(done.expect(200)["choices"][0]["message"]["content"], "after");
        let run = told["hermes"]["run_id"].as_str().unwrap();
        let run = client.get(&format!("/v1/runs/{run}")).await.expect(200);
        assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("after")));
        web.stop().await;
    });
}

#[test]
fn a_failure_of_the_model_server_is_an_error_and_no_answer() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let answer = client.post(PATH, &says("/error 401")).await;
        assert_eq!(answer.header("x-hermes-completed"), "false");
        let body = answer.expect(200);
        assert_eq!(body["choices"][0]["finish_reason"], "error");
        assert_eq!(
            (&body["hermes"]["failed"], &body["hermes"]["error_code"]),
            (&json!(true), &json!("agent_error"))
        );
        let frames = client.post_stream(PATH, &streamed("/error 401")).await.rest().await;
        let chunks = checked(&frames);
        let last = chunks.last().unwrap();
        assert_eq!(last["choices"][0]["finish_reason"], "error");
        assert_eq!(last["hermes"]["partial"], false);
        assert_eq!(text(&chunks), last["error"]["message"].as_str().unwrap());
        web.stop().await;
    });
}

async fn sole_turn(client: &Client) -> Value {
    let sessions = client.get("/v1/sessions?limit=1").await.expect(200);
    let session = sessions["data"][0]["id"].as_str().unwrap();
    client.get(&format!("/v1/sessions/{session}/turns")).await.expect(200)["data"][0].clone()
}

async fn ended(web: &Web, turn: &Value) {
    let path = format!(
        "/v1/sessions/{}/turns/{}/stream",
        turn["session_id"].as_str().unwrap(),
        turn["id"].as_str().unwrap()
    );
    web.stream(web.request(Method::GET, &path)).await.rest().await;
}

#[test]
fn who_leaves_a_stream_stops_it_unless_it_waits_or_is_to_go_on() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let slow = "/say begun\n/tokens 100000 200\n/say end";
        for (policy, status) in [(None, "cancelled"), (Some("continue"), "running")] {
            let mut request = client.request(Method::POST, PATH).json(&streamed(slow));
            if let Some(policy) = policy {
                request = request.header("x-hermes-on-disconnect", policy);
            }
            let mut stream = Stream::open(request).await;
            stream.until(|frame| frame.data.contains("begun")).await;
            let turn = sole_turn(&client).await;
            drop(stream);
            if status == "cancelled" {
                ended(&web, &turn).await;
            }
            let turn = sole_turn(&client).await;
            assert_eq!(turn["status"], status);
        }
        let turn = sole_turn(&client).await;
        let path = format!(
            "/v1/sessions/{}/turns/{}/cancel",
            turn["session_id"].as_str().unwrap(),
            turn["id"].as_str().unwrap()
        );
        client.post(&path, &json!({})).await;
        let mut stream = client
            .post_stream(PATH, &streamed(&format!("{}\n/then\n/say after", guarded("x"))))
            .await;
        let frames = stream.until(|frame| approval(frame).is_some()).await;
        let asked = approval(frames.last().unwrap()).unwrap();
        let turn = sole_turn(&client).await;
        let mut events = web
            .stream(web.request(
                Method::GET,
                &format!("/v1/sessions/{}/stream", turn["session_id"].as_str().unwrap()),
            ))
            .await;
        events.until("turn.waiting").await;
        drop(stream);
        decided(&client, asked["approval_id"].as_str().unwrap(), "once").await;
        events.until("turn.completed").await;
        web.stop().await;
    });
}

#[test]
fn a_key_makes_a_completion_safe_to_repeat() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let send = async |text: &str, stream: bool| {
            let body = json!({"messages": [{"role": "user", "content": text}], "stream": stream});
            client
                .request(Method::POST, PATH)
                .header("idempotency-key", "again")
                .json(&body)
                .send()
                .await
                .unwrap()
        };
        let script = format!("{}\n/then\n/say done", mark("ran"));
        let first = Answer::of(send(&script, false).await).await.expect(200);
        let again = Answer::of(send(&script, false).await).await;
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(again.expect(200), first);
        let other = Answer::of(send("/say other", false).await).await.expect(422);
        assert_eq!(other["error"]["code"], "idempotency_key_conflict");
        let sessions = client.get("/v1/sessions").await.expect(200);
        assert_eq!(sessions["data"].as_array().unwrap().len(), 1);
        web.stop().await;
    });
}
