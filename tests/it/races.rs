//! What happens at the same time: decisions, cancels, ends, takeovers, expiry
//! and deletion meet each other in every order that chance gives, on both
//! databases. Whatever the order: every turn ends once, nothing runs twice, no
//! wake-up is lost, nothing is left behind.

mod deleted;

use std::time::Duration;

use hermes_server::live::cursor::Cursor;
use hermes_server::model::approval::{Approval, ApprovalStatus, Choice, OnExpiry};
use hermes_server::model::event::EventBody;
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::problem::ProblemCode;
use hermes_server::model::session::ApprovalPolicy;
use hermes_server::model::turn::{OnBusy, TurnStatus};
use hermes_server::store::Fate;
use hermes_server::turn::requests::{CreateSession, EngineError, NewTurn};

use crate::harness::script::{
    answer, check_log, check_transcript, guarded, is_terminal, mark, terminal, terminal_events,
};
use crate::harness::{PATIENCE, Server, lines, name, names, new_session, new_turn, on_both, probe, until};

/// Small pauses in an order that a seed fixes.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// Up to `micros` microseconds; short ones only give way.
    fn pause(&mut self, micros: u64) -> impl Future<Output = ()> + use<> {
        let span = Duration::from_micros(self.roll(micros + 1));
        async move {
            if span < Duration::from_micros(100) {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(span).await;
            }
        }
    }
}

async fn pending(server: &Server, session: SessionId) -> Vec<Approval> {
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

async fn asked(server: &Server, session: SessionId) -> Approval {
    server
        .wait_for(session, |body| matches!(body, EventBody::ApprovalRequested(_)))
        .await;
    pending(server, session).await.remove(0)
}

/// Waits until every turn of the session is over, and checks what must hold
/// whatever happened.
async fn settled(server: &Server, session: SessionId, turns: usize, marks: &[(&str, usize)]) -> Vec<TurnStatus> {
    let mut ended = Vec::new();
    let mut follower = server.follow(session, None, Cursor::default());
    let mut seen = Vec::new();
    while ended.len() < turns {
        let frames = until(&mut follower, is_terminal).await;
        let last = frames.last().unwrap();
        ended.push(status(&last.event.body));
        seen.extend(frames);
    }
    drop(follower);
    check_transcript(&server.messages(session).await);
    let log = server.log(session).await;
    check_log(&log);
    let stored: Vec<String> = log.iter().map(name).collect();
    assert_eq!(
        terminal_events(&log),
        turns,
        "seen: {:?}, stored: {stored:?}",
        names(&seen)
    );
    for (name, at_most) in marks {
        let ran = lines(&server.workspace(session).join(name));
        assert!(ran <= *at_most, "`{name}` ran {ran} times");
    }
    ended
}

fn status(body: &EventBody) -> TurnStatus {
    match body {
        EventBody::TurnCompleted(data)
        | EventBody::TurnFailed(data)
        | EventBody::TurnCancelled(data)
        | EventBody::TurnInterrupted(data)
        | EventBody::TurnRolledBack(data) => data.turn.status,
        other => panic!("{other:?}"),
    }
}

/// Nothing runs, nothing is held for nobody.
async fn quiet(server: &Server) {
    let still = async {
        while server.engine.executing() != 0 || !server.engine.hub().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, still).await.is_err() {
        panic!(
            "{} turns run, {} channels are held",
            server.engine.executing(),
            server.engine.hub().len()
        );
    }
}

fn refused(verdict: Result<impl std::fmt::Debug, EngineError>) -> Option<ProblemCode> {
    match verdict {
        Ok(_) => None,
        Err(EngineError::Refused(problem)) => Some(problem.code),
        Err(other) => panic!("{other:?}"),
    }
}

async fn expiring_session(server: &Server, on_expiry: OnExpiry) -> SessionId {
    let new = CreateSession {
        approvals: ApprovalPolicy {
            timeout_seconds: Some(1),
            on_expiry: Some(on_expiry),
            ..ApprovalPolicy::default()
        },
        ..new_session()
    };
    server.engine.create_session(&server.scope, new).await.unwrap().id
}

#[test]
fn a_cancel_between_two_steps_is_never_missed() {
    on_both(async |place| {
        let server = place.start().await;
        let play = async |seed| {
            let mut dice = Dice(seed);
            for _ in 0..6 {
                let session = server.session().await.id;
                let script = "/tool read_file {\"path\": \"a\"}\n/then\n/sleep 60000\n/say never";
                let turn = server.turn(session, script).await.turn;
                dice.pause(30_000).await;
                server
                    .engine
                    .cancel_turn(&server.scope, session, turn.id)
                    .await
                    .unwrap();
                let ended = settled(&server, session, 1, &[]).await;
                assert_eq!(ended, [TurnStatus::Cancelled]);
            }
        };
        // Side by side, so that commits of one turn share a transaction.
        futures::future::join_all((100..124).map(play)).await;
        quiet(&server).await;
        server.stop().await;
    });
}

#[test]
fn a_client_that_leaves_while_it_asks_leaves_no_turn_that_nobody_runs() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(2);
        for _ in 0..60 {
            let session = server.session().await.id;
            tokio::select! {
                biased;
                _ = server.try_turn(session, "/say hi") => {}
                () = dice.pause(3000) => {}
            }
            // Either it never began, or it runs to its end.
            let mut follower = server.follow(session, None, Cursor::default());
            let busy = |body: &EventBody| matches!(body, EventBody::TurnStarted(_));
            let began = tokio::time::timeout(Duration::from_millis(60), until(&mut follower, busy)).await;
            if began.is_ok() {
                // At once: not when somebody sweeps up what was left.
                let ended = tokio::time::timeout(Duration::from_secs(3), settled(&server, session, 1, &[]));
                assert_eq!(ended.await.expect("the turn is run"), [TurnStatus::Completed]);
            }
        }
        server.stop().await;
    });
}

