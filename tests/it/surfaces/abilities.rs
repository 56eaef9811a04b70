//! What the capability document says of each surface, done on each: a flag that
//! lies, in either direction, fails here, and so does one that nothing tries.

use hermes_server::model::principal::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use super::desk::{Desk, id, is_stream, place, tool};
use super::wire::{Frame, Stream};
use crate::harness::http::Web;
use crate::harness::on_both;
use crate::harness::script::guarded;

const IMAGE: &str = "data:image/png;base64,iVBORw0KGgo=";
const LOOK_UP: &str = "/tool look_up {}\n/then\n/say over";
const ASK: &str = "/tool clarify {\"question\": \"Which one?\"}\n/then\n/say over";
/// More than a second of words.
const SLOW: &str = "/say begun\n/tokens 300 250";

async fn tried(desk: &mut Desk<'_>, flag: &str) -> Value {
    match flag {
        "streaming" => {
            let stream = desk.streams("/say hello").await;
            let Some(stream) = stream else { return json!(false) };
            json!(stream.rest().await.iter().any(|frame| frame.data.contains("hello")))
        }
        "whole_answer" => {
            let response = desk.asks(json!("/say hello"), false).await.send().await.unwrap();
            let is_stream = is_stream(&response);
            let text = response.text().await.unwrap().replace("/say hello", "");
            json!(!is_stream && text.contains("hello"))
        }
        "idempotency" => {
            desk.key = Some("once");
            for replayed in ["", "true"] {
                let request = desk.asks(json!("/say x"), false).await;
                let answer = request.send().await.unwrap();
                let header = answer.headers().get("idempotency-replayed").cloned();
                answer.text().await.unwrap();
                if header.map_or(String::new(), |value| value.to_str().unwrap().to_owned()) != replayed {
                    return json!(false);
                }
            }
            json!(desk.over().await["status"] == "completed")
        }
        "images" => {
            let input = json!([{"type": "text", "text": "/say seen"},
                {"type": "image_url", "image_url": {"url": IMAGE}}]);
            desk.asks(input, false)
                .await
                .send()
                .await
                .unwrap()
                .text()
                .await
                .unwrap();
            desk.over().await;
            json!(desk.transcript().await.contains(IMAGE))
        }
        "history" => {
            let past = json!([{"role": "user", "content": "the heron"}, {"role": "assistant", "content": "the reeds"}]);
            let mut said = past.as_array().unwrap().clone();
            said.push(json!({"role": "user", "content": "/say x", "parts": [{"type": "text", "text": "/say x"}]}));
            desk.more = match desk.surface {
                "chat_completions" | "ui" => json!({"messages": said}),
                _ => json!({"conversation_history": past}),
            };
            let answer = desk.asks(json!("/say x"), false).await.send().await.unwrap();
            let taken = answer.status().is_success();
            answer.text().await.unwrap();
            json!(taken && desk.transcript().await.contains("the reeds"))
        }
        "client_tools" | "reasoning" | "approvals" | "questions" | "on_leave" => shown(desk, flag).await,
        "approval_choices" => choices(desk).await,
        "resume" | "reconnect" => comes_back(desk, flag).await,
        "decide" | "answer" | "results" | "stop" => places(desk, flag).await,
        other => panic!("`{other}` is told of and nothing tries it"),
    }
}

