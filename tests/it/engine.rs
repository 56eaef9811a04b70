//! Turns from input to outcome on both databases, without HTTP: what is
//! streamed, what is stored, what is committed how often.

mod moved;
mod row;

use std::sync::Arc;
use std::sync::Mutex;

use hermes_server::live::cursor::Cursor;
use hermes_server::model::approval::{ApprovalStatus, Choice};
use hermes_server::model::call::CallStatus;
use hermes_server::model::event::EventBody;
use hermes_server::model::message::{Role, text_of};
use hermes_server::model::problem::ProblemCode;
use hermes_server::model::turn::TurnStatus;
use hermes_server::store::Fate;
use hermes_server::turn::requests::{AnswerRequest, EngineError};

use crate::harness::script::{answer, check_log, check_transcript, guarded, mark, terminal};
use crate::harness::{Server, lines, name, names, on_both, probe};

#[test]
fn a_plain_turn_streams_and_is_stored() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        // Attached before the turn begins: every delta is seen.
        let mut viewer = server.follow(session, None, Cursor::default());
        let turn = server.turn(session, "/say line one\n/say line two ").await.turn;
        let frames = crate::harness::until(&mut viewer, |body| matches!(body, EventBody::TurnCompleted(_))).await;
        assert_eq!(names(&frames)[..3], ["stream.hello", "session.created", "turn.started"]);
        assert_eq!(
            server.frames(session, turn.id).await.last().unwrap().event.id,
            frames.last().unwrap().event.id
        );
        let joined: String = frames
            .iter()
            .filter_map(|frame| match &frame.event.body {
                EventBody::MessageDelta(data) => Some(data.text.as_str()),
                _ => None,
            })
            .collect();
        let messages = server.messages(session).await;
        assert_eq!(messages.len(), 2);
        assert_eq!(joined, text_of(&messages[1].content));
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn a_command_runs_and_its_result_reaches_the_model() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let turn = server
            .turn(session, &format!("{}\n/then\n/say done", terminal("echo hello")))
            .await
            .turn;
        let frames = server.frames(session, turn.id).await;
        let shown = names(&frames).join(" ");
        assert!(shown.contains("tool_call.proposed tool_call.started"), "{shown}");
        let messages = server.messages(session).await;
        check_transcript(&messages);
        assert!(text_of(&messages[2].content).contains("hello"), "{messages:?}");
        assert_eq!(messages.last().unwrap().role, Role::Assistant);
        server.stop().await;
    });
}

#[test]
fn a_page_of_messages_holds_every_call_and_may_begin_anywhere() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let calls: Vec<String> = (0..250)
            .map(|number| format!("/tool read_file {{\"x\": {number}}}"))
            .collect();
        let turn = server.turn(session, &calls.join("\n")).await.turn;
        server.frames(session, turn.id).await;
        let page = |after, limit| {
            let read = server
                .scope
                .read(move |mut rows| Box::pin(async move { rows.messages(session, after, limit).await }));
            async move { read.await.unwrap().items }
        };
        assert_eq!(page(-1, 2).await[1].1.tool_calls.len(), 250);
        for after in [i64::MAX, i64::MAX - 1, i64::MIN] {
            assert!(page(after, 2).await.is_empty());
        }
        server.stop().await;
    });
}

#[test]
fn an_answer_of_too_many_calls_fails_the_turn_and_stores_none() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let calls: Vec<String> = (0..257)
            .map(|number| format!("/tool read_file {{\"path\": \"{number}\"}}"))
            .collect();
        let turn = server.turn(session, &calls.join("\n")).await.turn;
        let frames = server.frames(session, turn.id).await;
        let Some(EventBody::TurnFailed(end)) = frames.last().map(|frame| &frame.event.body) else {
            panic!("{}", names(&frames).join(" "));
        };
        assert_eq!(end.turn.error.as_ref().unwrap().code, ProblemCode::ModelAnswerInvalid);
        assert!(!names(&frames).contains(&"tool_call.proposed".to_owned()));
        server.stop().await;
    });
}

