//! Turns over HTTP: the three ways to create one, streams, waiting, cancelling.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::{Answer, WireFrame};
use crate::harness::{Place, on_both};

/// The demo model asks for a command that a person has to allow.
const DANGEROUS: &str = "/tool terminal {\"command\": \"rm -rf ./build\"}\n/then\n/say done";

fn types(frames: &[WireFrame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

#[test]
fn a_turn_that_is_waited_for_comes_with_its_answer() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let session = web.session().await;
        let done = web
            .post(
                &format!("{session}/turns?wait=20"),
                json!({"input": "/say hello there"}),
            )
            .await;
        assert_eq!(done.status, 200, "{}", done.body);
        let turn = &done.body["turn"];
        assert_eq!(
            (&turn["status"], &turn["stop_reason"]),
            (&json!("completed"), &json!("end_turn"))
        );
        assert_eq!(
            done.body["message"]["content"],
            json!([{"type": "text", "text": "hello there"}])
        );
        assert_eq!(done.body["approvals"], json!([]));
        let path = format!("{session}/turns/{}", turn["id"].as_str().unwrap());
        assert_eq!(done.header("content-location"), path);
        assert_eq!(&web.get(&path).await.body, turn);
        web.stop().await;
    });
}

#[tokio::test]
async fn a_wait_ends_when_a_person_is_needed() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let session = web.session().await;
    let asked = web
        .post(&format!("{session}/turns?wait=20"), json!({"input": DANGEROUS}))
        .await;
    assert_eq!(
        (asked.status, &asked.body["turn"]["status"]),
        (200, &json!("waiting")),
        "{}",
        asked.body
    );
    assert_eq!(asked.body["message"], Value::Null);
    let approvals = asked.body["approvals"].as_array().unwrap();
    assert_eq!((approvals.len(), &approvals[0]["status"]), (1, &json!("pending")));
    assert_eq!(approvals[0]["arguments"]["command"], "rm -rf ./build");

    let busy = web
        .post(&format!("{session}/turns"), json!({"input": "yes, go on"}))
        .await;
    busy.is_problem(409, "session_busy");
    assert_eq!(busy.body["context"]["turn_id"], asked.body["turn"]["id"]);
    assert_eq!(
        busy.body["context"]["pending_approval_ids"],
        json!([approvals[0]["id"]])
    );
    web.stop().await;
}

#[tokio::test]
async fn a_wait_that_is_too_short_leaves_the_turn_alone() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let session = web.session().await;
    let body = json!({"input": "/sleep 60000\n/say late", "on_disconnect": "cancel"});
    let taken = web.post(&format!("{session}/turns?wait=0"), body).await;
    assert_eq!(
        (taken.status, &taken.body["status"]),
        (202, &json!("running")),
        "{}",
        taken.body
    );
    let turn = taken.header("location");

    let listed = web.get(&format!("{session}/turns?status=running")).await.body;
    assert_eq!(listed["data"][0]["id"], taken.body["id"]);
    assert_eq!(
        web.get(&format!("{session}/turns?status=completed")).await.body["data"],
        json!([])
    );

    let mut stream = web.stream(web.request(Method::GET, &format!("{turn}/stream"))).await;
    stream.until("turn.started").await;
    let cancelled = web.post(&format!("{turn}/cancel"), json!({})).await;
    assert_eq!(cancelled.status, 202, "{}", cancelled.body);
    stream.until("turn.cancelled").await;
    let again = web.post(&format!("{turn}/cancel"), json!({})).await;
    assert_eq!(
        (again.status, &again.body["stop_reason"]),
        (200, &json!("cancelled_by_user"))
    );
    web.stop().await;
}

/// FC-017: a failure of the model server is no answer of the model.
#[tokio::test]
async fn a_turn_that_fails_while_waited_for_is_no_success() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let session = web.session().await;
    let failed = web
        .post(&format!("{session}/turns?wait=20"), json!({"input": "/error 402"}))
        .await;
    failed.is_problem(502, "upstream_billing");
    let turn = web.get(&failed.header("content-location")).await.body;
    assert_eq!(
        (&turn["status"], &turn["error"]["code"]),
        (&json!("failed"), &json!("upstream_billing"))
    );
    assert_eq!(failed.body["context"]["turn_id"], turn["id"]);
    let messages = web.get(&format!("{session}/messages")).await.body;
    assert!(
        messages["data"]
            .as_array()
            .unwrap()
            .iter()
            .all(|message| message["role"] == "user")
    );
    web.stop().await;
}

