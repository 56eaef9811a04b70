//! Field cases about model servers, and the faults that they share: each over a
//! connection to a server that answers by a script.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{count, ended, events, messages, results, talk, text};
use crate::api_rest::Talk;
use crate::harness::http::Web;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::{Place, on_both};

/// A server that asks this model server.
async fn asking(place: &mut Place, base_url: &str) -> (Web, Talk) {
    place.config.openai.base_url = Some(base_url.to_owned());
    place.config.model = Some("scripted".to_owned());
    let web = place.serve().await;
    let talk = talk(&web, json!({})).await;
    (web, talk)
}

async fn scripted(place: &mut Place, replies: Vec<Reply>) -> (ModelServer, Web, Talk) {
    let model = ModelServer::start(replies).await;
    let (web, talk) = asking(place, &model.base_url).await;
    (model, web, talk)
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect()
}

/// A turn that is waited for and ends as failed; the problem and the turn.
async fn failed(talk: &Talk, status: u16, code: &str) -> (Value, Value) {
    let answer = talk
        .client
        .post(&talk.path("/turns?wait=20"), &json!({"input": "hi"}))
        .await;
    let turn = answer.header("content-location");
    let problem = answer.problem(status, code);
    let turn = ended(talk, &turn).await;
    assert_eq!(
        (&turn["status"], &turn["error"]["code"]),
        (&json!("failed"), &json!(code))
    );
    (problem, turn)
}

#[test]
fn fc_017_a_refusal_of_the_model_server_is_no_answer_of_the_model() {
    on_both(async |mut place| {
        let refusal = Reply::refusal(402, "insufficient credits");
        let (model, web, talk) = scripted(&mut place, vec![refusal]).await;
        let (problem, _) = failed(&talk, 502, "upstream_billing").await;
        assert!(
            problem["detail"].as_str().unwrap().contains("insufficient credits"),
            "{problem}"
        );
        let messages = messages(&talk).await;
        assert_eq!(roles(&messages), ["user"]);
        assert_eq!(model.asked().len(), 1, "no credit is no reason to ask again");
        web.stop().await;
    });
}