async fn pending(
    server: &Server,
    session: hermes_server::model::id::SessionId,
) -> Vec<hermes_server::model::approval::Approval> {
    let read = server.scope.read(move |mut rows| {
        Box::pin(async move {
            rows.approvals(Some(session), Some(ApprovalStatus::Pending), None, 100)
                .await
        })
    });
    let mut found = read.await.unwrap();
    found.reverse();
    found
}

#[test]
fn a_dangerous_command_waits_for_a_person() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let turn = server
            .turn(session, &format!("{}\n/then\n/say done", guarded("a")))
            .await
            .turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        assert_eq!(lines(&server.workspace(session).join("a")), 0);
        assert!(server.is_left().await, "a parked turn has no task");
        let asked = pending(&server, session).await;
        assert_eq!(asked.len(), 1);
        server
            .engine
            .decide(&server.scope, asked[0].id, answer(Choice::Once))
            .await
            .unwrap();
        let frames = server.frames(session, turn.id).await;
        assert_eq!(lines(&server.workspace(session).join("a")), 1, "{:?}", names(&frames));
        check_transcript(&server.messages(session).await);
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn an_edited_call_runs_as_edited_and_a_bad_edit_changes_nothing() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let turn = server.turn(session, &guarded("asked")).await.turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let asked = pending(&server, session).await;
        let edit = |command: &str| AnswerRequest {
            arguments: serde_json::json!({"command": command}).as_object().cloned(),
            ..answer(Choice::Once)
        };
        let head = server.log(session).await.len();
        let refused = server.engine.decide(&server.scope, asked[0].id, edit("rm -rf /")).await;
        match refused.unwrap_err() {
            EngineError::Refused(problem) => assert_eq!(problem.code, ProblemCode::EditNotAllowed),
            other => panic!("{other}"),
        }
        assert_eq!(server.log(session).await.len(), head, "nothing was written");
        let decided = server
            .engine
            .decide(&server.scope, asked[0].id, edit("echo ran >> edited"))
            .await
            .unwrap();
        assert!(decided.decision.unwrap().edited);
        server.frames(session, turn.id).await;
        let made = ["asked", "edited"].map(|file| lines(&server.workspace(session).join(file)));
        assert_eq!(made, [0, 1]);
        check_transcript(&server.messages(session).await);
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn a_denied_call_is_told_to_the_model_and_the_turn_goes_on() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let turn = server
            .turn(session, &format!("{}\n/then\n/say understood", guarded("a")))
            .await
            .turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let asked = pending(&server, session).await;
        let deny = AnswerRequest {
            reason: Some("not today".to_owned()),
            ..answer(Choice::Deny)
        };
        server.engine.decide(&server.scope, asked[0].id, deny).await.unwrap();
        server.frames(session, turn.id).await;
        let messages = server.messages(session).await;
        assert!(text_of(&messages[2].content).contains("not today"));
        assert_eq!(text_of(&messages.last().unwrap().content), "understood");
        assert_eq!(lines(&server.workspace(session).join("a")), 0);
        server.stop().await;
    });
}

#[test]
fn siblings_run_while_one_call_waits_and_decisions_bind_to_ids() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let script = format!("{}\n{}\n/then\n/say done", guarded("first"), guarded("second"));
        let turn = server.turn(session, &script).await.turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let asked = pending(&server, session).await;
        assert_eq!(asked.len(), 2);
        // The second is allowed first: stored, but it may not overtake.
        server
            .engine
            .decide(&server.scope, asked[1].id, answer(Choice::Once))
            .await
            .unwrap();
        server
            .engine
            .decide(&server.scope, asked[0].id, answer(Choice::Deny))
            .await
            .unwrap();
        server.frames(session, turn.id).await;
        assert_eq!(lines(&server.workspace(session).join("first")), 0);
        assert_eq!(lines(&server.workspace(session).join("second")), 1);
        check_transcript(&server.messages(session).await);
        server.stop().await;
    });
}

