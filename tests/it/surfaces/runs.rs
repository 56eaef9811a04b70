//! Runs: begun, followed by many and again, approved, stopped, steered.

use reqwest::Method;
use serde_json::{Value, json};

use super::wire::Frame;
use crate::harness::client::Client;
use crate::harness::http::Answer;
use crate::harness::on_both;
use crate::harness::script::{guarded, mark};

async fn begun(client: &Client, input: &str) -> String {
    let begun = client.post("/v1/runs", &json!({"input": input})).await.expect(202);
    assert_eq!(
        (&begun["status"], &begun["replayed"]),
        (&json!("started"), &json!(false))
    );
    begun["run_id"].as_str().unwrap().to_owned()
}

fn names(frames: &[Frame]) -> Vec<String> {
    frames
        .iter()
        .filter(|frame| frame.comment.is_none())
        .map(Frame::named)
        .collect()
}

fn joined(frames: &[Frame]) -> String {
    let deltas = frames.iter().filter(|frame| frame.comment.is_none()).map(Frame::json);
    deltas
        .filter_map(|data| data["delta"].as_str().map(str::to_owned))
        .collect()
}

/// The events beside the words.
fn told(frames: &[Frame]) -> Vec<String> {
    names(frames)
        .into_iter()
        .filter(|name| name != "message.delta")
        .collect()
}

#[test]
fn a_run_is_followed_by_many_and_again_after_its_end() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let script = format!("/say I look.\n{}\n/then\n/say all done", mark("ran"));
        let run = begun(&client, &script).await;
        let path = format!("/v1/runs/{run}/events");
        let (first, second) = (client.get_stream(&path).await, client.get_stream(&path).await);
        let (first, second) = tokio::join!(first.rest(), second.rest());
        for frames in [&first, &second] {
            let (last, events) = frames.split_last().unwrap();
            assert_eq!(last.comment.as_deref(), Some("stream closed"));
            assert!(events.iter().all(|frame| frame.event.is_none() && frame.id.is_some()));
            assert_eq!(joined(frames), "I look.all done");
            let done = events.last().unwrap().json();
            assert_eq!(
                (&done["event"], &done["output"]),
                (&json!("run.completed"), &json!("all done"))
            );
            assert!(done["usage"]["total_tokens"].as_u64().unwrap() > 0 && done["timestamp"].is_f64());
        }
        let late = client.get_stream(&path).await.rest().await;
        assert_eq!(joined(&late), "I look.all done");
        assert_eq!(told(&late), ["tool.started", "tool.completed", "run.completed"]);
        // From any frame on, nothing is missed and nothing comes twice.
        for (place, frame) in late.iter().enumerate().filter(|(_, frame)| frame.id.is_some()) {
            let request = client
                .request(Method::GET, &path)
                .header("last-event-id", frame.id.as_deref().unwrap());
            let rest = super::wire::Stream::open(request).await.rest().await;
            // Words that were in flight a moment ago come from the log now.
            let left = &late[place + 1..];
            assert_eq!(
                (told(&rest), joined(&rest)),
                (told(left), joined(left)),
                "behind {frame:?}"
            );
        }
        let status = client.get(&format!("/v1/runs/{run}")).await.expect(200);
        assert_eq!(
            (&status["object"], &status["status"]),
            (&json!("hermes.run"), &json!("completed"))
        );
        assert_eq!(status["output"], "all done");
        web.stop().await;
    });
}