#[test]
fn an_answer_and_the_end_of_a_sibling_at_the_same_time() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(3);
        for round in 0..12 {
            let session = server.session().await.id;
            let script = format!(
                "{}\n{}\n{}\n/then\n/say done",
                terminal("sleep 0.05; echo ran >> a"),
                guarded("b"),
                mark("c")
            );
            server.turn(session, &script).await;
            let approval = asked(&server, session).await;
            tokio::time::sleep(Duration::from_millis(40)).await;
            dice.pause(60_000).await;
            let choice = if round % 3 == 0 { Choice::Deny } else { Choice::Once };
            server
                .engine
                .decide(&server.scope, approval.id, answer(choice))
                .await
                .unwrap();
            let ended = settled(&server, session, 1, &[("a", 1), ("b", 1), ("c", 1)]).await;
            assert_eq!(ended, [TurnStatus::Completed]);
            let ran: Vec<usize> = ["a", "b", "c"]
                .iter()
                .map(|name| lines(&server.workspace(session).join(name)))
                .collect();
            assert_eq!(ran, [1, usize::from(choice.allows()), 1]);
        }
        quiet(&server).await;
        server.stop().await;
    });
}

#[test]
fn an_answer_and_a_cancel_at_the_same_time() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(4);
        for _ in 0..15 {
            let session = server.session().await.id;
            let turn = server
                .turn(session, &format!("{}\n/then\n/say done", guarded("a")))
                .await
                .turn;
            let approval = asked(&server, session).await;
            let (early, late) = (dice.pause(4000), dice.pause(4000));
            let decide = async {
                early.await;
                server
                    .engine
                    .decide(&server.scope, approval.id, answer(Choice::Once))
                    .await
            };
            let cancel = async {
                late.await;
                server.engine.cancel_turn(&server.scope, session, turn.id).await
            };
            let (decided, cancelled) = tokio::join!(decide, cancel);
            cancelled.unwrap();
            let lost = refused(decided);
            let ended = settled(&server, session, 1, &[("a", 1)]).await;
            if let Some(code) = lost {
                assert!(
                    matches!(code, ProblemCode::ApprovalResolved | ProblemCode::TurnNotActive),
                    "{code:?}"
                );
                assert_eq!(ended, [TurnStatus::Cancelled]);
                assert_eq!(
                    lines(&server.workspace(session).join("a")),
                    0,
                    "refused and run all the same"
                );
            }
        }
        quiet(&server).await;
        server.stop().await;
    });
}

#[test]
fn of_two_conflicting_answers_exactly_one_wins() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(5);
        for _ in 0..15 {
            let session = server.session().await.id;
            server
                .turn(session, &format!("{}\n/then\n/say done", guarded("a")))
                .await;
            let approval = asked(&server, session).await;
            let (one, two) = (dice.pause(2000), dice.pause(2000));
            let give = async |pause: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>, choice| {
                pause.await;
                server.engine.decide(&server.scope, approval.id, answer(choice)).await
            };
            let (yes, no) = tokio::join!(give(Box::pin(one), Choice::Once), give(Box::pin(two), Choice::Deny));
            let allowed = yes.is_ok();
            assert_ne!(allowed, no.is_ok(), "exactly one answer wins");
            let loser = if allowed { refused(no) } else { refused(yes) };
            assert_eq!(loser, Some(ProblemCode::ApprovalResolved));
            settled(&server, session, 1, &[("a", 1)]).await;
            assert_eq!(lines(&server.workspace(session).join("a")), usize::from(allowed));
        }
        quiet(&server).await;
        server.stop().await;
    });
}

#[test]
fn a_turn_that_is_queued_while_the_first_one_ends_is_never_forgotten() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(6);
        for _ in 0..60 {
            let session = server.session().await.id;
            server.turn(session, "/say one").await;
            dice.pause(6000).await;
            server.enqueue(session, "/say two").await;
            let ended = settled(&server, session, 2, &[]).await;
            assert_eq!(ended, [TurnStatus::Completed; 2]);
        }
        quiet(&server).await;
        server.stop().await;
    });
}

