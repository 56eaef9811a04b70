//! Long commands take their time to be judged: aside, so that a neighbour's turn
//! goes on, and before the transaction that judges them.

use std::sync::mpsc;
use std::time::Duration;

use hermes_server::model::approval::Choice;
use hermes_server::model::event::{Event, EventBody};
use hermes_server::model::id::SessionId;
use hermes_server::turn::requests::CreateSession;
use hermes_server::turn::step::ClientResult;
use serde_json::json;

use crate::harness::script::answer;
use crate::harness::{Place, Server, new_session, on_both};

/// A command that is asked about, far longer than what is judged at once.
fn long() -> String {
    let command = format!("{}rm -rf build", "echo a; ".repeat(2_000));
    format!("/tool terminal {}", json!({"command": command}))
}

async fn says_hello(server: &Server, session: SessionId) {
    let turn = server.turn(session, "/say hello").await.turn.id;
    let frames = server.frames(session, turn).await;
    let last = &frames.last().unwrap().event.body;
    assert!(matches!(last, EventBody::TurnCompleted(_)), "{last:?}");
}

fn asks(event: &Event) -> bool {
    matches!(event.body, EventBody::ApprovalRequested(_))
}

/// All blocking work has one free thread here, and a gate holds it: while the long
/// command waits for it, the neighbour's turn comes to its end on the only other.
#[test]
fn a_neighbours_turn_ends_while_a_long_command_is_not_yet_judged() {
    let test = async |place: Place| {
        let server = place.start().await;
        let (busy, neighbour) = (server.session().await.id, server.session().await.id);
        // What a session's first turn looks for on the disk is found before.
        for session in [busy, neighbour] {
            says_hello(&server, session).await;
        }
        let (open, gate) = mpsc::channel::<()>();
        let (closed, is_closed) = tokio::sync::oneshot::channel();
        let held = tokio::task::spawn_blocking(move || {
            closed.send(()).unwrap();
            gate.recv_timeout(Duration::from_secs(60))
        });
        is_closed.await.unwrap();
        server.turn(busy, &long()).await;
        for _ in 0..3 {
            says_hello(&server, neighbour).await;
        }
        let log = server.log(busy).await;
        assert!(!log.iter().any(asks), "it was judged on the thread of the turns");
        open.send(()).unwrap();
        held.await.unwrap().unwrap();
        server
            .wait_for(busy, |body| matches!(body, EventBody::ApprovalRequested(_)))
            .await;
        server.stop().await;
    };
    // The embedded store's writer takes a thread of these for itself.
    let runtime = |threads| {
        tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(threads)
            .enable_all()
            .build()
            .unwrap()
    };
    runtime(2).block_on(async { test(Place::sqlite()).await });
    runtime(1).block_on(async {
        if let Some(place) = Place::postgres().await {
            test(place).await;
        }
    });
}

/// After a restart nothing is known of what was asked before: it is read again
/// before the decision's transaction, in which a refusal would judge nothing.
#[test]
fn what_was_asked_before_a_restart_is_read_before_it_is_decided() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        server.turn(session, &long()).await;
        let asked = server
            .wait_for(session, |body| matches!(body, EventBody::ApprovalRequested(_)))
            .await;
        let EventBody::ApprovalRequested(asked) = asked.body else {
            panic!("{asked:?}")
        };
        let approval = asked.approval;
        server.crash().await;
        let server = place.start().await;
        let readings = server.engine.host().readings();
        assert_eq!((readings.count(), readings.were_read(approval.id)), (0, false));
        server
            .engine
            .decide(&server.scope, approval.id, answer(Choice::Deny))
            .await
            .unwrap();
        assert!(readings.were_read(approval.id) && readings.count() == 1);
        server.stop().await;
    });
}

/// So is what stands beside a call whose result the client brings, here one that is
/// refused.
#[test]
fn what_stands_beside_a_clients_call_is_read_before_its_result_is_taken() {
    on_both(async |place| {
        let server = place.start().await;
        let tool = json!({"type": "function", "function": {"name": "look_up"}});
        let new = CreateSession {
            tools: vec![serde_json::from_value(tool).unwrap()],
            ..new_session()
        };
        let made = server.engine.create_session(&server.scope, new).await;
        let session = made.unwrap().id;
        server.turn(session, &format!("/tool look_up {{}}\n{}", long())).await;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        server.crash().await;
        let server = place.start().await;
        let readings = server.engine.host().readings();
        assert_eq!(readings.count(), 0);
        let result = ClientResult {
            call_id: format!("call_{}", "0".repeat(26)).parse().unwrap(),
            output: "found".to_owned(),
            is_error: false,
        };
        let given = server.engine.tool_results(&server.scope, session, vec![result]);
        assert!(given.await.is_err());
        assert_eq!(readings.count(), 1);
        server.stop().await;
    });
}