#[test]
fn a_cancel_ends_a_running_command_and_keeps_the_transcript_valid() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let turn = server
            .turn(session, &format!("{}\n{}", terminal("echo begun; sleep 60"), mark("b")))
            .await
            .turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::ToolCallOutputDelta(_)))
            .await;
        server
            .engine
            .cancel_turn(&server.scope, session, turn.id)
            .await
            .unwrap();
        let frames = server.frames(session, turn.id).await;
        assert_eq!(names(&frames).last().unwrap(), "turn.cancelled");
        let messages = server.messages(session).await;
        check_transcript(&messages);
        assert!(
            text_of(&messages[2].content).contains("begun"),
            "partial output is kept: {messages:?}"
        );
        assert_eq!(messages[1].tool_calls[1].status, CallStatus::Cancelled);
        assert_eq!(lines(&server.workspace(session).join("b")), 0);
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn a_queued_turn_begins_when_the_first_one_ends() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let first = server.turn(session, "/sleep 100\n/say one").await.turn;
        let second = server.enqueue(session, "/say two").await.turn;
        assert_eq!(second.status, TurnStatus::Queued);
        server.frames(session, first.id).await;
        let frames = server.frames(session, second.id).await;
        assert_eq!(names(&frames)[1..3], ["turn.queued", "turn.started"]);
        let said: Vec<String> = server
            .messages(session)
            .await
            .iter()
            .map(|message| text_of(&message.content))
            .collect();
        assert_eq!(said, ["/sleep 100\n/say one", "one", "/say two", "two"]);
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn commits_are_as_few_as_promised() {
    on_both(async |place| {
        let seen: Arc<Mutex<Vec<&'static str>>> = Arc::default();
        let sink = Arc::clone(&seen);
        let counted = probe(move |label| {
            sink.lock().unwrap().push(label);
            Fate::Go
        });
        let server = place.start_probed(counted).await;
        let commits = async |script: &str| {
            let session = server.session().await.id;
            seen.lock().unwrap().clear();
            let turn = server.turn(session, script).await.turn;
            let frames = server.frames(session, turn.id).await;
            assert_eq!(name(&frames.last().unwrap().event), "turn.completed");
            let labels = seen.lock().unwrap().clone();
            labels
                .into_iter()
                .filter(|label| !label.starts_with("process") && !label.starts_with("audit"))
                .collect::<Vec<_>>()
        };
        assert_eq!(commits("/say hi").await, ["create_turn", "answer"]);
        let one = commits(&format!("{}\n/then\n/say done", mark("a"))).await;
        assert_eq!(one, ["create_turn", "answer", "results", "answer"]);
        let three = commits(&format!(
            "{}\n{}\n{}\n/then\n/say done",
            mark("a"),
            mark("b"),
            mark("c")
        ))
        .await;
        assert_eq!(
            three,
            ["create_turn", "answer", "results", "results", "results", "answer"]
        );
        let asked = async |script: &str| {
            let session = server.session().await.id;
            seen.lock().unwrap().clear();
            let turn = server.turn(session, script).await.turn;
            server
                .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
                .await;
            let approval = pending(&server, session).await.remove(0);
            server
                .engine
                .decide(&server.scope, approval.id, answer(Choice::Once))
                .await
                .unwrap();
            server.frames(session, turn.id).await;
            let labels = seen.lock().unwrap().clone();
            labels
                .into_iter()
                .filter(|label| !label.starts_with("process") && !label.starts_with("audit"))
                .collect::<Vec<_>>()
        };
        let decided = asked(&format!("{}\n/then\n/say done", guarded("a"))).await;
        assert_eq!(decided, ["create_turn", "answer", "decide", "results", "answer"]);
        let read = "/tool read_file {\"path\": \"none\"}\n/tool read_file {\"path\": \"nothing\"}";
        let parallel = commits(&format!("{read}\n/then\n/say done")).await;
        assert_eq!(parallel, ["create_turn", "answer", "results", "answer"]);
        server.stop().await;
    });
}
