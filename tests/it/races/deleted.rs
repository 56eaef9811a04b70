//! Approvals that expire, sessions that are deleted, queues that are cancelled and
//! reads that are cut off, beside everything else.

use super::*;

#[test]
fn a_session_that_is_deleted_while_it_runs_is_gone_without_a_trace() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(10);
        for round in 0..12 {
            let session = server.session().await.id;
            let script = match round % 4 {
                0 => "/sleep 60000".to_owned(),
                1 => terminal("sleep 60"),
                2 => guarded("a"),
                _ => "/say hi".to_owned(),
            };
            server.turn(session, &script).await;
            server.enqueue(session, "/say never").await;
            dice.pause(30_000).await;
            server.engine.delete_session(&server.scope, session).await.unwrap();
            assert!(matches!(
                server.try_turn(session, "/say no").await,
                Err(EngineError::NotFound(_))
            ));
            let purged = async {
                while rows_of(&server, session).await {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, purged)
                .await
                .expect("the rows of a deleted session go");
            assert!(!server.workspace(session).exists());
        }
        quiet(&server).await;
        server.stop().await;
    });
}

#[test]
fn an_idle_session_that_is_deleted_is_purged_at_once() {
    on_both(async |place| {
        let server = place.start().await;
        // The first may be found by chance, at the start.
        for _ in 0..3 {
            let session = server.session().await.id;
            server.engine.delete_session(&server.scope, session).await.unwrap();
            let purged = async {
                while rows_of(&server, session).await {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, purged)
                .await
                .expect("the rows of a deleted session go");
        }
        server.stop().await;
    });
}

#[test]
fn a_deleted_session_whose_owner_died_is_purged_when_another_ends_its_turn() {
    on_both(async |place| {
        // The owner hears of it and dies before it can store the end.
        let ends = |label| matches!(label, "end" | "results");
        let mute = probe(move |label| if ends(label) { Fate::FailBefore } else { Fate::Go });
        let server = place.start_probed(mute).await;
        let session = server.session().await.id;
        let turn = server.turn(session, &terminal("sleep 60")).await.turn.id;
        server
            .wait_for(session, |body| matches!(body, EventBody::ToolCallStarted(_)))
            .await;
        server.engine.delete_session(&server.scope, session).await.unwrap();
        server.crash().await;
        let server = place.start().await;
        let purged = async {
            while rows_of(&server, session).await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, purged)
            .await
            .unwrap_or_else(|_| panic!("the rows of {turn} do not go"));
        server.stop().await;
    });
}

async fn rows_of(server: &Server, session: SessionId) -> bool {
    let read = server
        .scope
        .read(move |mut rows| Box::pin(async move { rows.session_record_even_deleted(session).await }));
    read.await.unwrap().is_some()
}

#[test]
fn a_full_queue_runs_in_order_while_some_of_it_is_cancelled() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(11);
        for _ in 0..3 {
            let session = server.session().await.id;
            let first = server.turn(session, "/sleep 60000\n/say 0").await.turn.id;
            let mut turns = vec![first];
            for number in 1..=16 {
                turns.push(server.enqueue(session, &format!("/say {number}")).await.turn.id);
            }
            let over = server
                .engine
                .create_turn(
                    &server.scope,
                    session,
                    NewTurn {
                        on_busy: OnBusy::Enqueue,
                        ..new_turn("/say too many")
                    },
                )
                .await;
            assert_eq!(refused(over), Some(ProblemCode::QueueFull));
            // Now the queue may move.
            server.engine.cancel_turn(&server.scope, session, first).await.unwrap();
            for turn in turns.iter().skip(1).step_by(3) {
                dice.pause(3000).await;
                server.engine.cancel_turn(&server.scope, session, *turn).await.unwrap();
            }
            settled(&server, session, 17, &[]).await;
            let log = server.log(session).await;
            let begun: Vec<TurnId> = log
                .iter()
                .filter(|event| matches!(event.body, EventBody::TurnStarted(_)))
                .filter_map(|event| event.turn_id)
                .collect();
            assert!(begun.is_sorted(), "in the order they were queued");
        }
        quiet(&server).await;
        server.stop().await;
    });
}

#[test]
fn reads_that_are_cut_off_leave_nothing_stale_behind() {
    on_both(async |place| {
        let server = place.start().await;
        let mut dice = Dice(12);
        for _ in 0..60 {
            // Viewers and owners stop waiting for their reads all the time.
            let session = server.session().await.id;
            for _ in 0..5 {
                cut_off(server.log(session), Duration::from_micros(dice.roll(900))).await;
            }
            let made = server.session().await.id;
            let looks = (0..12).map(|_| rows_of(&server, made));
            let seen = futures::future::join_all(looks).await;
            assert!(seen.iter().all(|seen| *seen), "a read looked into the past: {seen:?}");
        }
        server.stop().await;
    });
}

/// Polls a future for a while, finer than timers are, and drops it.
async fn cut_off(future: impl Future, span: Duration) {
    let until = tokio::time::Instant::now() + span;
    let mut future = std::pin::pin!(future);
    while tokio::time::Instant::now() < until && futures::poll!(&mut future).is_pending() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn an_approval_expires_on_time_without_anybody_looking() {
    on_both(async |place| {
        let server = place.start().await;
        for _ in 0..3 {
            let session = expiring_session(&server, OnExpiry::Deny).await;
            server
                .turn(session, &format!("{}\n/then\n/say done", guarded("a")))
                .await;
            let due = asked(&server, session).await.expires_at.unwrap();
            settled(&server, session, 1, &[("a", 0)]).await;
            let late = server.engine.clock().now().since(due);
            assert!(late < Duration::from_secs(2), "{late:?} late");
        }
        server.stop().await;
    });
}