#[test]
fn a_run_that_waits_says_for_what_and_takes_answers_by_id() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        for (word, status, error) in [
            ("approve", "allowed", false),
            ("deny", "denied", true),
            ("session", "allowed", false),
        ] {
            let run = begun(&client, &format!("{}\n/then\n/say after", guarded(word))).await;
            let mut stream = client.get_stream(&format!("/v1/runs/{run}/events")).await;
            let frames = stream
                .until(|frame| frame.comment.is_none() && frame.named() == "approval.request")
                .await;
            let asked = frames.last().unwrap().json();
            let waits = loop {
                let seen = client.get(&format!("/v1/runs/{run}")).await.expect(200);
                if seen["status"] == "waiting_for_approval" {
                    break seen;
                }
            };
            assert_eq!(waits["approval"]["approval_id"], asked["approval_id"]);
            assert_eq!(asked["approval_id"], asked["request_id"]);
            assert!(asked["pattern_key"].is_string() && asked["command"].as_str().unwrap().contains("rm -rf"));
            let path = format!("/v1/runs/{run}/approval");
            let wrong = client.post(&path, &json!({"choice": "perhaps"})).await;
            assert_eq!(
                (wrong.status, &wrong.body["error"]["code"]),
                (400, &json!("invalid_approval_choice"))
            );
            let unknown = client
                .post(&path, &json!({"choice": "once", "request_id": "apr_x"}))
                .await;
            assert_eq!(
                (unknown.status, &unknown.body["error"]["code"]),
                (409, &json!("approval_not_pending"))
            );
            let answer = json!({"choice": word, "request_id": asked["request_id"]});
            let taken = client.post(&path, &answer).await.expect(200);
            assert_eq!(
                (&taken["resolved"], &taken["request_id"]),
                (&json!(1), &asked["request_id"])
            );
            let rest = stream.rest().await;
            let settled = rest
                .iter()
                .find(|frame| frame.named() == "approval.responded")
                .unwrap()
                .json();
            assert_eq!(settled["status"], status);
            let completed = rest
                .iter()
                .find(|frame| frame.named() == "tool.completed")
                .unwrap()
                .json();
            assert_eq!(completed["error"], error);
            let late = client.post(&path, &answer).await;
            assert_eq!(
                (late.status, &late.body["error"]["code"]),
                (409, &json!("approval_not_active"))
            );
        }
        web.stop().await;
    });
}

#[test]
fn without_an_id_the_oldest_is_answered_and_all_can_be() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let run = begun(
            &client,
            &format!("{}\n{}\n/then\n/say after", guarded("a"), guarded("b")),
        )
        .await;
        let mut stream = client.get_stream(&format!("/v1/runs/{run}/events")).await;
        for _ in 0..2 {
            stream
                .until(|frame| frame.comment.is_none() && frame.named() == "approval.request")
                .await;
        }
        let waits = client.get(&format!("/v1/runs/{run}")).await.expect(200);
        let ids: Vec<&Value> = waits["approvals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["approval_id"])
            .collect();
        assert_eq!(ids.len(), 2);
        let path = format!("/v1/runs/{run}/approval");
        let send = async || {
            let request = client.request(Method::POST, &path).header("idempotency-key", "once");
            Answer::of(request.json(&json!({"choice": "once"})).send().await.unwrap()).await
        };
        let first = send().await;
        assert_eq!(&first.body["approval_id"], ids[0]);
        let again = send().await;
        assert_eq!(
            (again.header("idempotency-replayed").as_str(), &again.body),
            ("true", &first.body)
        );
        let rest = client
            .post(&path, &json!({"choice": "once", "all": "true"}))
            .await
            .expect(200);
        assert_eq!((&rest["resolved"], &rest["approval_id"]), (&json!(1), ids[1]));
        assert!(names(&stream.rest().await).contains(&"run.completed".to_owned()));
        web.stop().await;
    });
}

#[test]
fn a_stopped_run_takes_no_answers_and_nothing_of_it_runs() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let run = begun(&client, &format!("{}\n/then\n/say after", guarded("ran"))).await;
        let mut stream = client.get_stream(&format!("/v1/runs/{run}/events")).await;
        stream
            .until(|frame| frame.comment.is_none() && frame.named() == "approval.request")
            .await;
        let stopping = Answer::of(
            client
                .request(Method::POST, &format!("/v1/runs/{run}/stop"))
                .send()
                .await
                .unwrap(),
        );
        assert_eq!(stopping.await.expect(200)["status"], "stopping");
        let late = client
            .post(&format!("/v1/runs/{run}/approval"), &json!({"choice": "once"}))
            .await;
        assert_eq!(
            (late.status, &late.body["error"]["code"]),
            (409, &json!("approval_not_active"))
        );
        let rest = stream.rest().await;
        assert_eq!(names(&rest).last().unwrap(), "run.cancelled");
        assert!(!names(&rest).contains(&"tool.started".to_owned()));
        let over = client
            .post(&format!("/v1/runs/{run}/cancel"), &json!({}))
            .await
            .expect(200);
        assert_eq!(
            (&over["object"], &over["status"]),
            (&json!("hermes.run"), &json!("cancelled"))
        );
        web.stop().await;
    });
}

