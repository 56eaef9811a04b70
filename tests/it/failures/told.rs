//! What clients hear while the database is away: who waits for a turn gets 503,
//! a stream ends, and both find the turn again afterwards.

use std::time::Duration;

use hermes_server::model::principal::Scope;
use serde_json::json;

use super::block_on;
use super::cluster::Cluster;
use crate::harness::{PATIENCE, Place};

#[test]
#[allow(clippy::print_stderr, reason = "says what was not tested")]
fn who_waits_and_who_watches_is_told_that_the_database_is_away() {
    let Some(cluster) = Cluster::start() else {
        eprintln!("skipped: no PostgreSQL server binaries (HERMES_TEST_PG_BIN)");
        return;
    };
    block_on(async {
        let mut place = Place::on_postgres(&cluster.url()).await;
        place.config.server.heartbeat = Duration::from_secs(2);
        place.config.lease.duration = Duration::from_secs(60);
        let web = place.serve().await;
        let client = web.user("operator", &[Scope::Admin]).await;
        let session = client.post("/v1/sessions", &json!({})).await.expect(201);
        let session = session["id"].as_str().unwrap();
        let mut events = client.stream(&web, &format!("/v1/sessions/{session}/stream")).await;
        let path = format!("/v1/sessions/{session}/turns?wait=60");
        let input = json!({"input": "/say begun\n/sleep 15000"});
        let away = async {
            events.until("message.delta").await;
            cluster.stop();
            let end = async { while events.next().await.is_some() {} };
            tokio::time::timeout(PATIENCE, end).await.expect("the stream ends");
        };
        let (answer, ()) = tokio::join!(client.post(&path, &input), away);
        answer.problem(503, "store_unavailable");
        cluster.go_on();
        web.stop().await;
    });
}
