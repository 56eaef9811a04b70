//! A session that has a turn already, on both databases: what waits is changed
//! and withdrawn until it begins, and a new message may take the place of what
//! runs. A message is never consent.

use hermes_server::model::approval::{Approval, ApprovalStatus, Choice};
use hermes_server::model::call::CallStatus;
use hermes_server::model::event::EventBody;
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::message::{Part, Role, text_of};
use hermes_server::model::problem::ProblemCode;
use hermes_server::model::turn::{OnBusy, StopReason, TurnStatus};
use hermes_server::turn::requests::{AnswerRequest, CreatedTurn, EngineError, NewTurn, TurnPatch};

use crate::harness::script::{answer, check_log, check_transcript, guarded, mark, terminal};
use crate::harness::{Server, lines, name, new_turn, on_both};

/// A turn that waits for a person, so that everything else waits behind it.
async fn parked(server: &Server, session: SessionId) -> TurnId {
    let script = format!("{}\n/then\n/say parked", guarded("a"));
    let turn = server.turn(session, &script).await.turn.id;
    server
        .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
        .await;
    turn
}

fn says(text: &str) -> TurnPatch {
    TurnPatch {
        input: Some(vec![Part::text(text)]),
        metadata: None,
    }
}

async fn user_texts(server: &Server, session: SessionId) -> Vec<String> {
    let messages = server.messages(session).await;
    check_transcript(&messages);
    let users = messages.iter().filter(|message| message.role == Role::User);
    users.map(|message| text_of(&message.content)).collect()
}

fn refused<T: std::fmt::Debug>(verdict: Result<T, EngineError>) -> ProblemCode {
    match verdict {
        Err(EngineError::Refused(problem)) => problem.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_waits_begins_as_it_was_last_changed_and_what_was_withdrawn_never_does() {
    on_both(async |place| {
        let server = place.start().await;
        let (engine, scope) = (&server.engine, &server.scope);
        let session = server.session().await.id;
        let first = parked(&server, session).await;
        let changed = server.enqueue(session, "/say before").await.turn.id;
        let gone = server.enqueue(session, "/say gone").await.turn.id;
        let last = server.enqueue(session, "/say last").await.turn.id;

        let metadata = serde_json::from_str(r#"{"label": "new"}"#).unwrap();
        let patch = TurnPatch {
            metadata: Some(metadata),
            ..says("/say after")
        };
        let told = engine.patch_queued(scope, session, changed, patch).await.unwrap();
        assert_eq!(
            (told.status, &told.input),
            (TurnStatus::Queued, &vec![Part::text("/say after")])
        );
        let told = engine
            .patch_queued(scope, session, changed, TurnPatch::default())
            .await
            .unwrap();
        assert_eq!(told.options.metadata["label"], "new", "what is not named stays");
        let ended = engine.withdraw_queued(scope, session, gone).await.unwrap();
        assert_eq!(ended.status, TurnStatus::Cancelled);

        for turn in [first, gone] {
            assert_eq!(
                refused(engine.patch_queued(scope, session, turn, says("x")).await),
                ProblemCode::TurnNotActive
            );
            assert_eq!(
                refused(engine.withdraw_queued(scope, session, turn).await),
                ProblemCode::TurnNotActive
            );
        }
        engine.cancel_turn(scope, session, first).await.unwrap();
        server.frames(session, last).await;
        let said = user_texts(&server, session).await;
        assert_eq!(said[1..], ["/say after", "/say last"]);
        let log = server.log(session).await;
        check_log(&log);
        let queued = log.iter().filter(|event| event.turn_id == Some(changed));
        let names: Vec<String> = queued.map(name).take(4).collect();
        assert_eq!(names, ["turn.queued", "turn.queued", "turn.queued", "turn.started"]);
        server.stop().await;
    });
}

async fn busy(server: &Server, session: SessionId, text: &str, on_busy: OnBusy) -> CreatedTurn {
    let new = NewTurn {
        on_busy,
        ..new_turn(text)
    };
    server.engine.create_turn(&server.scope, session, new).await.unwrap()
}

/// Allows once whatever pends.
pub(crate) async fn decide_all(server: &Server, session: SessionId) {
    for approval in approvals(server, session).await {
        let answer = answer(Choice::Once);
        server.engine.decide(&server.scope, approval.id, answer).await.unwrap();
    }
}

async fn approvals(server: &Server, session: SessionId) -> Vec<Approval> {
    let read = server
        .scope
        .read(move |mut rows| Box::pin(async move { rows.approvals(Some(session), None, None, 100).await }));
    read.await.unwrap()
}

async fn stored(server: &Server, session: SessionId, turn: TurnId) -> (TurnStatus, Option<StopReason>) {
    let read = server
        .scope
        .read(move |mut rows| Box::pin(async move { rows.turn(session, turn).await }));
    let turn = read.await.unwrap().unwrap();
    (turn.status, turn.stop_reason)
}

#[test]
fn an_interrupt_while_the_model_writes_keeps_the_text_and_goes_before_the_queue() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let old = server.turn(session, "/tokens 100000 5").await.turn.id;
        let later = server.enqueue(session, "/say later").await.turn.id;
        server
            .wait_for(session, |body| matches!(body, EventBody::MessageDelta(_)))
            .await;
        let new = busy(&server, session, "/say now", OnBusy::Interrupt).await.turn;
        assert_eq!(new.status, TurnStatus::Queued);
        server.frames(session, later).await;
        let ended = stored(&server, session, old).await;
        assert_eq!(ended, (TurnStatus::Interrupted, Some(StopReason::Superseded)));
        let said = user_texts(&server, session).await;
        assert_eq!(said[1..], ["/say now", "/say later"], "before the queue");
        let kept = &server.messages(session).await[1];
        assert_eq!((kept.turn_id, kept.role), (old, Role::Assistant));
        assert!(!text_of(&kept.content).is_empty(), "the partial text is kept");
        let log = server.log(session).await;
        check_log(&log);
        let of_old = log.iter().rfind(|event| event.turn_id == Some(old)).unwrap();
        assert_eq!(name(of_old), "turn.interrupted");
        server.stop().await;
    });
}

