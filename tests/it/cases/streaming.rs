//! Field cases about streams: what a viewer that comes, goes and comes back sees.

use std::time::Duration;

use hermes_server::config::{Config, Sources};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::{durable, ended, held, let_go, talk};
use crate::api_rest::{Talk, decision_of};
use crate::harness::http::{Events, Web, WireFrame};
use crate::harness::on_both;
use crate::harness::script::{guarded, terminal};

/// Creates a turn in the request that streams it; its path comes along.
async fn streamed(web: &Web, talk: &Talk, body: &Value) -> (Events, String) {
    let request = talk.client.request(Method::POST, &talk.path("/turns")).json(body);
    let events = web.stream(request).await;
    let turn = events.response_headers["content-location"].to_str().unwrap().to_owned();
    (events, turn)
}

async fn opened(web: &Web, talk: &Talk, turn: &str) -> Events {
    talk.client.stream(web, &format!("{turn}/stream")).await
}

/// The stream of a turn behind a frame that a client saw last.
async fn resumed(web: &Web, talk: &Talk, turn: &str, last: &WireFrame) -> Events {
    let request = talk.client.request(Method::GET, &format!("{turn}/stream"));
    web.stream(request.header("last-event-id", last.id.clone().unwrap()))
        .await
}

async fn status(talk: &Talk, turn: &str) -> Value {
    talk.client.get(turn).await.expect(200)["status"].clone()
}

#[test]
fn fc_001_a_stream_that_was_cut_opens_again_as_long_as_the_turn_runs() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let script = format!("{}\n/then\n/say done", held("echo let go"));
        let turn = talk.path(&format!("/turns/{}", talk.say(&script).await));
        let mut first = opened(&web, &talk, &turn).await;
        first.until("tool_call.started").await;
        drop(first);
        assert_eq!(status(&talk, &turn).await, "running");
        let mut again = opened(&web, &talk, &turn).await;
        again.until("tool_call.started").await;
        assert_eq!(status(&talk, &turn).await, "running");
        let_go(&web, &talk.session);
        let last = again.rest().await.pop().unwrap();
        assert_eq!(last.event, "turn.completed");
        assert_eq!(last.data["data"]["turn"], talk.client.get(&turn).await.expect(200));
        web.stop().await;
    });
}

#[test]
fn fc_002_what_happened_while_nobody_listened_is_replayed() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let script = format!(
            "{}\n/then\n/say five lines",
            held("for i in 1 2 3 4 5; do echo $i; done")
        );
        let (mut events, turn) = streamed(&web, &talk, &json!({"input": script})).await;
        events.next().await.unwrap();
        let second = events.next().await.unwrap();
        drop(events);
        let_go(&web, &talk.session);
        assert_eq!(ended(&talk, &turn).await["status"], "completed");

        let frames = durable(&resumed(&web, &talk, &turn, &second).await.rest().await);
        let from = second.data["seq"].as_i64().unwrap();
        let log = super::events(&talk).await.into_iter();
        // The state of the session is told on its own stream.
        let expected: Vec<Value> = log
            .filter(|event| event["turn_id"].is_string() && from < event["seq"].as_i64().unwrap())
            .collect();
        let replayed: Vec<Value> = frames.iter().map(|frame| frame.data.clone()).collect();
        assert_eq!(replayed, expected, "in order, without a gap or a repeat");
        let types: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
        assert!(types.contains(&"tool_call.completed"), "{types:?}");
        assert_eq!(types.last(), Some(&"turn.completed"));
        web.stop().await;
    });
}

#[test]
fn fc_004_a_stream_opened_after_the_end_replays_the_turn_and_ends() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let turn = talk.path(&format!("/turns/{}", talk.say("/say short answer").await));
        ended(&talk, &turn).await;
        let frames = opened(&web, &talk, &turn).await.rest().await;
        let types: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
        assert_eq!(types[..2], ["stream.hello", "turn.started"]);
        assert_eq!(types.last(), Some(&"turn.completed"));
        let answer = frames.iter().rfind(|frame| frame.event == "message.completed").unwrap();
        assert_eq!(answer.data["data"]["message"]["content"][0]["text"], "short answer");
        for cursor in ["x", "1.2.3", "-1", "99999999999999999999", "%00", "1e3"] {
            let path = format!("{turn}/stream?after={cursor}");
            talk.client.get(&path).await.problem(400, "invalid_cursor");
        }
        web.stop().await;
    });
}

