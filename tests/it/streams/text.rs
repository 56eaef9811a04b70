//! A turn as plain text.

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::api_rest::{Talk, decision_of};
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;
use crate::harness::script::{guarded, terminal};

fn asked_as_text(talk: &Talk, body: &Value) -> RequestBuilder {
    let request = talk.client.request(Method::POST, &talk.path("/turns")).json(body);
    request.header("accept", "text/plain")
}

async fn sent(talk: &Talk, input: &str) -> Response {
    asked_as_text(talk, &json!({"input": input})).send().await.unwrap()
}

/// What came, and whether the body ended as it should.
async fn read(mut response: Response) -> (String, bool) {
    let mut text = String::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => text.push_str(std::str::from_utf8(&chunk).unwrap()),
            Ok(None) => return (text, true),
            Err(_) => return (text, false),
        }
    }
}

async fn talk(web: &Web) -> Talk {
    Talk::new(web, &web.owner().await, &json!({})).await
}

#[test]
fn the_answer_comes_alone_and_whole() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web).await;
        let response = sent(&talk, "/reason not to be seen\n/tokens 300").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
        let turn = response.headers()["content-location"].to_str().unwrap().to_owned();
        let (text, whole) = read(response).await;
        let message = talk.client.get(&talk.path("/messages")).await.expect(200)["data"][1].clone();
        let stored = message["content"][0]["text"].as_str().unwrap();
        assert!(whole && stored.len() > 1000);
        assert_eq!(text.trim_end_matches('\n'), stored.trim_end_matches('\n'));
        assert!(text.ends_with('\n') || text == stored, "{text:?}");
        // Whoever comes later reads the same, from the first word.
        let again = talk
            .client
            .request(Method::GET, &format!("{turn}/stream"))
            .header("accept", "text/plain");
        assert_eq!(read(again.send().await.unwrap()).await, (text, true));
        web.stop().await;
    });
}

#[test]
fn words_before_and_behind_a_call_are_paragraphs() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web).await;
        let script = format!(
            "/say I look around.\n{}\n/then\n/say That is all.",
            terminal("echo not shown")
        );
        let (text, whole) = read(sent(&talk, &script).await).await;
        assert_eq!((text.as_str(), whole), ("I look around.\n\nThat is all.\n", true));
        web.stop().await;
    });
}

#[test]
fn what_waits_for_a_person_is_told_and_the_text_goes_on_after_the_decision() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = talk(&web).await;
        let script = format!("/say First.\n{}\n/then\n/say Second.", guarded("a"));
        let mut response = sent(&talk, &script).await;
        let asked = talk.asked().await;
        let line = format!(
            "[waits for POST {}: {}]\n",
            decision_of(&asked[0]),
            asked[0]["title"].as_str().unwrap()
        );
        let mut text = String::new();
        while !text.ends_with(&line) {
            text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
        }
        assert_eq!(text, format!("First.\n{line}"));
        talk.client
            .post(&decision_of(&asked[0]), &json!({"choice": "once"}))
            .await
            .expect(200);
        let (rest, whole) = read(response).await;
        assert_eq!((rest.as_str(), whole), ("\nSecond.\n", true));
        web.stop().await;
    });
}

/// A script that reads a part must not take it for the whole.
#[test]
fn a_turn_that_does_not_complete_breaks_off_and_says_why() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web).await;
        let (text, whole) = read(sent(&talk, "/say some words\n/error 400").await).await;
        assert!(!whole, "{text}");
        let (said, why) = text.split_once('\n').unwrap();
        assert_eq!(said, "some words");
        assert!(why.starts_with("[the turn failed: ") && why.ends_with("]\n"), "{why}");

        let response = sent(&talk, "/say some words\n/sleep 60000").await;
        let turn = response.headers()["content-location"].to_str().unwrap().to_owned();
        talk.client.post(&format!("{turn}/cancel"), &json!({})).await;
        let (text, whole) = read(response).await;
        assert!(
            !whole && text.ends_with("[the turn was cancelled: the turn was cancelled before it was complete]\n"),
            "{text}"
        );
        web.stop().await;
    });
}

#[test]
fn a_turn_that_fails_before_its_first_word_is_answered_with_its_problem() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web).await;
        let response = sent(&talk, "/error 401").await;
        assert!(response.headers().contains_key("content-location"));
        let failed = Answer::of(response).await;
        failed.is_problem(502, "upstream_authentication");
        assert!(failed.body["context"]["turn_id"].is_string(), "{}", failed.body);
        let request = talk.client.request(Method::POST, &talk.path("/turns?wait=5"));
        let request = request.json(&json!({"input": "x"})).header("accept", "text/plain");
        Answer::of(request.send().await.unwrap())
            .await
            .is_problem(400, "invalid_request");
        web.stop().await;
    });
}

/// Text has no cursor: the same request under its key reads the turn from the
/// first word, and makes no second one.
#[test]
fn the_same_request_again_reads_the_same_turn() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web).await;
        let body = json!({"input": "/tokens 40 200", "on_disconnect": "continue"});
        let request = || asked_as_text(&talk, &body).header("idempotency-key", "once");
        let mut first = request().send().await.unwrap();
        first.chunk().await.unwrap().unwrap();
        drop(first);
        let again = request().send().await.unwrap();
        assert_eq!(again.headers()["idempotency-replayed"], "true");
        let (text, whole) = read(again).await;
        assert!(
            whole && text.starts_with("word1 word2 ") && text.trim_end().ends_with("word40"),
            "{text}"
        );
        let turns = talk.client.get(&talk.path("/turns")).await.expect(200);
        assert_eq!(turns["data"].as_array().unwrap().len(), 1);
        web.stop().await;
    });
}

#[test]
fn a_reader_that_leaves_cancels_only_what_it_asked_to_cancel() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let mut talk = talk(&web).await;
        let body = json!({"input": "/say hi\n/sleep 60000", "on_disconnect": "cancel"});
        let mut response = asked_as_text(&talk, &body).send().await.unwrap();
        response.chunk().await.unwrap().unwrap();
        drop(response);
        let ended = talk.events.until("turn.cancelled").await;
        assert_eq!(ended.data["data"]["turn"]["stop_reason"], "client_disconnected");
        web.stop().await;
    });
}
