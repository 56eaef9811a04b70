//! `patch` and `search_files` through the demo model, on both databases: their
//! results, a crash in the middle, and many calls at once.

use std::time::{Duration, Instant};

use hermes_server::model::event::EventBody;
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::message::{Role, text_of};
use hermes_server::store::Fate;
use serde_json::{Value, json};

use crate::harness::script::terminal;
use crate::harness::{Server, on_both, probe};

fn tool(name: &str, arguments: &Value) -> String {
    format!("/tool {name} {arguments}")
}

/// Megabytes of output are masked byte by byte, which takes its time in a build
/// that is not optimised, on a machine with other work.
const LONG: Duration = Duration::from_secs(60);

async fn results(server: &Server, session: SessionId, turn: TurnId) -> Vec<String> {
    server.frames_within(LONG, session, turn).await;
    let messages = server.messages(session).await;
    let of_tools = messages
        .iter()
        .filter(|message| message.turn_id == turn && message.role == Role::Tool);
    of_tools.map(|message| text_of(&message.content)).collect()
}

async fn run(server: &Server, session: SessionId, calls: &[String]) -> Vec<Value> {
    let turn = server.turn(session, &calls.join("\n/then\n")).await.turn;
    let texts = results(server, session, turn.id).await;
    texts
        .iter()
        .map(|text| {
            let json = text.split("\n\n[").next().unwrap();
            serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"))
        })
        .collect()
}

#[test]
fn files_are_searched_and_patched() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let patch = "*** Begin Patch\n*** Update File: src/a.py\n def one():\n-    return 1\n+    return 2\n\
            *** Add File: src/b.py\n+x = 1\n*** Delete File: old.txt\n*** End Patch";
        let said = run(
            &server,
            session,
            &[
                tool(
                    "write_file",
                    &json!({"path": "src/a.py", "content": "def one():\n    return 1\n"}),
                ),
                tool("write_file", &json!({"path": "old.txt", "content": "old"})),
                tool("search_files", &json!({"pattern": "return \\d"})),
                tool("patch", &json!({"mode": "patch", "patch": patch})),
                tool(
                    "patch",
                    &json!({"path": "src/a.py", "old_string": "return 3", "new_string": "return 4"}),
                ),
                tool(
                    "patch",
                    &json!({"path": "src/a.py", "old_string": "def  one():", "new_string": "def two():"}),
                ),
                tool("search_files", &json!({"pattern": "*.py", "target": "files"})),
            ],
        )
        .await;
        assert_eq!(
            said[2]["matches"],
            json!([{"path": "src/a.py", "line": 2, "content": "    return 1"}])
        );
        assert_eq!(
            (&said[3]["success"], &said[3]["lint"]["src/a.py"]["status"]),
            (&json!(true), &json!("ok")),
            "{}",
            said[3]
        );
        assert_eq!(said[4]["success"], false);
        assert!(
            said[4]["error"].as_str().unwrap().contains("2|    return 2"),
            "{}",
            said[4]
        );
        assert_eq!(said[5]["success"], true, "{}", said[5]);
        assert_eq!(said[6]["total_count"], 2);
        let root = server.workspace(session);
        assert_eq!(
            std::fs::read_to_string(root.join("src/a.py")).unwrap(),
            "def two():\n    return 2\n"
        );
        assert_eq!(std::fs::read_to_string(root.join("src/b.py")).unwrap(), "x = 1");
        assert!(!root.join("old.txt").exists());
        let broken = tool(
            "patch",
            &json!({"path": "src/b.py", "old_string": "x = 1", "new_string": "x = ("}),
        );
        let said = run(&server, session, &[broken]).await;
        assert_eq!(said[0]["lint"]["status"], "error", "{}", said[0]);
        server.stop().await;
    });
}

#[test]
fn a_patch_whose_end_nobody_saw_is_unknown_and_not_applied_again() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        run(
            &server,
            session,
            &[tool("write_file", &json!({"path": "n", "content": "1\n"}))],
        )
        .await;
        server.stop().await;
        let fails = probe(|label| if label == "results" { Fate::FailBefore } else { Fate::Go });
        let server = place.start_probed(fails).await;
        let patch = json!({"path": "n", "old_string": "1", "new_string": "11"});
        let turn = server.turn(session, &tool("patch", &patch)).await.turn;
        let file = server.workspace(session).join("n");
        let began = Instant::now();
        while std::fs::read_to_string(&file).unwrap() == "1\n" {
            assert!(began.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.crash().await;
        let server = place.start().await;
        server.frames(session, turn.id).await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "11\n");
        let log = server.log(session).await;
        assert!(
            log.iter()
                .any(|event| matches!(event.body, EventBody::ToolCallUnknown(_)))
        );
        server.stop().await;
    });
}

/// The result of a call that this event tells of.
fn completed(body: &EventBody) -> Option<String> {
    match body {
        EventBody::ToolCallCompleted(data) => data.tool_call.result.clone(),
        _ => None,
    }
}

#[test]
fn two_hundred_calls_of_one_answer_all_have_their_results() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        run(
            &server,
            session,
            &[tool("write_file", &json!({"path": "a", "content": "needle\n"}))],
        )
        .await;
        let calls: Vec<String> = (0..200)
            .map(|number| match number % 4 {
                0 => tool("search_files", &json!({"pattern": format!("needle|{number}")})),
                1 => tool("read_file", &json!({"path": "a", "limit": number + 1})),
                2 => tool(
                    "patch",
                    &json!({"path": "a", "old_string": format!("nothing there at all {number}"), "new_string": "x"}),
                ),
                _ => tool("session_search", &json!({"query": format!("word{number}")})),
            })
            .collect();
        let turn = server.turn(session, &calls.join("\n")).await.turn;
        let frames = server.frames(session, turn.id).await;
        let texts: Vec<String> = frames.iter().filter_map(|frame| completed(&frame.event.body)).collect();
        assert_eq!(texts.len(), 200);
        assert_eq!(
            texts.iter().filter(|text| text.contains("\"total_count\":1")).count(),
            50
        );
        assert_eq!(texts.iter().filter(|text| text.contains("was not found")).count(), 50);
        server.stop().await;
    });
}

#[test]
fn fifty_megabytes_of_output_are_bounded_in_both_ways_of_running() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let script = "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end";
        let in_background = json!({"command": script, "background": true});
        let said = run(&server, session, &[terminal(script), tool("terminal", &in_background)]).await;
        assert!(said[0]["output"].as_str().unwrap().len() < 120_000);
        let id = said[1]["session_id"].clone();
        let wait = tool("process", &json!({"action": "wait", "session_id": id}));
        let log = tool("process", &json!({"action": "log", "session_id": id, "limit": 1}));
        let said = run(&server, session, &[wait, log]).await;
        assert_eq!(
            (&said[0]["status"], &said[1]["output"]),
            (&json!("exited"), &json!("end"))
        );
        assert!(said[0]["output"].as_str().unwrap().len() <= 2_000);
        server.stop().await;
    });
}
