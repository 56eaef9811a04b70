//! Questions of the model.

use std::time::Duration;

use serde_json::{Value, json};

use super::results;
use crate::api_rest::Talk;
use crate::harness::client::Client;
use crate::harness::http::{Answer, Web};
use crate::harness::on_both;

const ASK: &str =
    "/tool clarify {\"question\": \"Which one?\", \"choices\": [\"a\", {\"label\": \"b\"}]}\n/then\n/say done";

async fn talk(web: &Web, owner: &Client) -> Talk {
    Talk::new(web, owner, &json!({"toolsets": {"enabled": ["clarify"]}})).await
}

/// Begins a turn that asks, and gives the question.
async fn ask(talk: &mut Talk) -> Value {
    talk.say(ASK).await;
    let asked = talk.events.until("question.asked").await.data["data"]["question"].clone();
    talk.events.until("turn.waiting").await;
    asked
}

async fn answer(client: &Client, question: &Value, text: &str) -> Answer {
    let path = format!("/v1/questions/{}/answer", question["id"].as_str().unwrap());
    client.post(&path, &json!({"answer": text})).await
}

#[test]
fn a_question_waits_for_an_answer_and_the_model_reads_it() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let asked = ask(&mut talk).await;
        assert_eq!(
            (&asked["question"], &asked["choices"]),
            (&json!("Which one?"), &json!(["a", "b"]))
        );
        assert!(web.server.is_left().await, "a parked turn holds no task");
        let shown = owner.get(&talk.path("")).await.expect(200);
        let action = &shown["required_actions"][0];
        assert_eq!(shown["status"], "requires_action");
        assert_eq!((&action["type"], &action["id"]), (&json!("question"), &asked["id"]));
        assert_eq!(owner.get(action["href"].as_str().unwrap()).await.expect(200), asked);
        let listed = owner.get("/v1/questions?status=pending").await.expect(200);
        assert_eq!(listed["data"], json!([asked]));

        answer(&owner, &asked, "  ").await.problem(400, "invalid_request");
        let answered = answer(&owner, &asked, "neither").await.expect(200);
        assert_eq!(
            (
                &answered["status"],
                &answered["answer"]["text"],
                &answered["answer"]["by"]
            ),
            (&json!("answered"), &json!("neither"), &json!("owner"))
        );
        let told = talk.events.until("question.answered").await.data;
        assert_eq!(told["data"]["question"], answered);
        let resumed = talk.events.until("turn.resumed").await.data;
        assert_eq!(resumed["data"]["reason"], "answered");
        talk.events.until("turn.completed").await;
        let messages = owner.get(&talk.path("/messages")).await.expect(200);
        let read: Value = serde_json::from_str(&results(&messages)[0]).unwrap();
        let expected = json!({"question": "Which one?", "choices_offered": ["a", "b"], "user_response": "neither"});
        assert_eq!(read, expected);

        assert_eq!(answer(&owner, &asked, "neither").await.expect(200), answered);
        let problem = answer(&owner, &asked, "a").await.problem(409, "question_resolved");
        assert_eq!(problem["context"]["question"], answered);
        let none = owner.get("/v1/questions?status=pending").await.expect(200);
        assert_eq!(none["data"], json!([]));
        web.stop().await;
    });
}

#[test]
fn a_question_that_nobody_answers_in_time_is_told_to_the_model() {
    on_both(async |mut place| {
        place.config.agent.clarify_timeout = Some(Duration::from_millis(200));
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let asked = ask(&mut talk).await;
        assert!(asked["expires_at"].is_string());
        talk.events.until("question.expired").await;
        talk.events.until("turn.completed").await;
        let messages = owner.get(&talk.path("/messages")).await.expect(200);
        let read: Value = serde_json::from_str(&results(&messages)[0]).unwrap();
        assert_eq!(read["user_response"], Value::Null);
        assert!(read["error"].as_str().unwrap().contains("Nobody answered"), "{read}");
        answer(&owner, &asked, "a").await.problem(409, "question_resolved");
        web.stop().await;
    });
}

#[test]
fn a_question_ends_with_its_turn_and_with_a_message_instead() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let mut talk = talk(&web, &owner).await;
        let asked = ask(&mut talk).await;
        let busy = json!({"input": "/say no", "on_busy": "reject"});
        let problem = owner
            .post(&talk.path("/turns"), &busy)
            .await
            .problem(409, "session_busy");
        assert_eq!(problem["context"]["required_actions"][0]["id"], asked["id"]);
        let instead = json!({"input": "/say instead", "on_busy": "interrupt"});
        owner.post(&talk.path("/turns"), &instead).await.expect(202);
        let gone = talk.events.until("question.cancelled").await.data;
        assert_eq!(gone["data"]["question"]["id"], asked["id"]);
        talk.events.until("turn.interrupted").await;
        talk.events.until("turn.completed").await;
        answer(&owner, &asked, "a").await.problem(409, "question_resolved");
        web.stop().await;
    });
}

#[test]
fn nobody_is_asked_where_nobody_is_there_or_the_tool_is_not() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let owner = web.owner().await;
        let unattended = json!({"toolsets": {"enabled": ["clarify"]}, "approvals": {"on_ask": "deny"}});
        for (settings, text) in [
            (unattended, "not available in this execution context"),
            (json!({}), "Unknown tool"),
        ] {
            let mut talk = Talk::new(&web, &owner, &settings).await;
            talk.say(ASK).await;
            talk.events.until("turn.completed").await;
            let messages = owner.get(&talk.path("/messages")).await.expect(200);
            let read = results(&messages).remove(0);
            assert!(read.contains(text), "{read}");
        }
        web.stop().await;
    });
}