#[test]
fn a_message_reaches_the_model_of_a_run_that_is_at_work() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let begun = client
            .post(
                "/v1/runs",
                &json!({"input": "/tokens 100000 50", "session_id": "steered"}),
            )
            .await
            .expect(202);
        let run = begun["run_id"].as_str().unwrap();
        let mut stream = client.get_stream(&format!("/v1/runs/{run}/events")).await;
        stream
            .until(|frame| frame.comment.is_none() && frame.named() == "message.delta")
            .await;
        let path = format!("/v1/runs/{run}/steer");
        let taken = client
            .post(&path, &json!({"message": "look at the tests too"}))
            .await
            .expect(200);
        assert_eq!(
            (&taken["object"], &taken["accepted"]),
            (&json!("hermes.run.steer"), &json!(true))
        );
        let status = client.get(&format!("/v1/runs/{run}")).await.expect(200);
        assert_eq!(status["pending_steer"], "look at the tests too");
        let empty = client.post(&path, &json!({"input": " "})).await;
        assert_eq!(
            (empty.status, &empty.body["error"]["code"]),
            (400, &json!("invalid_steer_input"))
        );
        client
            .post(&format!("/v1/runs/{run}/stop"), &json!({}))
            .await
            .expect(200);
        stream.rest().await;
        let late = client.post(&path, &json!({"input": "more"})).await;
        assert_eq!(
            (late.status, &late.body["error"]["code"]),
            (409, &json!("run_not_accepting_steer"))
        );
        web.stop().await;
    });
}

#[test]
fn a_run_that_is_posted_again_under_its_key_is_the_same_run() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let send = async |input: &str| {
            let request = client.request(Method::POST, "/v1/runs").header("idempotency-key", "r1");
            Answer::of(request.json(&json!({"input": input})).send().await.unwrap()).await
        };
        let first = send("/say x").await.expect(202);
        let run = first["run_id"].as_str().unwrap();
        client.get_stream(&format!("/v1/runs/{run}/events")).await.rest().await;
        let again = send("/say x").await;
        assert_eq!(again.header("idempotency-replayed"), "true");
        let again = again.expect(202);
        assert_eq!(
            (&again["run_id"], &again["status"], &again["replayed"]),
            (&first["run_id"], &json!("completed"), &json!(true))
        );
        assert_eq!(
            send("/say y").await.expect(422)["error"]["code"],
            "idempotency_key_conflict"
        );
        web.stop().await;
    });
}

#[test]
fn a_run_goes_on_in_the_session_that_it_names() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let client = web.owner().await;
        let history = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]);
        for (input, instructions) in [("/say one", json!("be brief")), ("/say two", json!(null))] {
            let body = json!({"input": [{"role": "user", "content": input}], "session_id": "long-talk",
                "instructions": instructions, "conversation_history": history});
            let run = client.post("/v1/runs", &body).await.expect(202)["run_id"]
                .as_str()
                .unwrap()
                .to_owned();
            client.get_stream(&format!("/v1/runs/{run}/events")).await.rest().await;
            let status = client.get(&format!("/v1/runs/{run}")).await.expect(200);
            assert_eq!(status["session_id"], "long-talk");
        }
        let sessions = client.get("/v1/sessions?external_id=long-talk").await.expect(200);
        let session = sessions["data"][0]["id"].as_str().unwrap();
        let messages = client
            .get(&format!("/v1/sessions/{session}/messages"))
            .await
            .expect(200);
        assert_eq!(messages["data"].as_array().unwrap().len(), 6);
        let turns = client.get(&format!("/v1/sessions/{session}/turns")).await.expect(200);
        assert_eq!(turns["data"][1]["instructions"], "be brief");
        let wrong = client.post("/v1/runs", &json!({"input": "x", "session_id": 5})).await;
        assert_eq!(
            (wrong.status, &wrong.body["error"]["code"]),
            (400, &json!("invalid_session_id"))
        );
        assert_eq!(client.post("/v1/runs", &json!({"input": ["a", "b"]})).await.status, 202);
        assert_eq!(client.post("/v1/runs", &json!({})).await.status, 400);
        web.stop().await;
    });
}