#[test]
fn fc_005_a_turn_goes_on_when_the_client_that_asked_for_it_leaves() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let script = format!("/say working\n{}\n/then\n/say finished", held("touch done.txt"));
        let body = json!({"input": script, "on_disconnect": "continue"});
        let (mut events, turn) = streamed(&web, &talk, &body).await;
        // What came before is final by then: a viewer may have got it whole.
        events.until("tool_call.started").await;
        drop(events);
        let_go(&web, &talk.session);
        let turn = ended(&talk, &turn).await;
        assert_eq!(
            (&turn["status"], &turn["stop_reason"]),
            (&json!("completed"), &json!("end_turn"))
        );
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        assert!(workspace.join("done.txt").exists());
        let history = talk.client.get(&talk.path("/messages")).await.expect(200);
        let last = history["data"].as_array().unwrap().last().unwrap();
        assert_eq!(
            (&last["role"], &last["content"][0]["text"]),
            (&json!("assistant"), &json!("finished"))
        );
        web.stop().await;
    });
}

/// The case wants heartbeats as comments. They are named events here, so that
/// clients that see no comments can tell a silent server from a dead one.
#[test]
fn fc_007_a_silent_tool_leaves_no_silent_stream() {
    on_both(async |mut place| {
        let period = Config::load(&Sources::default()).unwrap().server.heartbeat;
        assert!(
            period < Duration::from_secs(15),
            "{period:?} is longer than common cuts"
        );
        place.config.server.heartbeat = Duration::from_millis(100);
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let script = format!("{}\n/then\n/say ok", held("true"));
        let (mut events, turn) = streamed(&web, &talk, &json!({"input": script})).await;
        assert_eq!(events.response_headers["cache-control"], "no-cache, no-transform");
        assert_eq!(events.response_headers["x-accel-buffering"], "no");
        let last = events.until("tool_call.started").await;
        for _ in 0..3 {
            let beat = events.until("heartbeat").await;
            assert_eq!(beat.id, None, "a heartbeat does not move the cursor");
        }
        drop(events);
        let_go(&web, &talk.session);
        ended(&talk, &turn).await;
        let rest = durable(&resumed(&web, &talk, &turn, &last).await.rest().await);
        assert_eq!(
            rest[0].data["seq"].as_i64(),
            last.data["seq"].as_i64().map(|seq| seq + 1)
        );
        web.stop().await;
    });
}

/// Passes bytes on and cuts a connection that the server leaves silent for so long.
async fn impatient_proxy(listener: TcpListener, to: std::net::SocketAddr, idle: Duration) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(async move {
            let server = TcpStream::connect(to).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let up = tokio::io::copy(&mut from_client, &mut to_server);
            let down = async {
                let mut buffer = [0; 4096];
                while let Ok(Ok(read @ 1..)) =
                    tokio::time::timeout(idle, tokio::io::AsyncReadExt::read(&mut from_server, &mut buffer)).await
                {
                    tokio::io::AsyncWriteExt::write_all(&mut to_client, &buffer[..read])
                        .await
                        .unwrap();
                }
            };
            tokio::select! { _ = up => (), () = down => () }
        });
    }
}

#[test]
fn fc_008_heartbeats_keep_a_connection_through_a_proxy_that_cuts_idle_ones() {
    on_both(async |mut place| {
        let idle = Duration::from_secs(1);
        for (heartbeat, survives) in [(idle / 20, true), (idle * 30, false)] {
            place.config.server.heartbeat = heartbeat;
            let web = place.serve().await;
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let through = listener.local_addr().unwrap();
            let proxy = tokio::spawn(impatient_proxy(listener, web.address, idle));
            let talk = talk(&web, json!({})).await;
            let turn = talk.path(&format!("/turns/{}", talk.say(&held("echo heard")).await));
            let request = talk.client.request(Method::GET, &format!("{turn}/stream"));
            let (client, request) = request.build_split();
            let mut request = request.unwrap();
            request.url_mut().set_port(Some(through.port())).unwrap();
            let request = reqwest::RequestBuilder::from_parts(client, request);
            let mut events = web.stream(request).await;
            events.until("tool_call.started").await;
            if survives {
                // More than one idle span of a tool that says nothing.
                for _ in 0..30 {
                    events.until("heartbeat").await;
                }
                let_go(&web, &talk.session);
                assert_eq!(events.rest().await.pop().unwrap().event, "turn.completed");
            } else {
                assert_eq!(events.rest().await, [], "the proxy cuts a silent connection");
                let_go(&web, &talk.session);
            }
            proxy.abort();
            web.stop().await;
        }
    });
}

