//! Processes in the background, through the demo model and over HTTP, on both
//! databases: they go on between turns, are told of, typed to and ended, belong
//! to one session, and end with their server.

mod ends;

use std::time::Duration;

use hermes_server::model::event::EventBody;
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::message::{Role, text_of};
use hermes_server::store::Fate;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::http::Web;
use crate::harness::{PATIENCE, Server, on_both, probe};

fn tool(name: &str, arguments: &Value) -> String {
    format!("/tool {name} {arguments}")
}

#[allow(clippy::needless_pass_by_value, reason = "it is written where it is used")]
fn background(command: &str, more: Value) -> String {
    let mut arguments = json!({"command": command, "background": true});
    arguments
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    tool("terminal", &arguments)
}

/// Runs one call to its end and gives its result.
async fn call(server: &Server, session: SessionId, text: &str) -> Value {
    let turn = server.turn(session, text).await.turn;
    server.frames(session, turn.id).await;
    result(server, session, turn.id).await
}

async fn result(server: &Server, session: SessionId, turn: TurnId) -> Value {
    let messages = server.messages(session).await;
    let mut of_tools = messages
        .iter()
        .filter(|message| message.turn_id == turn && message.role == Role::Tool);
    serde_json::from_str(&text_of(&of_tools.next().unwrap().content)).unwrap()
}

fn id_of(path: &str) -> SessionId {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// Waits until the session rests, with so many turns over.
async fn turns_over(server: &Server, session: SessionId, count: usize) {
    let mut over = 0;
    let mut follower = server.follow(session, None, Default::default());
    let all = async {
        while over < count {
            let frame = follower.next().await.unwrap().unwrap();
            over += usize::from(matches!(frame.event.body, EventBody::TurnCompleted(_)));
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("the turns end");
}

/// What users said, in order.
async fn inputs(server: &Server, session: SessionId) -> Vec<String> {
    let messages = server.messages(session).await;
    let of_users = messages.iter().filter(|message| message.role == Role::User);
    of_users.map(|message| text_of(&message.content)).collect()
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

#[test]
fn a_process_goes_on_after_its_turn_and_its_end_begins_one() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (path, server) = (web.session().await, &web.server);
        let session = id_of(&path);
        let script = "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo \"last words\"; exit 3";
        let started = call(
            server,
            session,
            &background(script, json!({"notify_on_complete": true})),
        )
        .await;
        assert_eq!(
            (&started["exit_code"], &started["notify_on_complete"]),
            (&json!(0), &json!(true))
        );
        let id = started["session_id"].as_str().unwrap().to_owned();
        assert!(id.starts_with("proc_"), "{id}");

        let listed = web.get(&format!("{path}/processes")).await.body;
        let process = &listed["data"][0];
        assert_eq!(
            (&process["id"], &process["status"], &process["pty"]),
            (&json!(id), &json!("running"), &json!(false))
        );
        let poll = call(
            server,
            session,
            &tool("process", &json!({"action": "poll", "session_id": id})),
        )
        .await;
        assert_eq!((&poll["status"], &poll["session_id"]), (&json!("running"), &json!(id)));

        std::fs::write(server.workspace(session).join("go"), "").unwrap();
        let exited = server
            .wait_for(session, |body| matches!(body, EventBody::ProcessExited(_)))
            .await;
        let EventBody::ProcessExited(data) = &exited.body else {
            unreachable!()
        };
        assert_eq!(
            (data.process.exit_code, data.process.completion_reason.is_some()),
            (Some(3), true)
        );
        turns_over(server, session, 3).await;
        let told = inputs(server, session).await.pop().unwrap();
        assert!(
            told.starts_with(&format!(
                "[IMPORTANT: the background process {id} ended by itself (exit code 3)"
            )),
            "{told}"
        );
        assert!(told.contains("last words"), "{told}");

        let output = web.get(&format!("{path}/processes/{id}/output")).await.body;
        assert_eq!(
            (&output["output"], &output["available"]),
            (&json!("begun\nlast words"), &json!(true))
        );
        let output = web
            .get(&format!("{path}/processes/{id}/output?offset=2&limit=1"))
            .await
            .body;
        assert_eq!(
            (&output["output"], &output["first_line"], &output["total_lines"]),
            (&json!("last words"), &json!(2), &json!(2))
        );
        let one = web.get(&format!("{path}/processes/{id}")).await.body;
        assert_eq!(
            (&one["status"], &one["exit_code"], &one["completion_reason"]),
            (&json!("exited"), &json!(3), &json!("exited"))
        );
        web.stop().await;
    });
}

#[test]
fn lines_that_are_watched_for_are_told() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let server = &web.server;
        let session = server.session().await.id;
        let script = "echo booting; echo 'now ready to serve'; while [ ! -e go ]; do sleep 0.02; done";
        call(
            server,
            session,
            &background(script, json!({"watch_patterns": ["ready to"]})),
        )
        .await;
        let event = server
            .wait_for(session, |body| matches!(body, EventBody::ProcessMatched(_)))
            .await;
        let EventBody::ProcessMatched(data) = &event.body else {
            unreachable!()
        };
        assert_eq!(
            (data.matched.pattern.as_str(), &data.matched.lines[..]),
            ("ready to", &["now ready to serve".to_owned()][..])
        );
        turns_over(server, session, 2).await;
        let told = inputs(server, session).await.pop().unwrap();
        assert!(
            told.contains("printed a line with `ready to`") && told.contains("now ready to serve"),
            "{told}"
        );
        web.stop().await;
    });
}

