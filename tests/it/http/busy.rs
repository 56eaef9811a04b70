//! Busy sessions over HTTP: the queue as clients see and change it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::{Answer, Web};
use crate::harness::script::guarded;
use crate::harness::{Place, on_both};

/// A turn that waits for a person.
async fn parked(web: &Web, session: &str) -> Value {
    let input = format!("{}\n/then\n/say parked", guarded("a"));
    let parked = web
        .post(&format!("{session}/turns?wait=20"), json!({"input": input}))
        .await;
    assert_eq!(parked.body["turn"]["status"], "waiting", "{}", parked.body);
    parked.body
}

async fn enqueue(web: &Web, session: &str, input: &str) -> Answer {
    let body = json!({"input": input, "on_busy": "enqueue"});
    web.post(&format!("{session}/turns"), body).await
}

async fn patch(web: &Web, path: &str, body: Value) -> Answer {
    Answer::of(web.request(Method::PATCH, path).json(&body).send().await.unwrap()).await
}

#[test]
fn the_queue_is_listed_in_its_order_changed_and_bounded() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let session = web.session().await;
        let first = parked(&web, &session).await;
        let mut paths = Vec::new();
        for number in 0..16 {
            let taken = enqueue(&web, &session, &format!("/say {number}")).await;
            assert_eq!((taken.status, &taken.body["status"]), (202, &json!("queued")));
            paths.push(taken.header("location"));
        }
        let full = enqueue(&web, &session, "/say 16").await;
        full.is_problem(429, "queue_full");
        assert!(!full.header("retry-after").is_empty());

        let changed = patch(&web, &paths[1], json!({"input": "/say new", "metadata": {"a": "b"}})).await;
        assert_eq!((changed.status, &changed.body["status"]), (200, &json!("queued")));
        assert_eq!(web.get(&paths[1]).await.body, changed.body);
        let wrong = patch(&web, &paths[1], json!({"input": ""})).await;
        wrong.is_problem(400, "invalid_request");
        assert_eq!(wrong.body["errors"][0]["pointer"], "/input");
        let gone = web.delete(&paths[0]).await;
        assert_eq!((gone.status, &gone.body["status"]), (200, &json!("cancelled")));
        patch(&web, &paths[0], json!({"input": "x"}))
            .await
            .is_problem(409, "turn_not_active");
        web.delete(&paths[0]).await.is_problem(409, "turn_not_active");
        let running = format!("{session}/turns/{}", first["turn"]["id"].as_str().unwrap());
        web.delete(&running).await.is_problem(409, "turn_not_active");

        let mut seen = Vec::new();
        let mut after = String::new();
        loop {
            let page = web
                .get(&format!("{session}/turns?status=queued&limit=6{after}"))
                .await
                .body;
            let turns = page["data"].as_array().unwrap();
            seen.extend(
                turns
                    .iter()
                    .map(|turn| turn["input"][0]["text"].as_str().unwrap().to_owned()),
            );
            match page["next_cursor"].as_str() {
                Some(cursor) => after = format!("&after={cursor}"),
                None => break,
            }
        }
        let mut expected = vec!["/say new".to_owned()];
        expected.extend((2..16).map(|number| format!("/say {number}")));
        assert_eq!(seen, expected, "the head first");
        web.stop().await;
    });
}

#[test]
fn a_turn_that_interrupts_is_taken_and_its_stream_begins_with_its_wait() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let session = web.session().await;
        let old = web
            .post(
                &format!("{session}/turns"),
                json!({"input": "/sleep 60000\n/say never"}),
            )
            .await;
        let body = json!({"input": "/say now", "on_busy": "interrupt"});
        let taken = web.post(&format!("{session}/turns"), body).await;
        assert_eq!(
            (taken.status, &taken.body["status"]),
            (202, &json!("queued")),
            "{}",
            taken.body
        );
        let stream = web.stream(web.request(Method::GET, &format!("{}/stream", taken.header("location"))));
        let frames = stream.await.rest().await;
        let durable = frames.iter().filter(|frame| frame.event.starts_with("turn."));
        let types: Vec<&str> = durable.map(|frame| frame.event.as_str()).collect();
        assert_eq!(types, ["turn.queued", "turn.started", "turn.completed"]);
        let old = web.get(&old.header("location")).await.body;
        assert_eq!(
            (&old["status"], &old["stop_reason"]),
            (&json!("interrupted"), &json!("superseded"))
        );

        // What waits for a person is over before the answer comes.
        parked(&web, &session).await;
        let body = json!({"input": "/say after all", "on_busy": "interrupt"});
        let done = web.post(&format!("{session}/turns?wait=20"), body).await;
        assert_eq!((done.status, &done.body["turn"]["status"]), (200, &json!("completed")));
        let shown = web.get(&session).await.body;
        assert_eq!(
            (&shown["status"], &shown["required_actions"]),
            (&json!("idle"), &json!([]))
        );
        web.stop().await;
    });
}

#[test]
fn messages_of_a_turn_that_is_rolled_back_are_shown_as_hidden() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let session = web.session().await;
        let old = parked(&web, &session).await["turn"]["id"].clone();
        let body = json!({"input": "/say instead", "on_busy": "rollback"});
        let done = web.post(&format!("{session}/turns?wait=20"), body).await;
        assert_eq!((done.status, &done.body["turn"]["status"]), (200, &json!("completed")));
        let turn = web
            .get(&format!("{session}/turns/{}", old.as_str().unwrap()))
            .await
            .body;
        assert_eq!(
            (&turn["status"], &turn["stop_reason"]),
            (&json!("rolled_back"), &json!("superseded"))
        );
        let messages = web.get(&format!("{session}/messages")).await.body;
        let messages = messages["data"].as_array().unwrap();
        assert!(messages.iter().any(|message| message["turn_id"] == old));
        for message in messages {
            let hidden = message["turn_id"] == old;
            assert_eq!(message.get("hidden"), hidden.then_some(&json!(true)), "{message}");
        }
        web.stop().await;
    });
}

#[test]
fn of_forty_messages_at_once_sixteen_are_taken() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let session = web.session().await;
        let turns = format!("{session}/turns");
        let turn = parked(&web, &session).await["turn"]["id"].clone();
        let all = (0..40).map(|number| web.post(&turns, json!({"input": format!("{number}"), "on_busy": "steer"})));
        let answers = futures::future::join_all(all).await;
        let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
        assert_eq!((count(202), count(429)), (16, 24));
        for refused in answers.iter().filter(|answer| answer.status == 429) {
            refused.is_problem(429, "queue_full");
        }
        let shown = web.get(&format!("{turns}/{}", turn.as_str().unwrap())).await.body;
        assert_eq!(shown["pending_steers"], 16);
        web.stop().await;
    });
}
