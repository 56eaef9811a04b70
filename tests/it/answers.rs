//! Answers of a model that cannot be used as they are: empty, cut, unreadable.
//! Each comes over a connection to a server that answers by a script.

use serde_json::{Value, json};

use crate::api_rest::Talk;
use crate::cases::{count, ended, events, messages, results, talk, text};
use crate::harness::http::Web;
use crate::harness::model_server::{ModelServer, Reply};
use crate::harness::{Place, on_both};

async fn scripted(place: &mut Place, replies: Vec<Reply>) -> (ModelServer, Web, Talk) {
    let model = ModelServer::start(replies).await;
    place.config.openai.base_url = Some(model.base_url.clone());
    place.config.model = Some("scripted".to_owned());
    let web = place.serve().await;
    let talk = talk(&web, json!({})).await;
    (model, web, talk)
}

async fn run(talk: &Talk) -> Value {
    let turn = talk.path(&format!("/turns/{}", talk.say("go").await));
    ended(talk, &turn).await
}

fn calling(arguments: &str, finish: &str) -> Reply {
    let function = json!({"name": "terminal", "arguments": arguments});
    let call = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]});
    Reply::stream(&[call], finish)
}

fn empty() -> Reply {
    Reply::stream(&[], "stop")
}

fn last_asked(asked: &[Value], at: usize) -> &Value {
    asked[at]["messages"].as_array().unwrap().last().unwrap()
}

#[test]
fn an_empty_answer_is_asked_for_again_three_times_and_then_fails_the_turn() {
    on_both(async |mut place| {
        let replies = vec![empty(), empty(), empty(), Reply::say("at last")];
        let (model, web, talk) = scripted(&mut place, replies).await;
        assert_eq!(run(&talk).await["status"], "completed");
        assert_eq!(model.asked().len(), 4);
        assert_eq!(count(&events(&talk).await, "model.retrying"), 3);
        assert_eq!(text(messages(&talk).await.last().unwrap()), "at last");
        web.stop().await;
    });
    on_both(async |mut place| {
        let (model, web, talk) = scripted(&mut place, vec![empty(), empty(), empty(), empty()]).await;
        let turn = run(&talk).await;
        assert_eq!(
            (&turn["status"], &turn["error"]["code"]),
            (&json!("failed"), &json!("model_answer_invalid"))
        );
        assert_eq!(model.asked().len(), 4);
        assert_eq!(messages(&talk).await.len(), 1, "a failure is no message of the model");
        web.stop().await;
    });
}

#[test]
fn a_model_that_falls_silent_behind_results_is_told_to_go_on_once_and_nothing_of_it_is_kept() {
    on_both(async |mut place| {
        let call = calling(r#"{"command": "echo hi"}"#, "tool_calls");
        let replies = vec![call, empty(), empty(), Reply::say("hi it is")];
        let (model, web, talk) = scripted(&mut place, replies).await;
        assert_eq!(run(&talk).await["status"], "completed");
        let asked = model.asked();
        assert_eq!(last_asked(&asked, 1)["role"], "tool");
        for at in [2, 3] {
            let said = last_asked(&asked, at);
            assert_eq!(said["role"], "user", "{said}");
            assert_eq!(asked[at]["messages"].as_array().unwrap().len(), 5);
        }
        assert_eq!(messages(&talk).await.len(), 4);
        web.stop().await;
    });
}

#[test]
fn a_model_that_only_thought_is_asked_to_write_its_answer() {
    on_both(async |mut place| {
        let thought = Reply::stream(&[json!({"reasoning_content": "hm"})], "stop");
        let (model, web, talk) = scripted(&mut place, vec![thought, Reply::say("so it is")]).await;
        assert_eq!(run(&talk).await["status"], "completed");
        let asked = last_asked(&model.asked(), 1)["content"].to_string();
        assert!(asked.contains("Write the answer"), "{asked}");
        let all = messages(&talk).await;
        assert_eq!((all.len(), text(all.last().unwrap())), (2, "so it is"));
        web.stop().await;
    });
}

#[test]
fn a_call_that_was_cut_off_never_runs() {
    on_both(async |mut place| {
        let cut = || calling(r#"{"command": "echo ran >> a"#, "length");
        // Complete as JSON, but the model was not done.
        let early = calling(r#"{"command": "echo ran >> a"}"#, "length");
        let replies = vec![cut(), early, cut(), Reply::say("in words then")];
        let (model, web, talk) = scripted(&mut place, replies).await;
        assert_eq!(run(&talk).await["status"], "completed");
        assert_eq!(model.asked().len(), 4);
        let events = events(&talk).await;
        assert_eq!(
            (count(&events, "model.retrying"), count(&events, "tool_call.proposed")),
            (3, 0)
        );
        web.stop().await;
    });
}

#[test]
fn arguments_that_stay_unreadable_become_the_result_of_the_call() {
    on_both(async |mut place| {
        let bad = || calling(r#"{"command": echo}"#, "tool_calls");
        let replies = vec![bad(), bad(), bad(), bad(), Reply::say("sorry")];
        let (model, web, talk) = scripted(&mut place, replies).await;
        assert_eq!(run(&talk).await["status"], "completed");
        assert_eq!(model.asked().len(), 5);
        let messages = messages(&talk).await;
        let results = results(&messages);
        assert!(
            results.len() == 1 && results[0].contains("Invalid tool arguments"),
            "{results:?}"
        );
        assert_eq!(count(&events(&talk).await, "tool_call.started"), 0);
        web.stop().await;
    });
}

#[test]
fn an_answer_that_was_cut_at_the_length_limit_is_continued() {
    on_both(async |mut place| {
        let part = |text: &str| Reply::stream(&[json!({"content": text})], "length");
        let replies = vec![part("one "), part("two "), Reply::say("three")];
        let (model, web, talk) = scripted(&mut place, replies).await;
        assert_eq!(run(&talk).await["status"], "completed");
        let asked = model.asked();
        assert_eq!(asked.len(), 3);
        assert!(last_asked(&asked, 1).to_string().contains("cut off"), "{}", asked[1]);
        let messages = messages(&talk).await;
        let said: Vec<&str> = messages.iter().skip(1).map(text).collect();
        assert_eq!(said, ["one ", "two ", "three"]);
        web.stop().await;
    });
}

#[test]
fn at_the_limit_of_steps_the_model_is_asked_once_more_without_tools() {
    on_both(async |mut place| {
        place.config.agent.max_turns = 2;
        let call = || calling(r#"{"command": "echo hi"}"#, "tool_calls");
        let replies = vec![call(), call(), Reply::say("so far so good")];
        let (model, web, talk) = scripted(&mut place, replies).await;
        let turn = run(&talk).await;
        assert_eq!(
            (&turn["status"], &turn["stop_reason"]),
            (&json!("completed"), &json!("max_steps"))
        );
        let asked = model.asked();
        assert!(
            asked[1]["tools"].is_array() && asked[2]["tools"].is_null(),
            "{}",
            asked[2]
        );
        assert_eq!(text(messages(&talk).await.last().unwrap()), "so far so good");
        web.stop().await;
    });
}