#[test]
fn a_terminal_is_typed_to_by_clients_and_by_the_model() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (path, server) = (web.session().await, &web.server);
        let session = id_of(&path);
        let script = "test -t 0 && echo has-a-terminal; read a; echo \"one=$a\"; read b; echo \"two=$b\"; cat";
        let started = call(server, session, &background(script, json!({"pty": true}))).await;
        let id = started["session_id"].as_str().unwrap().to_owned();
        let process = format!("{path}/processes/{id}");
        let typed = web
            .post(&format!("{process}/input"), json!({"data": "first", "submit": true}))
            .await;
        assert_eq!(
            (typed.status, &typed.body["bytes_written"]),
            (200, &json!(6)),
            "{}",
            typed.body
        );
        let submit = json!({"action": "submit", "session_id": id, "data": "second"});
        assert_eq!(
            call(server, session, &tool("process", &submit)).await["bytes_written"],
            7
        );
        eventually("both lines arrive", async || {
            let output = web.get(&format!("{process}/output")).await.body["output"]
                .as_str()
                .unwrap()
                .to_owned();
            ["has-a-terminal", "one=first", "two=second"]
                .iter()
                .all(|part| output.contains(part))
        })
        .await;
        let closed = call(
            server,
            session,
            &tool("process", &json!({"action": "close", "session_id": id})),
        )
        .await;
        assert_eq!(closed["status"], "ok", "{closed}");
        let waited = call(
            server,
            session,
            &tool("process", &json!({"action": "wait", "session_id": id})),
        )
        .await;
        assert_eq!(
            (&waited["status"], &waited["exit_code"]),
            (&json!("exited"), &json!(0)),
            "{waited}"
        );
        web.post(&format!("{process}/input"), json!({"data": "x"}))
            .await
            .is_problem(409, "process_not_ready");
        // What would be asked about as a command is asked about when it is typed.
        let other = call(server, session, &background("cat", json!({"pty": true}))).await["session_id"].clone();
        let dangerous = json!({"action": "submit", "session_id": other, "data": "rm -rf ~/x"});
        let turn = server.turn(session, &tool("process", &dangerous)).await.turn;
        server
            .wait_for(
                session,
                |body| matches!(body, EventBody::ApprovalRequested(data) if data.approval.turn_id == turn.id),
            )
            .await;
        web.stop().await;
    });
}