/// What a stream shows of what happens in it, and of who leaves it.
async fn shown(desk: &mut Desk<'_>, flag: &str) -> Value {
    match flag {
        "client_tools" => {
            desk.more = json!({"tools": [tool()]});
            let asked = desk.asks(json!(LOOK_UP), true).await.send().await.unwrap();
            assert!(asked.status().is_success());
            let body = asked.text();
            let waits = async {
                loop {
                    let turn = desk.turn().await;
                    if turn["status"] != "running" {
                        return turn["status"] == "waiting";
                    }
                }
            };
            let waits = waits.await;
            drop(body);
            json!(waits)
        }
        "reasoning" => {
            let stream = desk.streams("/reason deep thought\n/say x").await.unwrap();
            let mut frames = stream.rest().await;
            frames.retain(|frame| !frame.data.contains("/reason"));
            // Its end may come apart from it: it looks like the beginning of a key.
            json!(frames.iter().any(|frame| frame.data.contains("deep")))
        }
        "approvals" => {
            let script = format!("{}\n/then\n/say after", guarded("x"));
            let mut stream = desk.streams(&script).await.unwrap();
            let frames = stream.until(|frame| id(frame, "apr").is_some()).await;
            let approval = id(frames.last().unwrap(), "apr").unwrap();
            let path = format!("/v1/approvals/{approval}/decision");
            desk.client.post(&path, &json!({"choice": "deny"})).await.expect(200);
            json!(stream.rest().await.iter().any(|frame| frame.data.contains("after")))
        }
        "questions" => {
            let mut stream = desk.streams(ASK).await.unwrap();
            let asks = |frame: &Frame| frame.data.contains("Which one?") && !frame.data.contains("/tool");
            json!(!stream.until(asks).await.is_empty())
        }
        "on_leave" => {
            let mut stream = desk.streams(SLOW).await.unwrap();
            stream
                .until(|frame| frame.data.contains("word2") && !frame.data.contains("/tokens"))
                .await;
            drop(stream);
            match desk.over().await["status"].as_str().unwrap() {
                "cancelled" => json!("cancel"),
                "completed" => json!("continue"),
                other => panic!("the turn is {other}"),
            }
        }
        other => panic!("`{other}` is tried elsewhere"),
    }
}

/// The choices that reach an approval as they were given.
async fn choices(desk: &mut Desk<'_>) -> Value {
    let mut taken = Vec::new();
    for choice in ["once", "session", "always", "deny"] {
        let user = format!("{}-{choice}", desk.surface);
        desk.client = desk.web.user(&user, &Scope::ALL[..6]).await;
        let mut stream = desk
            .streams(&format!("{}\n/then\n/say after", guarded("x")))
            .await
            .unwrap();
        let frames = stream.until(|frame| id(frame, "apr").is_some()).await;
        let approval = id(frames.last().unwrap(), "apr").unwrap();
        let body = desk.decision(&approval, choice);
        if !desk.sends("decide", ("approval_id", &approval), &body).await {
            continue;
        }
        let path = format!("/v1/approvals/{approval}");
        let given = desk.client.get(&path).await.expect(200)["decision"]["choice"].clone();
        taken.extend((given == choice).then_some(choice));
        desk.over().await;
    }
    json!(taken)
}

/// The place that the document names, if what is sent there does what it should.
async fn places(desk: &mut Desk<'_>, flag: &str) -> Value {
    let works = match flag {
        "decide" => {
            let mut stream = desk
                .streams(&format!("{}\n/then\n/say after", guarded("x")))
                .await
                .unwrap();
            let frames = stream.until(|frame| id(frame, "apr").is_some()).await;
            let approval = id(frames.last().unwrap(), "apr").unwrap();
            let body = desk.decision(&approval, "once");
            desk.sends("decide", ("approval_id", &approval), &body).await
        }
        "stop" => {
            let mut stream = desk.streams("/say begun\n/tokens 100000 200").await.unwrap();
            stream.next().await;
            desk.sends("stop", ("", ""), &json!({})).await && desk.over().await["status"] == "cancelled"
        }
        _ => {
            let is_answer = flag == "answer";
            if !is_answer && ["responses", "ui"].contains(&desk.surface) {
                desk.more = json!({"tools": [tool()]});
            } else {
                desk.session().await;
            }
            let _stream = desk.streams(if is_answer { ASK } else { LOOK_UP }).await.unwrap();
            let waits = desk.required().await;
            let call = match is_answer {
                true => {
                    let question = desk.client.get(&format!("/v1/questions/{waits}")).await.expect(200);
                    question["tool_call_id"].as_str().unwrap().to_owned()
                }
                false => waits.clone(),
            };
            let body = desk.given(&call, "chosen", is_answer);
            let sent = desk.sends(flag, ("question_id", &waits), &body).await;
            sent && desk.over().await["status"] == "completed" && desk.transcript().await.contains("chosen")
        }
    };
    match works {
        true => desk.told[flag].clone(),
        false => json!(false),
    }
}