#[test]
fn fc_019_a_call_that_was_written_twice_runs_at_most_once() {
    on_both(async |mut place| {
        let doubled = call("c1", "read_fileread_file", r#"{"path":"a.txt"}{"path":"a.txt"}"#);
        let reply = Reply::stream(&[doubled], "tool_calls");
        let replies = vec![reply, Reply::say("ok")];
        let (_model, web, talk) = scripted(&mut place, replies).await;
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::write(workspace.join("a.txt"), "inside").unwrap();
        let turn = talk.path(&format!("/turns/{}", talk.say("read it").await));
        assert_eq!(ended(&talk, &turn).await["status"], "completed");
        let events = events(&talk).await;
        assert!(count(&events, "tool_call.started") <= 1);
        let messages = messages(&talk).await;
        let results = results(&messages);
        assert_eq!(results.len(), 1, "{results:?}");
        assert!(
            results[0].contains("inside") || results[0].contains("error"),
            "{results:?}"
        );
        web.stop().await;
    });
}

#[test]
fn fc_020_a_call_inside_of_text_is_text() {
    on_both(async |mut place| {
        let said = r#"{"name": "terminal", "arguments": {"command": "echo hi"}}"#;
        let (model, web, talk) = scripted(&mut place, vec![Reply::say(said)]).await;
        let turn = talk.path(&format!("/turns/{}", talk.say("go").await));
        assert_eq!(ended(&talk, &turn).await["status"], "completed");
        let messages = messages(&talk).await;
        assert_eq!(
            (roles(&messages), text(&messages[1])),
            (vec!["user", "assistant"], said)
        );
        let kinds: BTreeSet<String> = events(&talk)
            .await
            .iter()
            .map(|event| event["type"].to_string())
            .collect();
        assert!(kinds.iter().all(|kind| !kind.contains("tool_call")), "{kinds:?}");
        let offered = model.asked()[0]["tools"].to_string();
        assert!(offered.contains("terminal"), "it could have called: {offered}");
        web.stop().await;
    });
}

#[test]
fn fc_022_reasoning_that_is_repeated_as_the_answer_is_no_answer() {
    on_both(async |mut place| {
        let leaked = [json!({"reasoning_content": "think A"}), json!({"content": "think A"})];
        let replies = vec![Reply::stream(&leaked, "stop"), Reply::say("the answer")];
        let (_model, web, mut talk) = scripted(&mut place, replies).await;
        talk.say("go").await;
        let mut frames = Vec::new();
        while frames
            .last()
            .is_none_or(|frame: &crate::harness::http::WireFrame| frame.event != "turn.completed")
        {
            frames.push(talk.events.next().await.unwrap());
        }
        let said = |kind: &str, text: &str| {
            frames
                .iter()
                .any(|frame| frame.event == kind && frame.data["data"]["text"].as_str().unwrap().contains(text))
        };
        assert!(!said("message.delta", "think"), "{frames:?}");
        assert!(!said("reasoning.delta", "answer"), "{frames:?}");
        let messages = messages(&talk).await;
        assert_eq!(
            (roles(&messages), text(&messages[1])),
            (vec!["user", "assistant"], "the answer")
        );
        web.stop().await;
    });
}

#[test]
fn a_limit_of_the_model_server_is_waited_out_and_shown() {
    on_both(async |mut place| {
        let limited = Reply::refusal(429, "slow down").header("retry-after", "1");
        let (model, web, mut talk) = scripted(&mut place, vec![limited, Reply::say("now")]).await;
        talk.say("hi").await;
        let retrying = talk.events.until("model.retrying").await.data["data"].clone();
        assert_eq!((&retrying["attempt"], &retrying["delay_ms"]), (&json!(1), &json!(1000)));
        assert_eq!(retrying["error"]["code"], "upstream_rate_limited");
        talk.events.until("turn.completed").await;
        assert_eq!(text(&messages(&talk).await[1]), "now");
        assert_eq!(model.asked().len(), 2);
        web.stop().await;
    });
}

#[test]
fn an_answer_that_breaks_off_fails_the_turn_and_its_text_stays() {
    on_both(async |mut place| {
        let broken = Reply::broken(&[json!({"content": "half an "}), json!({"content": "answer"})]);
        let (model, web, mut talk) = scripted(&mut place, vec![broken]).await;
        talk.say("hi").await;
        let mut shown = String::new();
        while shown != "half an answer" {
            let delta = talk.events.until("message.delta").await;
            shown.push_str(delta.data["data"]["text"].as_str().unwrap());
        }
        model.break_off();
        let end = talk.events.until("turn.failed").await;
        assert_eq!(end.data["data"]["turn"]["error"]["code"], "upstream_interrupted");
        let messages = messages(&talk).await;
        assert_eq!(roles(&messages), ["user", "assistant"]);
        assert_eq!(
            (text(&messages[1]), &messages[1]["finish_reason"]),
            ("half an answer", &json!("incomplete"))
        );
        assert_eq!(model.asked().len(), 1, "nothing is asked again once text was shown");
        web.stop().await;
    });
}

#[test]
fn a_model_server_that_is_not_there_fails_the_turn() {
    on_both(async |mut place| {
        let model = ModelServer::start(Vec::new()).await;
        let nowhere = model.base_url.clone();
        drop(model);
        let (web, talk) = asking(&mut place, &nowhere).await;
        failed(&talk, 502, "upstream_unreachable").await;
        assert_eq!(count(&events(&talk).await, "model.retrying"), 3);
        assert_eq!(roles(&messages(&talk).await), ["user"]);
        web.stop().await;
    });
}

#[test]
fn a_refused_key_and_an_unknown_model_are_told_apart() {
    on_both(async |mut place| {
        let replies = vec![
            Reply::refusal(401, "Incorrect API key provided: sk-very-secret"),
            Reply::refusal(404, "The model `scripted` does not exist"),
        ];
        let (model, web, talk) = scripted(&mut place, replies).await;
        let (problem, _) = failed(&talk, 502, "upstream_authentication").await;
        assert!(!problem.to_string().contains("sk-very-secret"), "{problem}");
        failed(&talk, 502, "upstream_unknown_model").await;
        assert_eq!(roles(&messages(&talk).await), ["user", "user"]);
        assert_eq!(model.asked().len(), 2);
        web.stop().await;
    });
}
