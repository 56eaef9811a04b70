//! `?types=` and `?deltas=off`, and cursors where frames are left out.

use reqwest::Method;
use serde_json::json;

use super::{through, types};
use crate::api_rest::Talk;
use crate::harness::http::{Events, WireFrame};
use crate::harness::on_both;
use crate::harness::script::terminal;

fn script() -> String {
    format!(
        "/reason hm\n/say I look.\n{}\n/then\n/say That is all.",
        terminal("echo out")
    )
}

/// The numbers of durable frames among these.
fn numbers(frames: &[WireFrame]) -> Vec<i64> {
    let durable = frames.iter().filter(|frame| {
        !frame.event.contains("delta")
            && !["stream.hello", "message.started", "heartbeat"].contains(&frame.event.as_str())
    });
    durable.map(|frame| frame.data["seq"].as_i64().unwrap()).collect()
}

#[test]
fn only_the_types_asked_for_are_sent() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let turn = talk.say(&script()).await;
        let path = talk.path(&format!("/turns/{turn}/stream"));
        let whole = talk.client.stream(&web, &path).await.rest().await;
        let some = talk
            .client
            .stream(&web, &format!("{path}?types=turn.*,%20tool_call.completed"))
            .await;
        let some = some.rest().await;
        assert_eq!(
            types(&some),
            ["stream.hello", "turn.started", "tool_call.completed", "turn.completed"]
        );
        for frame in &some[1..] {
            let same = |other: &&WireFrame| other.data == frame.data;
            assert!(whole.iter().any(|other| same(&other)), "the same event: {frame:?}");
        }
        // The stream ends with the turn, whether its end is shown or not.
        let calls = talk
            .client
            .stream(&web, &format!("{path}?types=tool_call.started"))
            .await
            .rest()
            .await;
        assert_eq!(types(&calls), ["stream.hello", "tool_call.started"]);

        for (query, given) in [
            ("types=turn", "`turn`"),
            ("types=turn.*,nothing.*", "`nothing.*`"),
            ("types=", "``"),
        ] {
            for path in [path.clone(), talk.path("/stream")] {
                let problem = talk
                    .client
                    .get(&format!("{path}?{query}"))
                    .await
                    .problem(400, "invalid_request");
                let error = &problem["errors"][0];
                let detail = error["detail"].as_str().unwrap();
                assert_eq!(error["pointer"], "types");
                assert!(
                    detail.contains(given) && detail.contains("turn.rolled_back"),
                    "{detail}"
                );
            }
        }
        talk.client
            .get(&format!("{path}?deltas=no"))
            .await
            .problem(400, "invalid_request");
        web.stop().await;
    });
}

#[test]
fn without_deltas_everything_stored_comes_and_nothing_else() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let body = json!({"input": script()});
        let request = talk
            .client
            .request(Method::POST, &talk.path("/turns?deltas=off"))
            .json(&body);
        let frames = web.stream(request).await.rest().await;
        assert!(
            frames
                .iter()
                .all(|frame| !frame.event.contains("delta") && frame.event != "message.started")
        );
        let log = talk.client.get(&talk.path("/events?limit=200")).await.expect(200);
        let own = log["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["turn_id"].is_string());
        let own: Vec<i64> = own.map(|event| event["seq"].as_i64().unwrap()).collect();
        assert_eq!(numbers(&frames), own);
        // They choose frames of a stream; another answer has none.
        for query in ["deltas=off", "types=turn.*"] {
            let refused = talk.client.post(&talk.path(&format!("/turns?{query}")), &body).await;
            refused.problem(400, "invalid_request");
        }
        web.stop().await;
    });
}

/// A reader without deltas that comes back for them gets what is in flight from
/// its beginning: its cursor counts none that it was not sent.
#[test]
fn a_reader_that_wants_deltas_after_all_misses_none() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let script = terminal("echo one; until [ -e go ]; do sleep 0.02; done; echo two");
        let turn = talk.say(&script).await;
        let path = talk.path(&format!("/turns/{turn}/stream"));
        // Somebody else sees the output, so that it is there.
        let mut other = talk.client.stream(&web, &path).await;
        other.until("tool_call.output_delta").await;
        let mut quiet = talk.client.stream(&web, &format!("{path}?deltas=off")).await;
        let last = quiet.until("tool_call.started").await;
        let cursor = last.id.unwrap();
        assert!(cursor.ends_with(".0"), "{cursor}");
        drop(quiet);
        let mut lively: Events = talk.client.stream(&web, &format!("{path}?after={cursor}")).await;
        let delta = lively.until("tool_call.output_delta").await;
        assert_eq!(delta.data["data"]["text"], "one\n");
        let workspace = web.server.workspace(talk.session.parse().unwrap());
        std::fs::write(workspace.join("go"), "").unwrap();
        through(&mut lively, "turn.completed").await;
        web.stop().await;
    });
}

/// Cut after every frame and resumed with the same types, a reader sees what one
/// that was never cut sees.
#[test]
fn a_filtered_stream_resumes_without_gap_or_repeat() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let talk = Talk::new(&web, &web.owner().await, &json!({})).await;
        let turn = talk.say(&script()).await;
        let filter = "types=message.*,turn.completed,session.*&deltas=off";
        let mut events = talk.client.stream(&web, &talk.path(&format!("/stream?{filter}"))).await;
        let whole = through(&mut events, "turn.completed").await;
        let (mut joined, mut cursor) = (Vec::new(), "0".to_owned());
        while joined
            .last()
            .is_none_or(|frame: &WireFrame| frame.event != "turn.completed")
        {
            let path = talk.path(&format!("/stream?{filter}&after={cursor}"));
            let mut events = talk.client.stream(&web, &path).await;
            assert_eq!(events.next().await.unwrap().event, "stream.hello");
            let frame = events.next().await.unwrap();
            cursor = frame.id.clone().unwrap();
            joined.push(frame);
        }
        assert_eq!(types(&joined), types(&whole[1..]));
        assert_eq!(numbers(&joined), numbers(&whole[1..]));
        assert!(!turn.is_empty() && joined.len() > 4);
        web.stop().await;
    });
}
