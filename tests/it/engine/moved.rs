//! Places that moved and pages that are cut short.

use super::*;

/// The embedded store lies in the data directory itself, so only Postgres can
/// outlive one.
#[test]
fn a_turn_whose_data_directory_is_gone_is_given_up_and_the_session_goes_on() {
    on_both(async |mut place| {
        if !place.is_postgres() {
            return;
        }
        place.config.lease.duration = std::time::Duration::from_secs(1);
        let server = place.start().await;
        let session = server.session().await.id;
        let turn = server.turn(session, "/tokens 5 5\n/sleep 60000").await.turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::MessageDelta(_)))
            .await;
        server.crash().await;
        place.config.server.data_dir = place.directory.join("another");
        let server = place.start().await;
        let frames = server.frames(session, turn.id).await;
        let EventBody::TurnFailed(failed) = &frames.last().unwrap().event.body else {
            panic!("{:?}", names(&frames))
        };
        assert_eq!(failed.turn.error.as_ref().unwrap().code, ProblemCode::EnvironmentLost);
        let next = server.turn(session, &mark("a")).await.turn;
        assert_eq!(
            names(&server.frames(session, next.id).await).last().unwrap(),
            "turn.completed"
        );
        let ran = lines(&server.workspace(session).join("a"));
        assert_eq!(ran, 1, "{:?}", server.messages(session).await);
        server.stop().await;
    });
}

#[test]
fn an_answer_for_a_place_that_moved_is_superseded_and_asked_anew() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let moving = terminal("rm -rf nothing; mkdir sub && cd sub");
        let turn = server
            .turn(session, &format!("{moving}\n{}\n/then\n/say done", guarded("a")))
            .await
            .turn;
        server
            .wait_for(session, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let first = pending(&server, session).await;
        assert_eq!(first.len(), 2);
        // The second is allowed for the place that was shown; the first moves.
        for approval in first.iter().rev() {
            server
                .engine
                .decide(&server.scope, approval.id, answer(Choice::Once))
                .await
                .unwrap();
        }
        server
            .wait_for(session, |body| matches!(body, EventBody::ApprovalSuperseded(_)))
            .await;
        let again = pending(&server, session).await;
        assert_eq!(again.len(), 1, "asked anew");
        assert_ne!(again[0].digest, first[1].digest);
        assert!(again[0].cwd.as_deref().unwrap().ends_with("/sub"), "{:?}", again[0].cwd);
        assert_eq!(
            lines(&server.workspace(session).join("sub/a")),
            0,
            "not run on the old answer"
        );
        server
            .engine
            .decide(&server.scope, again[0].id, answer(Choice::Once))
            .await
            .unwrap();
        server.frames(session, turn.id).await;
        assert_eq!(lines(&server.workspace(session).join("sub/a")), 1);
        check_transcript(&server.messages(session).await);
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn large_inputs_make_short_pages_and_nobody_misses_an_event() {
    on_both(async |place| {
        let server = place.start().await;
        let session = server.session().await.id;
        let input = format!("/say ok\n{}", "x".repeat(4_000_000));
        for _ in 0..3 {
            let turn = server.turn(session, &input).await.turn;
            server
                .wait_for(
                    session,
                    |body| matches!(body, EventBody::TurnCompleted(data) if data.turn.id == turn.id),
                )
                .await;
        }
        let head = server.session_now(session).await.head_seq;
        let mut seen: Vec<i64> = Vec::new();
        loop {
            let after = seen.last().copied().unwrap_or(0);
            let read = server
                .scope
                .read(move |mut rows| Box::pin(async move { rows.events(session, None, after, 200).await }));
            let page = read.await.unwrap().unwrap();
            assert!(
                page.items.len() <= 8,
                "{} events of megabytes at once",
                page.items.len()
            );
            seen.extend(page.items.iter().map(|event| event.seq));
            if !page.cut {
                break;
            }
        }
        assert_eq!(seen, (1..=head).collect::<Vec<_>>());
        let mut viewer = server.follow(session, None, Cursor::default());
        let last = crate::harness::until(
            &mut viewer,
            |body| matches!(body, EventBody::SessionStatus(data) if data.session.head_seq == head),
        )
        .await;
        assert_eq!(last.last().unwrap().event.seq, head);
        let read = server
            .scope
            .read(move |mut rows| Box::pin(async move { rows.messages(session, -1, 200).await }));
        let page = read.await.unwrap();
        assert!(page.cut && page.items.len() < 6, "{}", page.items.len());
        server.stop().await;
    });
}