/// Leaves a stream that goes on and comes back to it.
async fn comes_back(desk: &mut Desk<'_>, flag: &str) -> Value {
    desk.key = Some("again");
    let request = desk
        .asks(json!(SLOW), true)
        .await
        .header("x-hermes-on-disconnect", "continue");
    let response = request.send().await.unwrap();
    assert!(response.status().is_success());
    let mut stream = match is_stream(&response) {
        true => Stream::of(response),
        false => {
            let path = desk.filled("/v1/runs/{run_id}/events").await;
            desk.client.get_stream(&path).await
        }
    };
    let is_word = |frame: &Frame| frame.data.contains("word") && !frame.data.contains("/tokens");
    let seen = stream.until(is_word).await;
    drop(stream);
    let told = desk.told["reconnect"].as_str().unwrap();
    let path = desk.filled(told).await;
    let last = place(seen.last().unwrap());
    let request = match (flag, &last) {
        ("resume", None) => return json!(false),
        ("resume", Some(last)) if desk.surface == "responses" => desk
            .client
            .request(Method::GET, &format!("{path}&starting_after={last}")),
        ("resume", Some(last)) => desk.client.request(Method::GET, &path).header("last-event-id", last),
        _ if desk.surface == "chat_completions" => desk.asks(json!(SLOW), true).await,
        _ => desk.client.request(Method::GET, &path),
    };
    let rest = Stream::open(request).await.rest().await;
    let words: String = rest.iter().map(|frame| frame.data.clone()).collect();
    if flag == "reconnect" {
        return match words.contains("word300") {
            true => json!(told),
            false => json!(false),
        };
    }
    // What was seen does not come again, and the end does.
    let deltas: Vec<&Frame> = rest.iter().filter(|frame| is_delta(frame)).collect();
    let again = deltas.iter().any(|frame| frame.data.contains("begun"));
    json!(!again && words.contains("word300") && !deltas.is_empty())
}

/// A frame with words in flight and no more.
fn is_delta(frame: &Frame) -> bool {
    let data: Value = serde_json::from_str(&frame.data).unwrap_or_default();
    data["delta"].is_string() || data["data"]["text"].is_string()
}

/// What is told of a surface otherwise than it is.
async fn lies_of(web: &Web, surface: &str, told: &Value) -> Vec<String> {
    let mut lies = Vec::new();
    for (flag, value) in told.as_object().unwrap() {
        let mut desk = Desk {
            web,
            client: web.user(&format!("{surface}-{flag}"), &Scope::ALL[..6]).await,
            surface,
            told,
            more: Value::Null,
            key: None,
        };
        let found = tried(&mut desk, flag).await;
        if &found != value {
            lies.push(format!("{surface}.{flag}: told {value}, found {found}"));
        }
    }
    lies
}

#[test]
fn what_is_told_of_a_surface_is_so() {
    on_both(async |mut place| {
        let with = &mut place.config.platform_toolsets.api_server;
        with.push("clarify".to_owned());
        let web = place.serve().await;
        let document = web.owner().await.get("/v1/capabilities").await.expect(200);
        let surfaces = document["surfaces"].as_object().unwrap();
        assert_eq!(surfaces.len(), 6);
        let each = surfaces.iter().map(|(surface, told)| lies_of(&web, surface, told));
        let lies = futures::future::join_all(each).await.concat();
        assert_eq!(lies, [""; 0]);
        web.stop().await;
    });
}
