//! The store fails in the middle of a turn: the disk is full, another program
//! holds the file, the database server dies and comes back. Within the time
//! that commits are retried the turn goes on as if nothing had happened;
//! beyond it the turn fails with what was there kept, and nothing unrecorded
//! was ever executed.

mod cluster;
mod told;

use std::time::Duration;

use cluster::Cluster;
use hermes_server::live::cursor::Cursor;
use hermes_server::model::call::CallStatus;
use hermes_server::model::event::EventBody;
use hermes_server::model::id::{SessionId, TurnId};
use hermes_server::model::message::text_of;
use hermes_server::model::problem::ProblemCode;
use hermes_server::model::record::TurnRecord;
use hermes_server::model::turn::{StopReason, TurnStatus};
use hermes_server::store::{StoreError, Wall};
use hermes_server::turn::requests::{CreateSession, EngineError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Executor};

use crate::harness::script::{check_log, check_transcript, mark, terminal, terminal_events};
use crate::harness::{PATIENCE, Place, Server, lines, until};

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(test);
}

/// The turn's record once it is over, however often the store cannot be read.
async fn ended(server: &Server, session: SessionId, turn: TurnId) -> TurnRecord {
    let over = async {
        loop {
            let mut bell = server.engine.store().bell().subscribe(session);
            let read = server
                .scope
                .read(move |mut rows| Box::pin(async move { rows.turn(session, turn).await }));
            if let Ok(Some(record)) = read.await
                && record.status.is_terminal()
            {
                return record;
            }
            let _rung = tokio::time::timeout(Duration::from_millis(100), bell.changed()).await;
        }
    };
    tokio::time::timeout(PATIENCE, over).await.expect("the turn ends")
}

/// What must hold whatever failed.
async fn check(server: &Server, session: SessionId) {
    check_transcript(&server.messages(session).await);
    let log = server.log(session).await;
    check_log(&log);
    assert_eq!(terminal_events(&log), 1);
    assert!(server.is_left().await, "no turn runs");
}

fn ran(server: &Server, session: SessionId) -> [usize; 2] {
    ["a", "b"].map(|name| lines(&server.workspace(session).join(name)))
}

/// A command whose result does not fit into what is left of a full disk, and
/// one that may start only after that result is stored.
fn two_commands() -> String {
    let first = "echo begun; sleep 0.5; head -c 30000 /dev/zero | tr '\\0' x; echo ran >> a";
    format!("{}\n{}\n/then\n/say done", terminal(first), mark("b"))
}

fn is_output(body: &EventBody) -> bool {
    matches!(body, EventBody::ToolCallOutputDelta(_))
}

async fn pages(server: &Server, sql: &'static str) {
    let write = server.engine.store().write(Wall::Across, "test", move |conn| {
        Box::pin(async move { conn.rows(sql, &[]).await.map(|_| ()) })
    });
    write.await.unwrap();
}

/// From now on the database cannot grow.
async fn fill_disk(server: &Server) {
    pages(server, "pragma max_page_count = 1").await;
}

async fn free_disk(server: &Server) {
    pages(server, "pragma max_page_count = 1000000").await;
}

#[test]
fn a_full_disk_that_is_freed_in_time_is_not_noticed() {
    block_on(async {
        let place = Place::sqlite();
        let server = place.start().await;
        let session = server.session().await.id;
        let mut viewer = server.follow(session, None, Cursor::default());
        let turn = server.turn(session, &two_commands()).await.turn;
        until(&mut viewer, is_output).await;
        fill_disk(&server).await;
        tokio::time::sleep(Duration::from_millis(1200)).await;
        assert_eq!(
            ran(&server, session),
            [1, 0],
            "the first result is not stored, so the second waits"
        );
        free_disk(&server).await;
        let record = ended(&server, session, turn.id).await;
        assert_eq!(record.status, TurnStatus::Completed);
        assert_eq!(ran(&server, session), [1, 1]);
        check(&server, session).await;
        server.stop().await;
    });
}

#[test]
fn a_disk_that_stays_full_for_too_long_fails_the_turn_and_keeps_its_results() {
    block_on(async {
        let mut place = Place::sqlite();
        place.config.store.retry = Duration::from_secs(1);
        let server = place.start().await;
        let session = server.session().await.id;
        let mut viewer = server.follow(session, None, Cursor::default());
        let turn = server.turn(session, &two_commands()).await.turn;
        until(&mut viewer, is_output).await;
        fill_disk(&server).await;
        // Whoever asks for something meanwhile is told so at once.
        let big = format!("/say {}", "x".repeat(60_000));
        let other = server.engine.create_session(
            &server.scope,
            CreateSession {
                instructions: Some(big),
                ..crate::harness::new_session()
            },
        );
        assert!(matches!(
            other.await,
            Err(EngineError::Store(StoreError::Unavailable(_)))
        ));
        tokio::time::sleep(Duration::from_millis(2500)).await;
        free_disk(&server).await;
        let record = ended(&server, session, turn.id).await;
        failed_with_results_kept(&server, session, &record).await;
        server.stop().await;
    });
}

