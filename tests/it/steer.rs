//! Messages for a turn that runs (`on_busy: steer`), on both databases: the model
//! reads them after the results of its calls, or they become turns of their own;
//! none is lost, and none decides anything.

use hermes_server::model::event::{Event, EventBody};
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::message::{Message, Role, text_of};
use hermes_server::model::problem::ProblemCode;
use hermes_server::model::turn::{OnBusy, TurnStatus};
use hermes_server::turn::requests::{CreatedTurn, EngineError, NewTurn};
use reqwest::Method;
use serde_json::json;

use crate::harness::http::Answer;
use crate::harness::script::{check_log, check_transcript, guarded, mark, terminal};
use crate::harness::{Server, lines, names, new_turn, on_both};

async fn said(server: &Server, session: SessionId, text: &str, on_busy: OnBusy) -> Result<CreatedTurn, EngineError> {
    let new = NewTurn {
        on_busy,
        ..new_turn(text)
    };
    server.engine.create_turn(&server.scope, session, new).await
}

async fn steer(server: &Server, session: SessionId, text: &str) -> CreatedTurn {
    said(server, session, text, OnBusy::Steer).await.unwrap()
}

async fn saw(server: &Server, session: SessionId, picks: fn(&EventBody) -> bool) -> Event {
    server.wait_for(session, picks).await
}

/// Role, text, and whether it was said to a turn that ran.
async fn transcript(server: &Server, session: SessionId) -> Vec<(Role, String, bool)> {
    let messages = server.messages(session).await;
    check_transcript(&messages);
    let short = |message: &Message| (message.role, text_of(&message.content), message.steered);
    messages.iter().map(short).collect()
}

async fn users(server: &Server, session: SessionId) -> Vec<String> {
    let all = transcript(server, session).await;
    let users = all.into_iter().filter(|(role, ..)| *role == Role::User);
    users.map(|(_, text, _)| text).collect()
}

/// A command that ends when the file `go` is there.
fn held() -> String {
    terminal("while ! [ -e go ]; do sleep 0.02; done; echo went")
}

#[test]
fn what_is_said_while_a_command_runs_is_read_after_its_result() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        // A command is told of before it is begun, and its directory is made.
        std::fs::create_dir_all(server.workspace(session)).unwrap();
        let turn = server
            .turn(session, &format!("{}\n/then\n/say unread", held()))
            .await
            .turn
            .id;
        saw(&server, session, |body| matches!(body, EventBody::ToolCallStarted(_))).await;
        let told = steer(&server, session, "/say read").await;
        assert_eq!(
            (told.turn.id, told.turn.pending_steers),
            (turn, 1),
            "the running turn answers"
        );
        steer(&server, session, "and this").await;
        std::fs::write(server.workspace(session).join("go"), "").unwrap();
        server.frames(session, turn).await;
        let all = transcript(&server, session).await;
        let order: Vec<_> = all.iter().map(|(role, _, steered)| (*role, *steered)).collect();
        let expected = [
            (Role::User, false),
            (Role::Assistant, false),
            (Role::Tool, false),
            (Role::User, true),
            (Role::User, true),
            (Role::Assistant, false),
        ];
        assert_eq!(order, expected);
        assert_eq!(
            (all[3].1.as_str(), all[4].1.as_str()),
            ("/say read", "and this"),
            "in their order"
        );
        assert_eq!(all[5].1, "read", "the model saw it");
        let log = server.log(session).await;
        check_log(&log);
        let event = log.iter().find(|event| event.seq == told.first_seq).unwrap();
        let EventBody::TurnSteered(data) = &event.body else {
            panic!("{event:?}")
        };
        let shown = data.steer.as_ref().unwrap();
        assert_eq!(
            (text_of(&shown.input).as_str(), data.turn.pending_steers),
            ("/say read", 1)
        );
        server.stop().await;
    });
}

#[test]
fn what_is_said_while_a_person_is_asked_waits_and_is_no_consent() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let script = format!("{}\n/then\n/say end", guarded("a"));
        let turn = server.turn(session, &script).await.turn.id;
        saw(&server, session, |body| matches!(body, EventBody::TurnWaiting(_))).await;
        let told = steer(&server, session, "yes, allow it").await;
        assert_eq!((told.turn.id, told.turn.status), (turn, TurnStatus::Waiting));
        assert_eq!(lines(&server.workspace(session).join("a")), 0);
        crate::busy::decide_all(&server, session).await;
        server.frames(session, turn).await;
        assert_eq!(lines(&server.workspace(session).join("a")), 1);
        let order: Vec<Role> = transcript(&server, session).await.iter().map(|entry| entry.0).collect();
        assert_eq!(
            order,
            [Role::User, Role::Assistant, Role::Tool, Role::User, Role::Assistant]
        );
        server.stop().await;
    });
}

