//! A process that cannot renew its lease, on a database that others could reach.

use std::time::Duration;

use hermes_server::live::cursor::Cursor;
use hermes_server::model::event::EventBody;
use sqlx::{Connection, Executor, Row};

use crate::harness::script::{check_log, terminal};
use crate::harness::{names, on_both, until};

/// A connection that keeps everybody else from writing the row of the process.
async fn hold_the_row(url: &str) -> sqlx::PgConnection {
    let mut link = sqlx::PgConnection::connect(url).await.unwrap();
    link.execute("begin").await.unwrap();
    let rows = link
        .fetch_all("select process_id from process for update")
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    link
}

#[test]
fn a_process_that_cannot_renew_its_lease_ends_its_commands_before_the_lease_ends() {
    on_both(async |mut place| {
        let Some(url) = place.config.store.url.clone() else {
            // Nobody else can open the embedded database.
            return;
        };
        place.config.lease.duration = Duration::from_secs(4);
        let server = place.start().await;
        let session = server.session().await.id;
        let mut viewer = server.follow(session, None, Cursor::default());
        server.turn(session, &terminal("echo begun; sleep 300")).await;
        until(&mut viewer, |body| matches!(body, EventBody::ToolCallOutputDelta(_))).await;
        let mut link = hold_the_row(url.expose()).await;
        until(&mut viewer, |body| matches!(body, EventBody::ToolCallCancelled(_))).await;
        let left = "select expires_at - (extract(epoch from clock_timestamp()) * 1000)::bigint as ms from process";
        let left: i64 = link.fetch_one(left).await.unwrap().get("ms");
        assert!(0 < left, "the lease ended {} ms before the command", -left);
        // With the lease in force again the turn goes on by itself.
        link.execute("rollback").await.unwrap();
        until(&mut viewer, |body| matches!(body, EventBody::TurnCompleted(_))).await;
        check_log(&server.log(session).await);
        server.stop().await;
    });
}

#[test]
fn a_process_that_was_declared_dead_lets_go_once_and_is_then_one_of_the_living() {
    on_both(async |mut place| {
        let Some(url) = place.config.store.url.clone() else {
            return;
        };
        place.config.lease.duration = Duration::from_secs(3);
        let server = place.start().await;
        let session = server.session().await.id;
        let mut viewer = server.follow(session, None, Cursor::default());
        let held = "echo begun; until [ -e go ]; do sleep 0.02; done";
        server.turn(session, &terminal(held)).await;
        until(&mut viewer, |body| matches!(body, EventBody::ToolCallOutputDelta(_))).await;
        let mut link = sqlx::PgConnection::connect(url.expose()).await.unwrap();
        let gone = link.execute("delete from process").await.unwrap();
        assert_eq!(gone.rows_affected(), 1);
        until(&mut viewer, |body| matches!(body, EventBody::TurnCompleted(_))).await;
        // Longer than it takes to renew the lease twice.
        let turn = server.turn(session, "/tokens 25 10").await.turn;
        let frames = server.frames(session, turn.id).await;
        let names = names(&frames);
        assert!(!names.iter().any(|name| name == "turn.resumed"), "{names:?}");
        let living =
            "select process_id from process where (extract(epoch from clock_timestamp()) * 1000)::bigint < expires_at";
        assert_eq!(link.fetch_all(living).await.unwrap().len(), 1);
        server.stop().await;
    });
}
