//! A session that has a turn already, on both databases: what waits is changed
//! and withdrawn, until it begins.

use hermes_server::model::event::EventBody;
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::message::{Part, Role, text_of};
use hermes_server::model::problem::ProblemCode;
use hermes_server::model::turn::TurnStatus;
use hermes_server::turn::requests::{EngineError, TurnPatch};

use crate::harness::script::{check_log, check_transcript, guarded};
use crate::harness::{Server, name, on_both};

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
