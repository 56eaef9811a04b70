//! How long a turn may take: in all, without a sign of life, and not at all
//! counted while it waits for a person. The clock is stepped.

use std::time::Duration;

use hermes_server::base::{Clock, Timestamp};
use hermes_server::live::follow::Frame;
use hermes_server::model::approval::{ApprovalStatus, Choice};
use hermes_server::model::event::EventBody;
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::message::text_of;
use hermes_server::model::problem::ProblemCode;
use hermes_server::model::turn::{StopReason, Turn};
use hermes_server::turn::requests::AnswerRequest;

use crate::harness::script::{check_log, check_transcript, guarded, terminal};
use crate::harness::{PATIENCE, Place, Server, lines, on_both};

const LONG: Duration = Duration::from_secs(100);
const LONGER: Duration = Duration::from_secs(100_000);

fn stepped(place: &mut Place, in_all: Duration, in_silence: Duration) {
    place.clock = Clock::stepped(Timestamp(1_800_000_000_000));
    place.config.agent.max_duration = in_all;
    place.config.agent.inactivity = in_silence;
}

/// Lets the time pass in which nothing may happen, as often as it takes: a sign
/// of life from before counts once more.
async fn end_of_silence(place: &Place, server: &Server, session: SessionId, turn: TurnId) -> Vec<Frame> {
    let frames = server.frames(session, turn);
    let passing = async {
        loop {
            place.clock.step(LONG);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        frames = frames => frames,
        () = passing => unreachable!("time never ends"),
    }
}

fn failed(frames: &[Frame]) -> &Turn {
    let EventBody::TurnFailed(data) = &frames.last().unwrap().event.body else {
        panic!("{:?}", crate::harness::names(frames))
    };
    assert_eq!(data.turn.stop_reason, Some(StopReason::Timeout));
    assert_eq!(data.turn.error.as_ref().unwrap().code, ProblemCode::TurnTimeout);
    &data.turn
}

#[test]
fn a_turn_whose_time_is_over_fails_and_keeps_the_text_that_was_shown() {
    on_both(async |mut place| {
        stepped(&mut place, LONG, LONGER);
        let server = place.start().await;
        let session = server.session().await.id;
        let turn = server.turn(session, "/say begun\n/sleep 3600000").await.turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::MessageDelta(_)))
            .await;
        place.clock.step(LONG);
        failed(&server.frames(session, turn.id).await);
        let messages = server.messages(session).await;
        assert_eq!(text_of(&messages.last().unwrap().content).trim(), "begun");
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn a_turn_in_which_nothing_moves_fails_whether_the_model_or_a_command_is_silent() {
    on_both(async |mut place| {
        stepped(&mut place, LONGER * 1000, LONG);
        let server = place.start().await;
        for script in ["/sleep 360000000", &terminal("sleep 300")] {
            let session = server.session().await.id;
            let turn = server.turn(session, script).await.turn;
            failed(&end_of_silence(&place, &server, session, turn.id).await);
            check_transcript(&server.messages(session).await);
        }
        server.stop().await;
    });
}

#[test]
fn no_limit_runs_while_a_person_is_asked() {
    on_both(async |mut place| {
        stepped(&mut place, LONG, LONG);
        let server = place.start().await;
        let session = server.session().await.id;
        let script = format!("{}\n/then\n/say done", guarded("a"));
        let turn = server.turn(session, &script).await.turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        place.clock.step(LONGER);
        let asked = server.scope.read(move |mut rows| {
            Box::pin(async move {
                rows.approvals(Some(session), Some(ApprovalStatus::Pending), None, 10)
                    .await
            })
        });
        let asked = asked.await.unwrap();
        let answer = AnswerRequest {
            choice: Choice::Once,
            digest: None,
            reason: None,
            stop_turn: false,
            by: "tester".to_owned(),
            arguments: None,
        };
        server.engine.decide(&server.scope, asked[0].id, answer).await.unwrap();
        let frames = tokio::time::timeout(PATIENCE, server.frames(session, turn.id)).await;
        let frames = frames.unwrap();
        assert!(
            matches!(frames.last().unwrap().event.body, EventBody::TurnCompleted(_)),
            "{:?}",
            crate::harness::names(&frames)
        );
        assert_eq!(lines(&server.workspace(session).join("a")), 1);
        server.stop().await;
    });
}