#[test]
fn a_kill_takes_everything_that_was_started() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (path, server) = (web.session().await, &web.server);
        let session = id_of(&path);
        let script = "sleep 300 & echo $! > one; setsid sleep 300 & echo $! > two; trap '' TERM; wait; sleep 300";
        for by_client in [true, false] {
            let started = call(server, session, &background(script, json!({}))).await;
            assert!(started["hint"].is_string(), "{started}");
            let id = started["session_id"].as_str().unwrap().to_owned();
            let root = server.workspace(session);
            eventually("the children run", async || {
                root.join("two").metadata().is_ok_and(|file| 0 < file.len())
            })
            .await;
            let children = ["one", "two"].map(|name| std::fs::read_to_string(root.join(name)).unwrap());
            let killed = if by_client {
                let killed = web.post(&format!("{path}/processes/{id}/kill"), json!({})).await;
                assert_eq!(killed.status, 200, "{}", killed.body);
                assert_eq!(killed.body["completion_reason"], "killed");
                killed.body
            } else {
                let killed = call(
                    server,
                    session,
                    &tool("process", &json!({"action": "kill", "session_id": id})),
                )
                .await;
                assert_eq!(killed["status"], "killed");
                killed
            };
            assert_eq!(killed["exit_code"], -15);
            for child in children {
                let command = std::fs::read_to_string(format!("/proc/{}/cmdline", child.trim())).unwrap_or_default();
                assert!(!command.starts_with("sleep"), "{child} lives");
            }
            let again = call(
                server,
                session,
                &tool("process", &json!({"action": "kill", "session_id": id})),
            )
            .await;
            assert_eq!(again["status"], "already_exited");
            let again = web.post(&format!("{path}/processes/{id}/kill"), json!({})).await;
            assert_eq!(again.body["completion_reason"], "killed");
            std::fs::remove_file(root.join("two")).unwrap();
        }
        web.stop().await;
    });
}

#[test]
fn a_session_sees_its_own_processes_only() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (ours, theirs) = (web.session().await, web.session().await);
        let server = &web.server;
        let started = call(server, id_of(&ours), &background("echo $$ > pid; sleep 300", json!({}))).await;
        let id = started["session_id"].as_str().unwrap().to_owned();
        let file = server.workspace(id_of(&ours)).join("pid");
        eventually("it runs", async || file.metadata().is_ok_and(|file| 0 < file.len())).await;
        let pid = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        for action in ["poll", "log", "wait", "kill", "write", "close"] {
            let asked = json!({"action": action, "session_id": id, "data": "x", "timeout": 1});
            let said = call(server, id_of(&theirs), &tool("process", &asked)).await;
            assert_eq!(said["status"], "not_found", "{action}: {said}");
        }
        let listed = call(server, id_of(&theirs), &tool("process", &json!({"action": "list"}))).await;
        assert_eq!(listed["processes"], json!([]));
        assert_eq!(web.get(&format!("{theirs}/processes")).await.body["data"], json!([]));
        web.get(&format!("{theirs}/processes/{id}"))
            .await
            .is_problem(404, "not_found");
        web.get(&format!("{theirs}/processes/{id}/output"))
            .await
            .is_problem(404, "not_found");
        web.post(&format!("{theirs}/processes/{id}/kill"), json!({}))
            .await
            .is_problem(404, "not_found");
        web.post(&format!("{theirs}/processes/{id}/input"), json!({"data": "x"}))
            .await
            .is_problem(404, "not_found");
        // It has no terminal: its own session cannot type to it either.
        web.post(&format!("{ours}/processes/{id}/input"), json!({"data": "x"}))
            .await
            .is_problem(409, "process_not_ready");
        let said = call(
            server,
            id_of(&ours),
            &tool("process", &json!({"action": "write", "session_id": id, "data": "x"})),
        )
        .await;
        assert!(said["error"].as_str().unwrap().contains("pty: true"), "{said}");
        let said = call(server, id_of(&ours), &tool("process", &json!({"action": "fly"}))).await;
        assert!(said["error"].as_str().unwrap().starts_with("`action` is"), "{said}");
        let root = server.workspace(id_of(&ours));
        assert_eq!(web.delete(&ours).await.status, 204);
        eventually("a deleted session's files go", async || !root.exists()).await;
        assert!(
            !std::path::Path::new(&format!("/proc/{pid}")).exists(),
            "its process outlived it"
        );
        web.stop().await;
    });
}

