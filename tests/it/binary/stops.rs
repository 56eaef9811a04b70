//! SIGTERM: turns are handed over, nothing is lost, and it does not take long.

use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;

use super::program::{Program, all_die, child_runs, last_cursor, lasting, mark, through, workspace};
use crate::harness::http::Answer;
use crate::harness::{lines, on_both};

/// FC-032: the decision after the restart resumes the same turn and runs the
/// command once; in between the turn waits and does not run.
#[test]
fn stopped_while_an_approval_pends() {
    on_both(|place| async move {
        let program = Program::start(&place).await;
        let session = program.session().await;
        let mut events = program.follow(&session, "0.0").await;
        let input = "/tool terminal {\"command\": \"rm -rf build; echo ran >> runs\"}\n/then\n/say resumed";
        let turn = program.turn(&session, input).await;
        let frames = through(&mut events, "turn.waiting").await;
        // An open stream does not hold the server up.
        program.stop().await;

        let program = Program::start(&place).await;
        let shown = program.get(&format!("/v1/sessions/{session}/turns/{turn}")).await;
        assert_eq!(shown.body["status"], "waiting");
        let shown = program.get(&format!("/v1/sessions/{session}")).await;
        assert_eq!(shown.body["status"], "requires_action");
        let pending = program.get("/v1/approvals?status=pending").await;
        let approval = pending.body["data"][0]["id"].as_str().unwrap().to_owned();
        let mut events = program.follow(&session, &last_cursor(&frames)).await;
        assert_eq!(program.decide(&approval, "once").await.status, 200);
        let frames = through(&mut events, "turn.completed").await;
        assert_eq!(frames.last().unwrap().data["turn_id"], turn.as_str());
        assert_eq!(lines(&workspace(&place, &session).join("runs")), 1);
        program.stop().await;
    });
}

/// The command may end within the grace; the turn is handed over there and its
/// successor goes on from the stored result.
#[test]
fn stopped_while_a_command_runs() {
    on_both(|place| async move {
        let mut program = Program::start(&place).await;
        let session = program.session().await;
        let mut events = program.follow(&session, "0.0").await;
        let command = "mkfifo go; echo ran >> runs; echo begun; read line < go; echo $line";
        let input = format!("/tool terminal {{\"command\": \"{command}\"}}\n/then\n/say went on");
        let turn = program.turn(&session, &input).await;
        let frames = through(&mut events, "tool_call.output_delta").await;

        program.signal(Signal::TERM);
        loop {
            let ready = program.get("/health/ready").await;
            if ready.status == 503 {
                ready.is_problem(503, "draining");
                break;
            }
            assert_eq!(ready.status, 200);
        }
        assert_eq!(program.get("/health/live").await.status, 200);
        let refused = program
            .request(Method::POST, "/v1/sessions")
            .json(&json!({}))
            .send()
            .await;
        Answer::of(refused.unwrap()).await.is_problem(503, "draining");
        tokio::fs::write(workspace(&place, &session).join("go"), "finished\n")
            .await
            .unwrap();
        assert_eq!(program.ended().await.code(), Some(0));

        let program = Program::start(&place).await;
        let mut events = program.follow(&session, &last_cursor(&frames)).await;
        let frames = through(&mut events, "turn.completed").await;
        assert_eq!(frames.last().unwrap().data["turn_id"], turn.as_str());
        let completed = frames
            .iter()
            .find(|frame| frame.event == "tool_call.completed")
            .unwrap();
        let result = completed.data["data"]["tool_call"]["result"].as_str().unwrap();
        assert!(result.contains("finished"), "{result}");
        assert_eq!(lines(&workspace(&place, &session).join("runs")), 1);
        program.stop().await;
    });
}

#[test]
fn a_second_signal_stops_at_once_and_the_turn_goes_on_later() {
    on_both(|place| async move {
        let mut program = Program::start(&place).await;
        let session = program.session().await;
        let mut events = program.follow(&session, "0.0").await;
        let mark = mark(&place);
        let command = lasting(&mark);
        let input = format!("/tool terminal {{\"command\": \"{command}\"}}\n/then\n/say went on");
        program.turn(&session, &input).await;
        let frames = through(&mut events, "tool_call.output_delta").await;
        let _input = child_runs(&place, &session, &mark).await;

        program.signal(Signal::TERM);
        while program.get("/health/ready").await.status != 503 {}
        program.signal(Signal::INT);
        assert_eq!(program.ended().await.code(), Some(1));
        all_die(&mark).await;

        let program = Program::start(&place).await;
        let mut events = program.follow(&session, &last_cursor(&frames)).await;
        through(&mut events, "turn.completed").await;
        program.stop().await;
    });
}
