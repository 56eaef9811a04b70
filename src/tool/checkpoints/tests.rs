//! Checkpoints of a workspace without a server around them: calls that run
//! together, and what stands in the way.

use std::fs;

use serde_json::json;

use super::*;
use crate::base::Id;
use crate::tool::testing::Bench;

async fn host(bench: &Bench) -> Arc<Host> {
    let mut settings = bench.settings();
    settings.checkpoints.enabled = true;
    Arc::new(Host::open(settings).await.unwrap())
}

fn moment(bench: &Bench, answer: u128) -> Moment {
    Moment {
        tenant: bench.tenant,
        home: bench.session,
        session: bench.session,
        turn: Id::from_bits(1),
        answer: Id::from_bits(answer),
        call: Id::from_bits(2),
        tool: "write_file".to_owned(),
        is_due: true,
    }
}

#[test]
fn which_calls_could_take_something_away_is_read_off_their_words() {
    for (tool, arguments, due) in [
        ("write_file", json!({}), true),
        ("patch", json!({}), true),
        ("terminal", json!({"command": "rm -rf x"}), true),
        ("terminal", json!({"command": "echo a > b"}), true),
        ("terminal", json!({"command": "ls"}), false),
        ("terminal", json!({"command": 5}), false),
        ("read_file", json!({"path": "rm -rf x"}), false),
    ] {
        assert_eq!(is_due(tool, &arguments), due, "{tool} {arguments}");
    }
}

#[tokio::test]
async fn calls_of_one_answer_that_start_together_have_one_and_none_starts_before_it() {
    let bench = Bench::new().await;
    let (host, clock) = (host(&bench).await, Clock::system());
    let root = bench.workspace().await.root().to_owned();
    let calls = (0..8).map(|number| {
        let ahead = ahead(Arc::clone(&host), clock.clone(), moment(&bench, 1));
        let path = root.join(format!("{number}"));
        async move {
            let held = ahead.await;
            fs::write(path, "x").unwrap();
            held
        }
    });
    let held = futures::future::join_all(calls).await;
    assert!(held.iter().all(Option::is_some));
    let all = host.checkpoints().list(bench.tenant, bench.session).await.unwrap();
    let [only] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((only.state, only.files), (CheckpointState::Complete, 0));
    // While one of them runs nothing is put back.
    let place = (bench.tenant, bench.session);
    let busy = restore(&host, &clock, place, only.id).await;
    assert!(matches!(busy, Err(RestoreError::Busy)), "{busy:?}");
    drop(held);
    let restored = restore(&host, &clock, place, only.id).await.unwrap();
    assert_eq!((restored.removed, fs::read_dir(&root).unwrap().count()), (8, 0));
}

#[tokio::test]
async fn a_call_runs_where_no_checkpoint_can_be_made() {
    let bench = Bench::new().await;
    let (host, clock) = (host(&bench).await, Clock::system());
    let data = bench.settings().data_dir;
    fs::write(data.join("checkpoints"), "in the way").unwrap();
    let gone = ahead(Arc::clone(&host), clock.clone(), moment(&bench, 1)).await;
    assert!(gone.is_none());
    fs::remove_file(data.join("checkpoints")).unwrap();
    // Where its content should lie something else does.
    let own = data
        .join("checkpoints")
        .join(bench.tenant.to_string())
        .join(bench.session.to_string());
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("held"), "in the way").unwrap();
    assert!(
        ahead(Arc::clone(&host), clock.clone(), moment(&bench, 2))
            .await
            .is_some()
    );
    let all = host.checkpoints().list(bench.tenant, bench.session).await.unwrap();
    assert_eq!((all.len(), all[0].state), (1, CheckpointState::Skipped));
    assert!(all[0].reason.as_deref().unwrap().contains("no room"));
}

#[tokio::test]
async fn calls_of_a_session_without_checkpoints_hold_nothing() {
    let bench = Bench::new().await;
    let clock = Clock::system();
    assert!(
        ahead(Arc::clone(&bench.host), clock.clone(), moment(&bench, 1))
            .await
            .is_none()
    );
    assert!(!bench.settings().data_dir.join("checkpoints").exists());
    let host = host(&bench).await;
    let reads = Moment {
        is_due: false,
        ..moment(&bench, 1)
    };
    assert!(ahead(Arc::clone(&host), clock.clone(), reads.clone()).await.is_none());
    ahead(Arc::clone(&host), clock.clone(), moment(&bench, 1))
        .await
        .unwrap();
    // From then on files may be put back, also where no more are kept.
    assert!(ahead(Arc::clone(&bench.host), clock, reads).await.is_some());
}
