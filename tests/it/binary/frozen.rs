//! A server that stands still for longer than its lease, and wakes.

use hermes_server::model::principal::Scope;
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::{Connection, Executor};

use super::program::{Program, child_runs, lasting, mark, through};
use crate::harness::client::Client;
use crate::harness::{Place, on_both};

/// A lease lasts 10 s at the least: they end now, as if that time were over.
async fn end_leases(place: &Place) {
    let url = place.config.store.url.as_ref().unwrap();
    let mut link = sqlx::PgConnection::connect(url.expose()).await.unwrap();
    let ended = link.execute("update process set expires_at = 0").await.unwrap();
    assert_eq!(ended.rows_affected(), 1);
    link.close().await.unwrap();
}

async fn log(client: &Client, session: &str) -> Value {
    client
        .get(&format!("/v1/sessions/{session}/events?limit=200"))
        .await
        .expect(200)
}

#[test]
fn fc_062_what_a_frozen_server_held_goes_on_elsewhere_and_its_waking_changes_nothing() {
    on_both(|place| async move {
        if !place.is_postgres() {
            // Nobody else can open the embedded database.
            return;
        }
        let shared = [("HERMES__SERVER__DATA_DIR_SHARED", "true")];
        let program = Program::start_with(&place, &shared).await;
        let session = program.session().await;
        let mut events = program.follow(&session, "0.0").await;
        let mark = mark(&place);
        let command = json!({"command": format!("echo ran >> runs; {}", lasting(&mark))});
        program
            .turn(&session, &format!("/tool terminal {command}\n/then\n/say went on"))
            .await;
        through(&mut events, "tool_call.output_delta").await;
        let input = child_runs(&place, &session, &mark).await;
        program.signal(Signal::STOP);
        end_leases(&place).await;

        let mut second = Place::sqlite();
        second.config.store.url = place.config.store.url.clone();
        second.config.server.data_dir_shared = true;
        let other = second.serve().await;
        let client = other.user("operator", &[Scope::Admin]).await;
        let mut events = client.stream(&other, &format!("/v1/sessions/{session}/stream")).await;
        let frames = through(&mut events, "turn.completed").await;
        let told = |event: &str| frames.iter().any(|frame| frame.event == event);
        assert!(told("turn.resumed") && told("tool_call.unknown"), "{frames:?}");
        let path = format!("/v1/sessions/{session}/turns?wait=20");
        let taken = client.post(&path, &json!({"input": "/say again"})).await.expect(200);
        assert_eq!(taken["turn"]["status"], "completed");

        let before = log(&client, &session).await;
        program.signal(Signal::CONT);
        // Its command ends, it would store the result; then it is told to go.
        drop(input);
        program.stop().await;
        assert_eq!(log(&client, &session).await, before);
        other.stop().await;
    });
}