/// A server on which a process runs that tells of its end, and its number.
async fn with_process(web: &Web, session: SessionId) -> (String, String) {
    let script = "echo $$ > pid; sleep 300";
    let started = call(
        &web.server,
        session,
        &background(script, json!({"notify_on_complete": true})),
    )
    .await;
    let pid = web.server.workspace(session).join("pid");
    eventually("it runs", async || pid.metadata().is_ok_and(|file| 0 < file.len())).await;
    let id = started["session_id"].as_str().unwrap().to_owned();
    (id, std::fs::read_to_string(pid).unwrap().trim().to_owned())
}

#[test]
fn a_process_ends_with_its_server_and_is_told_as_lost() {
    on_both(async |mut place| {
        for crashes in [true, false] {
            let web = place.serve().await;
            let path = web.session().await;
            let session = id_of(&path);
            let (id, pid) = with_process(&web, session).await;
            if crashes {
                web.crash().await;
            } else {
                web.stop().await;
            }
            assert!(
                !std::path::Path::new(&format!("/proc/{pid}")).exists(),
                "it outlived its server"
            );
            let web = place.serve().await;
            let lost = web
                .server
                .wait_for(session, |body| matches!(body, EventBody::ProcessExited(_)))
                .await;
            let EventBody::ProcessExited(data) = &lost.body else {
                unreachable!()
            };
            assert_eq!(serde_json::to_value(data.process.completion_reason).unwrap(), "lost");
            turns_over(&web.server, session, 2).await;
            let told = inputs(&web.server, session).await.pop().unwrap();
            assert!(told.contains(&id) && told.contains("was lost"), "{told}");
            let listed = call(&web.server, session, &tool("process", &json!({"action": "list"}))).await;
            assert_eq!(listed["processes"][0]["completion_reason"], "lost", "{listed}");
            let one = web.get(&format!("{path}/processes/{id}")).await.body;
            assert_eq!(one["completion_reason"], "lost");
            web.stop().await;
        }
    });
}

#[test]
fn a_process_whose_start_was_not_stored_does_not_outlive_the_server() {
    on_both(async |mut place| {
        let web = place
            .serve_probed(probe(
                |label| if label == "results" { Fate::FailBefore } else { Fate::Go },
            ))
            .await;
        let session = id_of(&web.session().await);
        web.server
            .turn(session, &background("echo $$ > pid; sleep 300", json!({})))
            .await;
        let file = web.server.workspace(session).join("pid");
        eventually("it runs", async || file.metadata().is_ok_and(|file| 0 < file.len())).await;
        let pid = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        web.crash().await;
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        let web = place.serve().await;
        web.server
            .wait_for(session, |body| matches!(body, EventBody::ToolCallUnknown(_)))
            .await;
        let log = web.server.log(session).await;
        assert!(
            !log.iter()
                .any(|event| matches!(event.body, EventBody::ProcessStarted(_))),
            "nobody knows of it"
        );
        web.stop().await;
    });
}

#[test]
fn typing_under_a_key_happens_once() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let (path, server) = (web.session().await, &web.server);
        let started = call(server, id_of(&path), &background("cat > typed", json!({"pty": true}))).await;
        let id = started["session_id"].as_str().unwrap();
        let input = format!("{path}/processes/{id}/input");
        for replayed in ["", "true"] {
            let sent = web
                .request(Method::POST, &input)
                .header("idempotency-key", "k")
                .json(&json!({"data": "x\n"}));
            let sent = sent.send().await.unwrap();
            assert_eq!(sent.status(), 200);
            let header = sent
                .headers()
                .get("idempotency-replayed")
                .map_or("", |value| value.to_str().unwrap());
            assert_eq!(header, replayed);
        }
        let sent = web.post(&input, json!({"data": "", "close": true})).await;
        assert_eq!(sent.status, 200);
        let file = server.workspace(id_of(&path)).join("typed");
        eventually("it is typed", async || {
            std::fs::read_to_string(&file).is_ok_and(|text| !text.is_empty())
        })
        .await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
        for (body, pointer) in [
            (json!({"data": ""}), "/data"),
            (json!({"data": "x".repeat(70_000)}), "/data"),
        ] {
            let refused = web.post(&input, body).await;
            refused.is_problem(400, "invalid_request");
            assert_eq!(refused.body["errors"][0]["pointer"], pointer);
        }
        web.stop().await;
    });
}
