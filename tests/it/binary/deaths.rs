//! kill -9 at the worst moments. What was promised holds: nothing is lost, no
//! effect happens twice, and none is hidden.

use serde_json::Value;

use super::program::{Program, all_die, child_runs, last_cursor, lasting, mark, through, workspace};
use crate::harness::http::WireFrame;
use crate::harness::{lines, on_both};

/// FC-059 and FC-061: the command and its children die with the server, the
/// call is reported as unknown and not repeated, and the turn comes to an end
/// of which the client is told.
#[test]
fn killed_during_a_command() {
    on_both(|place| async move {
        let program = Program::start(&place).await;
        let session = program.session().await;
        let mut events = program.follow(&session, "0.0").await;
        let mark = mark(&place);
        let command = format!("echo ran >> runs; {}", lasting(&mark));
        let input = format!("/tool terminal {{\"command\": \"{command}\"}}\n/then\n/say went on");
        let turn = program.turn(&session, &input).await;
        let frames = through(&mut events, "tool_call.output_delta").await;
        let _input = child_runs(&place, &session, &mark).await;

        program.kill().await;
        all_die(&mark).await;

        let program = Program::start(&place).await;
        let mut events = program.follow(&session, &last_cursor(&frames)).await;
        let frames = through(&mut events, "turn.completed").await;
        let resumed = place_of(&frames, "turn.resumed");
        assert_eq!(
            frames[resumed].data["data"]["reason"], "recovered",
            "{}",
            frames[resumed].data
        );
        let unknown = &frames[place_of(&frames, "tool_call.unknown")];
        assert_eq!(unknown.data["data"]["tool_call"]["status"], "unknown");
        assert_eq!(frames.last().unwrap().data["turn_id"], turn.as_str());

        let messages = program.messages(&session).await;
        let roles: Vec<&str> = messages
            .iter()
            .map(|message| message["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
        assert!(text(&messages[2]).contains("unknown"), "{}", messages[2]);
        assert_eq!(text(&messages[3]), "went on");
        assert_eq!(lines(&workspace(&place, &session).join("runs")), 1);

        // The session goes on, as the case asks.
        program.turn(&session, "/say again").await;
        through(&mut events, "turn.completed").await;
        program.stop().await;
    });
}

/// FC-031: the approval is listed under the same id after the restart, can be
/// decided, and what it was about runs once.
#[test]
fn killed_while_an_approval_pends() {
    on_both(|place| async move {
        let program = Program::start(&place).await;
        let session = program.session().await;
        let mut events = program.follow(&session, "0.0").await;
        let input = "/tool terminal {\"command\": \"rm -rf build; echo ran >> runs\"}\n/then\n/say ok";
        let turn = program.turn(&session, input).await;
        let frames = through(&mut events, "turn.waiting").await;
        let asked = frames[place_of(&frames, "approval.requested")].data["data"]["approval"].clone();
        let approval = asked["id"].as_str().unwrap();

        program.kill().await;
        let program = Program::start(&place).await;
        let listed = program
            .get(&format!("/v1/approvals?status=pending&session_id={session}"))
            .await;
        assert_eq!(listed.body["data"], Value::Array(vec![asked.clone()]));
        let busy = program
            .post(
                &format!("/v1/sessions/{session}/turns"),
                serde_json::json!({"input": "a message"}),
            )
            .await;
        assert_eq!(busy.status, 409, "{}", busy.body);

        let mut events = program.follow(&session, &last_cursor(&frames)).await;
        assert_eq!(program.decide(approval, "once").await.status, 200);
        let frames = through(&mut events, "turn.completed").await;
        assert_eq!(frames.last().unwrap().data["turn_id"], turn.as_str());
        assert_eq!(program.decide(approval, "once").await.status, 200);
        program
            .decide(approval, "deny")
            .await
            .is_problem(409, "approval_resolved");
        assert_eq!(lines(&workspace(&place, &session).join("runs")), 1);
        program.stop().await;
    });
}

/// The viewer comes back with its cursor: `turn.resumed` voids the half-read
/// message, and what follows is the whole of what is stored.
#[test]
fn killed_in_the_middle_of_an_answer() {
    on_both(|place| async move {
        let program = Program::start(&place).await;
        let session = program.session().await;
        let mut events = program.follow(&session, "0.0").await;
        let turn = program.turn(&session, "/tokens 200 50").await;
        let mut frames = through(&mut events, "message.delta").await;
        frames.extend(through(&mut events, "message.delta").await);
        program.kill().await;
        while let Some(frame) = events.next().await {
            frames.push(frame);
        }

        let program = Program::start(&place).await;
        let mut events = program.follow(&session, &last_cursor(&frames)).await;
        let after = through(&mut events, "turn.completed").await;
        let resumed = place_of(&after, "turn.resumed");
        assert!(after[..resumed].iter().all(|frame| frame.event != "message.delta"));
        let deltas = after[resumed..].iter().filter(|frame| frame.event == "message.delta");
        let joined: String = deltas
            .map(|frame| frame.data["data"]["text"].as_str().unwrap())
            .collect();
        let messages = program.messages(&session).await;
        let [_, answer] = &messages[..] else {
            panic!("{messages:?}")
        };
        assert_eq!(joined, text(answer));
        assert_eq!(joined.split_whitespace().count(), 200);
        assert_eq!(after.last().unwrap().data["turn_id"], turn.as_str());

        let log = program.log(&session).await;
        let seqs: Vec<i64> = log.iter().map(|event| event["seq"].as_i64().unwrap()).collect();
        assert_eq!(seqs, (1..=i64::try_from(seqs.len()).unwrap()).collect::<Vec<_>>());
        program.stop().await;
    });
}

fn place_of(frames: &[WireFrame], event: &str) -> usize {
    let found = frames.iter().position(|frame| frame.event == event);
    found.unwrap_or_else(|| {
        let seen: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
        panic!("no {event} in {seen:?}")
    })
}

fn text(message: &Value) -> String {
    let parts = message["content"].as_array().unwrap().iter();
    parts.filter_map(|part| part["text"].as_str()).collect()
}