/// `turn.failed store_unavailable`; the first call's result is there, the
/// second never ran.
async fn failed_with_results_kept(server: &Server, session: SessionId, record: &TurnRecord) {
    assert_eq!(record.status, TurnStatus::Failed);
    assert_eq!(record.stop_reason, Some(StopReason::StoreUnavailable));
    assert_eq!(
        record.error.as_ref().map(|error| error.code),
        Some(ProblemCode::StoreUnavailable)
    );
    let messages = server.messages(session).await;
    let calls: Vec<CallStatus> = messages[1].tool_calls.iter().map(|call| call.status).collect();
    assert_eq!(calls, [CallStatus::Succeeded, CallStatus::Cancelled]);
    assert!(text_of(&messages[2].content).contains("begun"));
    assert_eq!(ran(server, session), [1, 0]);
    check(server, session).await;
}

#[test]
fn fc_067_a_lock_that_another_program_holds_for_a_while_is_waited_for() {
    block_on(async {
        let place = Place::sqlite();
        let server = place.start().await;
        let session = server.session().await.id;
        let url = place.config.store.url_in(&place.config.server.data_dir);
        let path = url.expose().strip_prefix("sqlite:").unwrap().to_owned();
        let mut other = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
        other.execute("begin immediate").await.unwrap();
        let began = tokio::time::Instant::now();
        let hold = async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            other.execute("rollback").await.unwrap();
        };
        let script = mark("a");
        let (created, ()) = tokio::join!(server.try_turn(session, &script), hold);
        let turn = created.unwrap().turn;
        assert!(Duration::from_millis(1400) < began.elapsed(), "the lock was held");
        assert_eq!(ended(&server, session, turn.id).await.status, TurnStatus::Completed);
        assert_eq!(ran(&server, session), [1, 0]);
        check(&server, session).await;
        server.stop().await;
    });
}

/// The driver tries to connect for five seconds before it gives up, so a longer
/// outage than that is needed to use up a short time of retrying.
///
/// A turn whose database server dies at once when the first event comes that
/// `picks`, and stays away for `outage`.
#[allow(clippy::print_stderr, reason = "says what was not tested")]
async fn outage(
    script: &str,
    picks: fn(&EventBody) -> bool,
    retry: Duration,
    outage: Duration,
    then: impl AsyncFn(&Server, SessionId, TurnRecord),
) {
    let Some(cluster) = Cluster::start() else {
        eprintln!("skipped: no PostgreSQL server binaries (HERMES_TEST_PG_BIN)");
        return;
    };
    let mut place = Place::on_postgres(&cluster.url()).await;
    place.config.store.retry = retry;
    place.config.lease.duration = Duration::from_secs(30);
    let server = place.start().await;
    let session = server.session().await.id;
    let mut viewer = server.follow(session, None, Cursor::default());
    let turn = server.turn(session, script).await.turn;
    until(&mut viewer, picks).await;
    drop(viewer);
    cluster.stop();
    tokio::time::sleep(outage).await;
    cluster.go_on();
    let record = ended(&server, session, turn.id).await;
    then(&server, session, record).await;
    server.stop().await;
}

#[test]
fn a_database_that_restarts_while_a_command_runs_is_waited_for() {
    let retry = Duration::from_secs(20);
    block_on(outage(
        &two_commands(),
        is_output,
        retry,
        Duration::from_millis(1500),
        async |server, session, record| {
            assert_eq!(record.status, TurnStatus::Completed, "{:?}", record.error);
            assert_eq!(ran(server, session), [1, 1]);
            check(server, session).await;
        },
    ));
}

#[test]
fn a_database_that_restarts_while_the_model_answers_is_waited_for() {
    let streams = |body: &EventBody| matches!(body, EventBody::MessageDelta(_));
    let retry = Duration::from_secs(20);
    block_on(outage(
        "/tokens 60 80",
        streams,
        retry,
        Duration::from_millis(1200),
        async |server, session, record| {
            assert_eq!(record.status, TurnStatus::Completed, "{:?}", record.error);
            let messages = server.messages(session).await;
            assert!(text_of(&messages[1].content).trim_end().ends_with("word60"));
            check(server, session).await;
        },
    ));
}

#[test]
fn a_database_that_stays_away_for_too_long_fails_the_turn_and_keeps_its_results() {
    let retry = Duration::from_secs(1);
    block_on(outage(
        &two_commands(),
        is_output,
        retry,
        Duration::from_millis(6500),
        async |server, session, record| {
            failed_with_results_kept(server, session, &record).await;
        },
    ));
}