#[test]
fn a_message_that_takes_its_place_at_any_moment_ends_the_old_turn_once_and_begins_the_new_one() {
    on_both(async |place| {
        let server = place.start().await;
        let play = async |seed| {
            let mut dice = Dice(seed);
            for (on_busy, old) in [
                (OnBusy::Interrupt, TurnStatus::Interrupted),
                (OnBusy::Rollback, TurnStatus::RolledBack),
            ] {
                let session = server.session().await.id;
                let script = format!("{}\n{}\n/then\n/say one", mark("a"), guarded("b"));
                server.turn(session, &script).await;
                server.enqueue(session, "/say last").await;
                dice.pause(60_000).await;
                let new = NewTurn {
                    on_busy,
                    ..new_turn("/say two")
                };
                server.engine.create_turn(&server.scope, session, new).await.unwrap();
                let ended = settled(&server, session, 3, &[("a", 1), ("b", 0)]).await;
                assert_eq!(ended, [old, TurnStatus::Completed, TurnStatus::Completed]);
                assert!(pending(&server, session).await.is_empty(), "nothing pends");
            }
        };
        futures::future::join_all((200..212).map(play)).await;
        quiet(&server).await;
        server.stop().await;
    });
}

#[test]
fn a_cancel_at_the_end_is_either_before_it_or_after_it() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(7);
        for _ in 0..60 {
            let session = server.session().await.id;
            let turn = server.turn(session, "/say one").await.turn;
            let queued = server.enqueue(session, "/say two").await.turn;
            dice.pause(5000).await;
            let told = server
                .engine
                .cancel_turn(&server.scope, session, turn.id)
                .await
                .unwrap();
            let ended = settled(&server, session, 2, &[]).await;
            if told.status.is_terminal() {
                assert_eq!(ended[0], told.status);
            }
            assert_eq!(ended[1], TurnStatus::Completed);
            let again = server
                .engine
                .cancel_turn(&server.scope, session, queued.id)
                .await
                .unwrap();
            assert_eq!(again.status, TurnStatus::Completed, "what is over stays as it is");
        }
        quiet(&server).await;
        server.stop().await;
    });
}

#[test]
fn a_takeover_beside_the_owners_commits_repeats_nothing() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(8);
        for _ in 0..12 {
            let session = server.session().await.id;
            let script = format!("{}\n{}\n/then\n{}\n/then\n/say done", mark("a"), mark("b"), mark("c"));
            let turn = server.turn(session, &script).await.turn;
            for _ in 0..2 {
                dice.pause(60_000).await;
                let Some(epoch) = epoch(&server, session, turn.id).await else {
                    break;
                };
                dice.pause(3000).await;
                server
                    .engine
                    .take_over(server.scope.tenant(), session, turn.id, epoch)
                    .await
                    .unwrap();
            }
            let ended = settled(&server, session, 1, &[("a", 1), ("b", 1), ("c", 1)]).await;
            assert_eq!(ended, [TurnStatus::Completed]);
        }
        quiet(&server).await;
        server.stop().await;
    });
}

/// The epoch of a turn that runs.
async fn epoch(server: &Server, session: SessionId, turn: TurnId) -> Option<i64> {
    let read = server
        .scope
        .read(move |mut rows| Box::pin(async move { rows.turn(session, turn).await }));
    let record = read.await.unwrap().unwrap();
    (record.status == TurnStatus::Running).then_some(record.epoch)
}

#[test]
fn an_answer_at_the_moment_of_expiry_wins_or_is_refused_and_nothing_hangs() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(9);
        // Side by side, since each takes a second.
        let mut rounds = Vec::new();
        for round in 0..16 {
            let on_expiry = if round % 2 == 0 { OnExpiry::Deny } else { OnExpiry::Halt };
            let session = expiring_session(&server, on_expiry).await;
            server
                .turn(session, &format!("{}\n/then\n/say done", guarded("a")))
                .await;
            let approval = asked(&server, session).await;
            rounds.push((session, approval, dice.pause(30_000), on_expiry));
        }
        let server = &server;
        let play = async |(session, approval, pause, on_expiry): (SessionId, Approval, _, OnExpiry)| {
            let due = approval.expires_at.unwrap();
            server.engine.clock().sleep_until(due.after(Duration::ZERO)).await;
            std::pin::pin!(pause).await;
            let lost = refused(
                server
                    .engine
                    .decide(&server.scope, approval.id, answer(Choice::Once))
                    .await,
            );
            let ended = settled(server, session, 1, &[("a", 1)]).await;
            let ran = lines(&server.workspace(session).join("a"));
            match lost {
                None => assert_eq!((ended[0], ran), (TurnStatus::Completed, 1)),
                Some(code) => {
                    assert_eq!(code, ProblemCode::ApprovalExpired);
                    let end = if on_expiry == OnExpiry::Halt {
                        TurnStatus::Cancelled
                    } else {
                        TurnStatus::Completed
                    };
                    assert_eq!((ended[0], ran), (end, 0));
                }
            }
        };
        futures::future::join_all(rounds.into_iter().map(play)).await;
        quiet(server).await;
    });
}