#[test]
fn an_interrupt_of_what_waits_for_a_person_decides_nothing_and_starts_at_once() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let old = parked(&server, session).await;
        let new = busy(&server, session, "/say yes, go on", OnBusy::Interrupt).await.turn;
        assert_eq!(
            new.status,
            TurnStatus::Running,
            "the parked turn ended in the same transaction"
        );
        let ended = stored(&server, session, old).await;
        assert_eq!(ended, (TurnStatus::Interrupted, Some(StopReason::Superseded)));
        server.frames(session, new.id).await;
        assert_eq!(
            lines(&server.workspace(session).join("a")),
            0,
            "a message is never consent"
        );
        let closed = approvals(&server, session).await.remove(0);
        assert_eq!(closed.status, ApprovalStatus::Superseded);
        let reason = closed.decision.unwrap().reason;
        assert_eq!(reason.as_deref(), Some("/say yes, go on"), "the message is the reason");
        let answer = AnswerRequest {
            choice: Choice::Deny,
            arguments: None,
            grant: None,
            digest: None,
            reason: None,
            stop_turn: false,
            by: "tester".to_owned(),
        };
        let late = server.engine.decide(&server.scope, closed.id, answer).await;
        assert_eq!(refused(late), ProblemCode::ApprovalResolved);
        user_texts(&server, session).await;
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn an_interrupt_stops_what_runs_and_closes_what_waits_beside_it() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let script = format!(
            "{}\n{}\n/then\n/say never",
            terminal("sleep 60; echo ran >> b"),
            guarded("a")
        );
        let old = server.turn(session, &script).await.turn.id;
        server
            .wait_for(session, |body| matches!(body, EventBody::ApprovalRequested(_)))
            .await;
        let new = busy(&server, session, "/say now", OnBusy::Interrupt).await.turn;
        // Told at once, while the old turn is still being stopped.
        assert_eq!(approvals(&server, session).await[0].status, ApprovalStatus::Superseded);
        server.frames(session, new.id).await;
        assert_eq!(stored(&server, session, old).await.0, TurnStatus::Interrupted);
        let messages = server.messages(session).await;
        check_transcript(&messages);
        let calls = messages.iter().flat_map(|message| &message.tool_calls);
        let statuses: Vec<CallStatus> = calls.map(|call| call.status).collect();
        assert_eq!(statuses, [CallStatus::Cancelled; 2]);
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn what_interrupts_a_session_at_rest_is_a_turn_like_any_other() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let turn = busy(&server, session, "/say hi", OnBusy::Interrupt).await.turn;
        server.frames(session, turn.id).await;
        assert_eq!(stored(&server, session, turn.id).await.0, TurnStatus::Completed);
        server.stop().await;
    });
}

#[test]
fn what_is_rolled_back_stays_in_the_log_and_leaves_the_models_sight() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let before = server.turn(session, "/say before").await.turn.id;
        server.frames(session, before).await;
        let script = format!("{}\n/then\n{}\n/then\n/say never", mark("kept"), guarded("a"));
        let old = server.turn(session, &script).await.turn.id;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let new = busy(&server, session, "/say instead", OnBusy::Rollback).await.turn;
        server.frames(session, new.id).await;
        let ended = stored(&server, session, old).await;
        assert_eq!(ended, (TurnStatus::RolledBack, Some(StopReason::Superseded)));
        assert_eq!(lines(&server.workspace(session).join("kept")), 1, "effects stay");
        assert_eq!(approvals(&server, session).await[0].status, ApprovalStatus::Superseded);

        let all = server.messages(session).await;
        check_transcript(&all);
        for message in &all {
            assert_eq!(message.hidden, message.turn_id == old, "{message:?}");
        }
        let (seen, _) = server
            .scope
            .read(move |mut rows| Box::pin(async move { rows.transcript(session).await }))
            .await
            .unwrap();
        let turns: Vec<TurnId> = seen.iter().map(|message| message.turn_id).collect();
        assert!(turns.iter().all(|turn| [before, new.id].contains(turn)), "{turns:?}");
        assert_eq!(turns.len(), 4);
        let log = server.log(session).await;
        check_log(&log);
        let of_old = log.iter().rfind(|event| event.turn_id == Some(old)).unwrap();
        assert_eq!(name(of_old), "turn.rolled_back");
        server.stop().await;
    });
}

#[test]
fn a_rollback_of_what_runs_wins_over_a_cancel_that_came_before_it() {
    on_both(async |place| {
        let server = place.start().await;
        for cancels in [false, true] {
            let session = server.session().await.id;
            let script = format!("{}\n/then\n/say never", terminal("trap '' TERM; sleep 60"));
            let old = server.turn(session, &script).await.turn.id;
            server
                .wait_for(session, |body| matches!(body, EventBody::ToolCallStarted(_)))
                .await;
            if cancels {
                server.engine.cancel_turn(&server.scope, session, old).await.unwrap();
            }
            let new = busy(&server, session, "/say now", OnBusy::Rollback).await.turn;
            server.frames(session, new.id).await;
            let status = stored(&server, session, old).await.0;
            // The cancel may have been carried out before the message came.
            let fine = status == TurnStatus::RolledBack || (cancels && status == TurnStatus::Cancelled);
            assert!(fine, "{status:?}");
            check_log(&server.log(session).await);
        }
        server.stop().await;
    });
}