#[test]
fn what_the_turn_does_not_come_to_read_goes_before_the_queue() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let turn = server.turn(session, "/tokens 100000 5").await.turn.id;
        let last = server.enqueue(session, "/say last").await.turn.id;
        saw(&server, session, |body| matches!(body, EventBody::MessageDelta(_))).await;
        steer(&server, session, "/say first").await;
        steer(&server, session, "/say second").await;
        server.engine.cancel_turn(&server.scope, session, turn).await.unwrap();
        let late = steer(&server, session, "/say late").await;
        let frames = server.frames(session, last).await;
        assert!(names(&frames).contains(&"turn.completed".to_owned()));
        if late.turn.id != turn {
            server.frames(session, late.turn.id).await;
        }
        let mut heard = users(&server, session).await;
        heard.retain(|text| text != "/say late");
        assert_eq!(heard[1..], ["/say first", "/say second", "/say last"]);
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn an_interrupt_goes_before_what_was_said_to_the_turn_that_it_ends() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        server.turn(session, &guarded("a")).await;
        saw(&server, session, |body| matches!(body, EventBody::TurnWaiting(_))).await;
        steer(&server, session, "/say said before").await;
        let now = said(&server, session, "/say now", OnBusy::Interrupt)
            .await
            .unwrap()
            .turn;
        assert_eq!(now.status, TurnStatus::Running);
        let ended =
            |event: &Event, id: TurnId| event.turn_id == Some(id) && matches!(event.body, EventBody::TurnCompleted(_));
        server.frames(session, now.id).await;
        let next = server.log(session).await;
        let next = next
            .iter()
            .skip_while(|event| !ended(event, now.id))
            .find_map(|event| match event.body {
                EventBody::TurnStarted(_) => event.turn_id,
                _ => None,
            });
        server.frames(session, next.unwrap()).await;
        assert_eq!(users(&server, session).await[1..], ["/say now", "/say said before"]);
        server.stop().await;
    });
}

#[test]
fn an_idle_session_begins_a_turn_and_a_full_one_refuses() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let first = steer(&server, session, &guarded("a")).await;
        assert!(!first.steered, "nothing ran");
        saw(&server, session, |body| matches!(body, EventBody::TurnWaiting(_))).await;
        for number in 0..15 {
            steer(&server, session, &format!("word {number}")).await;
        }
        server.enqueue(session, "one in the queue").await;
        let Err(EngineError::Refused(problem)) = said(&server, session, "one more", OnBusy::Steer).await else {
            panic!("17 wait");
        };
        assert_eq!(problem.code, ProblemCode::QueueFull);
        server.stop().await;
    });
}

#[test]
fn over_http_the_running_turn_answers_also_twice_and_is_not_on_a_leash() {
    on_both(async |mut place| {
        let web = place.serve().await;
        let session = web.session().await;
        let turns = format!("{session}/turns");
        let script = format!("{}\n{}\n/then\n/say end", guarded("a"), mark("b"));
        let turn = web.post(&turns, json!({"input": script})).await;
        web.stream(web.request(
            Method::GET,
            &format!("{turns}/{}/stream", turn.body["id"].as_str().unwrap()),
        ))
        .await
        .until("turn.waiting")
        .await;
        let body = json!({"input": "hurry", "on_busy": "steer", "on_disconnect": "cancel"});
        let send = || {
            web.request(Method::POST, &turns)
                .header("idempotency-key", "k")
                .json(&body)
                .send()
        };
        let first = Answer::of(send().await.unwrap()).await;
        assert_eq!(
            (first.status, &first.body["id"]),
            (202, &turn.body["id"]),
            "{}",
            first.body
        );
        assert_eq!(first.header("location"), turn.header("location"));
        assert_eq!(first.body["pending_steers"], 1);
        let again = Answer::of(send().await.unwrap()).await;
        assert_eq!(
            (&again.body, again.header("idempotency-replayed").as_str()),
            (&first.body, "true")
        );
        let stream = web.request(Method::POST, &turns).header("accept", "text/event-stream");
        let mut stream = web.stream(stream.json(&body)).await;
        stream.until("turn.steered").await;
        drop(stream);
        let after = web.get(&first.header("location")).await.body;
        assert_eq!(
            (&after["status"], &after["pending_steers"]),
            (&json!("waiting"), &json!(2))
        );
        web.stop().await;
    });
}
