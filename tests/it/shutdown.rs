//! The end of a server: whatever was under way, no task outlives it.

use std::time::Duration;

use hermes_server::live::cursor::Cursor;
use hermes_server::model::event::EventBody;
use tokio::runtime::Handle;

use crate::harness::script::{guarded, terminal};
use crate::harness::{PATIENCE, on_both};

#[test]
fn after_shutdown_no_task_is_left() {
    on_both(async |place| {
        let before = Handle::current().metrics().num_alive_tasks();
        let server = place.start().await;
        let parked = server.session().await.id;
        server.turn(parked, &guarded("a")).await;
        server
            .wait_for(parked, |body| matches!(body, EventBody::TurnWaiting(_)))
            .await;
        let busy = server.session().await.id;
        server.turn(busy, &terminal("echo begun; sleep 60")).await;
        server
            .wait_for(busy, |body| matches!(body, EventBody::ToolCallOutputDelta(_)))
            .await;
        let writing = server.session().await.id;
        server.turn(writing, "/tokens 100000 100").await;
        server
            .wait_for(writing, |body| matches!(body, EventBody::MessageDelta(_)))
            .await;
        let viewer = server.follow(writing, None, Cursor::default());

        let stopped = tokio::time::timeout(PATIENCE, server.app.shutdown(Duration::from_millis(100)));
        stopped
            .await
            .expect("a shutdown does not wait for turns beyond its grace");
        drop(viewer);
        // The pool's own housekeeping ends a moment after the pool.
        let gone = async {
            while before < Handle::current().metrics().num_alive_tasks() {
                tokio::task::yield_now().await;
            }
        };
        let left = tokio::time::timeout(PATIENCE, gone).await;
        assert!(
            left.is_ok(),
            "{} tasks are left",
            Handle::current().metrics().num_alive_tasks() - before
        );
    });
}
