//! Field cases about sessions and their history.

use std::collections::BTreeSet;

use hermes_server::model::principal::Scope;
use serde_json::{Value, json};

use super::{ended, talk};
use crate::harness::client::NewKey;
use crate::harness::on_both;

/// A script with a history of more than 1,000 messages: batches of calls.
fn long_history() -> String {
    let batch = |step: usize| -> Vec<String> {
        (0..50)
            .map(|index| format!("/tool read_file {{\"path\": \"none-{step}-{index}\"}}"))
            .collect()
    };
    (0..20)
        .map(|step| batch(step).join("\n"))
        .collect::<Vec<_>>()
        .join("\n/then\n")
}

#[test]
fn fc_053_a_long_history_is_read_in_pages_without_a_gap_or_a_repeat() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let script = format!("{}\n/then\n/say that was all", long_history());
        let turn = talk.path(&format!("/turns/{}", talk.say(&script).await));
        assert_eq!(ended(&talk, &turn).await["status"], "completed");

        let (mut seen, mut path) = (Vec::new(), talk.path("/messages?limit=50"));
        loop {
            let page = talk.client.get(&path).await.expect(200);
            let messages = page["data"].as_array().unwrap();
            assert!(messages.len() <= 50);
            seen.extend(messages.iter().cloned());
            if seen.len() == 500 {
                let more = json!({"input": "/say one more"});
                talk.client.post(&talk.path("/turns?wait=20"), &more).await.expect(200);
            }
            if page["has_more"] == false {
                break;
            }
            path = talk.path(&format!(
                "/messages?limit=50&after={}",
                page["next_cursor"].as_str().unwrap()
            ));
        }
        // The input, 20 answers with 50 results each, the last answer; and one turn more.
        assert_eq!(seen.len(), 1 + 20 * 51 + 1 + 2);
        let ids: BTreeSet<String> = seen.iter().map(|message| message["id"].to_string()).collect();
        assert_eq!(ids.len(), seen.len(), "no message twice");
        assert_eq!(super::text(seen.last().unwrap()), "one more");
        for limit in ["0", "201", "x"] {
            let path = talk.path(&format!("/messages?limit={limit}"));
            talk.client.get(&path).await.problem(400, "invalid_request");
        }
        web.stop().await;
    });
}

#[test]
fn fc_056_outside_messages_are_stored_once_in_order_and_no_model_is_asked() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let outside = json!({"messages": [
            {"role": "user", "content": "ping", "external_id": "chat-1", "created_at": "2026-01-02T03:04:05.678Z"},
            {"role": "assistant", "content": "pong", "external_id": "chat-2", "created_at": "2026-01-02T03:04:06.000Z"}]});
        let path = talk.path("/messages");
        let first = talk.client.post(&path, &outside).await.expect(201);
        let again = talk.client.post(&path, &outside).await.expect(200);
        assert_eq!(first["messages"], again["messages"]);
        let stored = super::messages(&talk).await;
        assert_eq!(json!(stored), first["messages"], "once, in their order");
        for (message, own) in stored.iter().zip(outside["messages"].as_array().unwrap()) {
            for field in ["role", "external_id", "created_at"] {
                assert_eq!(message[field], own[field]);
            }
            assert_eq!(super::text(message), own["content"]);
        }
        let events = super::events(&talk).await;
        assert_eq!(
            (
                super::count(&events, "message.completed"),
                super::count(&events, "usage.updated")
            ),
            (2, 0)
        );
        let usage = talk.client.get("/v1/usage").await.expect(200);
        assert_eq!(usage["data"], json!([]));
        assert_eq!(web.server.engine.executing(), 0);
        web.stop().await;
    });
}

#[test]
fn fc_055_neither_a_title_nor_an_id_opens_a_session_of_another_tenant() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let a = talk(&web, json!({"title": "payroll", "external_id": "payroll"})).await;
        let new = NewKey {
            tenant: web.tenant("b").await,
            user: "bea",
            scopes: &[Scope::Admin],
            tools: None,
        };
        let b = web.with_key(new).await;
        let without_id = |mut problem: Value| {
            problem.as_object_mut().unwrap().remove("request_id");
            problem.as_object_mut().unwrap().remove("instance");
            problem
        };
        let input = json!({"input": "/say x"});
        let mut bodies = Vec::new();
        for id in ["payroll", &a.session, "ses_00000000000000000000000000"] {
            let session = format!("/v1/sessions/{id}");
            bodies.push(without_id(b.get(&session).await.problem(404, "not_found")));
            let turn = b.post(&format!("{session}/turns"), &input).await;
            bodies.push(without_id(turn.problem(404, "not_found")));
        }
        assert!(bodies.iter().all(|body| body == &bodies[0]), "{bodies:?}");
        let found = b.get("/v1/sessions?external_id=payroll").await.expect(200);
        assert_eq!(found["data"], json!([]));
        // The name is free for B, and the two stay apart.
        b.post("/v1/sessions", &json!({"external_id": "payroll"}))
            .await
            .expect(201);
        assert_eq!(a.client.get(&a.path("/turns")).await.expect(200)["data"], json!([]));
        web.stop().await;
    });
}

#[test]
fn fc_058_of_three_messages_that_interrupt_only_the_last_completes() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let endless = json!({"input": "/say begun\n/sleep 60000", "on_busy": "interrupt"});
        let first = talk.client.post(&talk.path("/turns"), &endless).await.expect(202);
        let mut stream = talk.client.stream(&web, &talk.path("/stream")).await;
        let waiting = talk.path("/turns?wait=20");
        // The second is sent on the waiting endpoint and is interrupted there.
        let second = talk.client.post(&waiting, &endless);
        let third = async {
            stream.until("turn.interrupted").await;
            let last = json!({"input": "/say last", "on_busy": "interrupt"});
            talk.client.post(&waiting, &last).await
        };
        let (second, third) = tokio::join!(second, third);
        assert_eq!(second.expect(200)["turn"]["status"], "interrupted");
        assert_eq!(third.expect(200)["turn"]["status"], "completed");
        let first = talk.path(&format!("/turns/{}", first["id"].as_str().unwrap()));
        let first = talk.client.get(&first).await.expect(200);
        assert_eq!(
            (&first["status"], &first["stop_reason"]),
            (&json!("interrupted"), &json!("superseded"))
        );
        web.stop().await;
    });
}