#[test]
fn a_streamed_turn_can_be_read_again_from_any_frame() {
    on_both(async |mut place: Place| {
        let web = place.serve().await;
        let session = web.session().await;
        let request = web.request(Method::POST, &format!("{session}/turns"));
        let stream = web.stream(request.json(&json!({"input": "/say one two three"}))).await;
        let headers = stream.response_headers.clone();
        assert_eq!(headers["content-type"], "text/event-stream");
        assert_eq!(headers["cache-control"], "no-cache, no-transform");
        assert_eq!(headers["x-accel-buffering"], "no");
        let turn = headers["content-location"].to_str().unwrap().to_owned();
        let frames = stream.rest().await;
        assert_eq!(frames[0].event, "stream.hello");
        assert_eq!(frames[0].retry.as_deref(), Some("1000"));
        assert_eq!(frames[1].event, "turn.started");
        assert_eq!(frames.last().unwrap().event, "turn.completed");
        assert!(frames.iter().all(|frame| frame.id.is_some()));
        let text = frames.iter().rfind(|frame| frame.event == "message.completed").unwrap();
        let text = &text.data["data"]["message"]["content"][0]["text"];
        assert_eq!(text, "one two three");

        let durable: Vec<&str> = types(&frames).into_iter().filter(|event| !is_live(event)).collect();
        for (header, at) in [(false, 0), (true, 1), (false, 2)] {
            let id = frames[at].id.clone().unwrap();
            let request = if header {
                web.request(Method::GET, &format!("{turn}/stream"))
                    .header("last-event-id", id)
            } else {
                web.request(Method::GET, &format!("{turn}/stream?after={id}"))
            };
            let again = web.stream(request).await.rest().await;
            let later: Vec<&str> = types(&again).into_iter().filter(|event| !is_live(event)).collect();
            let known = types(&frames[1..=at])
                .into_iter()
                .filter(|event| !is_live(event))
                .count();
            assert_eq!(later[1..], durable[1 + known..], "from {at}");
        }
        let end = frames.last().unwrap().id.clone().unwrap();
        let done = web.get(&format!("{turn}/stream?after={end}")).await;
        assert_eq!((done.status, &done.body), (204, &Value::Null));
        web.get(&format!("{turn}/stream?after=x"))
            .await
            .is_problem(400, "invalid_cursor");
        web.get(&format!("{session}/stream?after=999"))
            .await
            .is_problem(400, "invalid_cursor");
        web.stop().await;
    });
}

fn is_live(event: &str) -> bool {
    event.ends_with("delta") || event == "message.started"
}

/// What a viewer of one turn is shown while the model writes, and again after a
/// break, is the stored text byte for byte.
#[tokio::test]
async fn pieces_of_a_turn_in_flight_join_to_its_text() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let session = web.session().await;
    let request = web.request(Method::POST, &format!("{session}/turns"));
    let mut stream = web.stream(request.json(&json!({"input": "/tokens 40 40"}))).await;
    let turn = stream.response_headers["content-location"].to_str().unwrap().to_owned();
    let mut seen = vec![stream.until("message.delta").await, stream.until("message.delta").await];
    drop(stream);
    let last = seen.last().unwrap().id.clone().unwrap();
    let request = web
        .request(Method::GET, &format!("{turn}/stream"))
        .header("last-event-id", last);
    seen.extend(web.stream(request).await.rest().await);
    let pieces = seen.iter().filter(|frame| frame.event == "message.delta");
    let joined: String = pieces
        .map(|frame| frame.data["data"]["text"].as_str().unwrap())
        .collect();
    let whole = seen.iter().rfind(|frame| frame.event == "message.completed").unwrap();
    assert_eq!(whole.data["data"]["message"]["content"][0]["text"], joined);
    web.stop().await;
}

#[tokio::test]
async fn a_turn_on_a_leash_ends_with_its_stream_and_others_do_not() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let mut turns = Vec::new();
    for on_disconnect in ["cancel", "continue"] {
        let session = web.session().await;
        let body = json!({"input": "/tokens 100000 20", "on_disconnect": on_disconnect});
        let mut stream = web
            .stream(web.request(Method::POST, &format!("{session}/turns")).json(&body))
            .await;
        turns.push(stream.response_headers["content-location"].to_str().unwrap().to_owned());
        stream.until("message.delta").await;
    }
    // Both makers have left; viewers may come and go.
    let mut stream = web
        .stream(web.request(Method::GET, &format!("{}/stream", turns[0])))
        .await;
    stream.until("turn.cancelled").await;
    let mut stream = web
        .stream(web.request(Method::GET, &format!("{}/stream", turns[1])))
        .await;
    stream.until("message.delta").await;
    drop(stream);
    assert_eq!(web.get(&turns[1]).await.body["status"], "running");
    web.post(&format!("{}/cancel", turns[1]), json!({})).await;
    web.stop().await;
}

#[tokio::test]
async fn a_client_says_what_it_can_read() {
    let mut place = Place::sqlite();
    let web = place.serve().await;
    let session = web.session().await;
    let with = async |accept: &str, query: &str| {
        let request = web
            .request(Method::POST, &format!("{session}/turns{query}"))
            .header("accept", accept.to_owned());
        Answer::of(
            request
                .json(&json!({"input": "/say hi", "on_busy": "enqueue"}))
                .send()
                .await
                .unwrap(),
        )
        .await
    };
    let unknown = json!({"input": "hi", "toolsets": {"enabled": ["flie"]}});
    let refused = web.post(&format!("{session}/turns"), unknown).await;
    refused.is_problem(400, "invalid_request");
    assert_eq!(refused.body["errors"][0]["pointer"], "/toolsets");
    with("text/html", "").await.is_problem(406, "not_acceptable");
    with("text/event-stream", "?wait=1")
        .await
        .is_problem(400, "invalid_request");
    with("application/json", "?wait=601")
        .await
        .is_problem(400, "invalid_request");
    let taken = with("application/json", "").await;
    assert_eq!(taken.status, 202);
    assert_eq!(
        taken.header("location"),
        format!("{session}/turns/{}", taken.body["id"].as_str().unwrap())
    );
    assert_eq!(with("*/*", "?wait=20").await.status, 200);
    web.stop().await;
}