/// Every event of the session by pages of two, as a client without streams reads.
async fn polled(talk: &Talk) -> Vec<Value> {
    let (mut all, mut path) = (Vec::new(), talk.path("/events?limit=2"));
    loop {
        let page = talk.client.get(&path).await.expect(200);
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        if page["has_more"] == false {
            return all;
        }
        path = talk.path(&format!(
            "/events?limit=2&after={}",
            page["next_cursor"].as_str().unwrap()
        ));
    }
}

#[test]
fn fc_013_polling_alone_sees_all_that_a_stream_sees() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = talk(&web, json!({})).await;
        let script = format!("{}\n/then\n{}\n/then\n/say x", terminal("echo hi"), guarded("a"));
        let turn = talk.path(&format!("/turns/{}", talk.say(&script).await));
        super::reached(&talk, &turn, "waiting").await;
        let asked = talk.client.get("/v1/approvals?status=pending").await.expect(200);
        let once = json!({"choice": "once"});
        talk.client
            .post(&decision_of(&asked["data"][0]), &once)
            .await
            .expect(200);
        assert_eq!(ended(&talk, &turn).await["status"], "completed");

        let polled = polled(&talk).await;
        let mut stream = talk.client.stream(&web, &talk.path("/stream")).await;
        let mut streamed = Vec::new();
        while streamed.len() < polled.len() {
            streamed.extend(durable(&[stream.next().await.unwrap()]));
        }
        let envelopes: Vec<Value> = streamed.into_iter().map(|frame| frame.data).collect();
        assert_eq!(polled, envelopes);
        for expected in [
            "approval.requested",
            "approval.resolved",
            "tool_call.completed",
            "turn.completed",
        ] {
            assert!(polled.iter().any(|event| event["type"] == expected), "{expected}");
        }
        let history = talk.client.get(&talk.path("/messages")).await.expect(200);
        let told: Vec<&Value> = polled
            .iter()
            .filter(|event| event["type"] == "message.completed")
            .map(|event| &event["data"]["message"]["id"])
            .collect();
        let stored: Vec<&Value> = history["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| &message["id"])
            .collect();
        assert!(told.iter().all(|id| stored.contains(id)), "{told:?} {stored:?}");
        web.stop().await;
    });
}

#[test]
fn fc_014_a_stopped_turn_says_who_stopped_it() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let script = format!("{}\n/then\n/say never", held("true"));
        let stopped = talk(&web, json!({})).await;
        let (mut events, turn) = streamed(&web, &stopped, &json!({"input": script})).await;
        events.until("tool_call.started").await;
        stopped
            .client
            .post(&format!("{turn}/cancel"), &json!({}))
            .await
            .expect(202);
        let rest = events.rest().await;
        let ends: Vec<&WireFrame> = rest.iter().filter(|frame| super::ends_turn(&frame.event)).collect();
        assert_eq!((ends.len(), ends[0].event.as_str()), (1, "turn.cancelled"));
        assert_eq!(ends[0].data["data"]["turn"]["stop_reason"], "cancelled_by_user");
        assert_eq!(rest.last(), ends.first().copied());
        let history = stopped.client.get(&stopped.path("/messages")).await.expect(200);
        let messages = history["data"].as_array().unwrap();
        let result = messages.iter().find(|message| message["role"] == "tool").unwrap();
        let call = messages
            .iter()
            .find_map(|message| message["tool_calls"].get(0))
            .unwrap();
        assert_eq!(result["tool_call_id"], call["id"]);
        let note = result["content"][0]["text"].as_str().unwrap();
        assert!(note.contains("interrupted"), "{note}");

        let left = talk(&web, json!({})).await;
        let body = json!({"input": script, "on_disconnect": "cancel"});
        let (mut events, turn) = streamed(&web, &left, &body).await;
        events.until("tool_call.started").await;
        drop(events);
        assert_eq!(ended(&left, &turn).await["stop_reason"], "client_disconnected");
        web.stop().await;
    });
}
