//! Opening: the lock, the files, starting again, starting together.

use std::os::unix::fs::PermissionsExt;

use futures::future::join_all;

use super::super::StoreOptions;
use super::super::node::Node;
use super::*;

#[tokio::test]
async fn a_second_opener_of_the_same_file_is_refused_by_name() {
    let bench = Bench::sqlite(None).await;
    let Err(error) = Store::open(bench.options.clone()).await else {
        panic!("opened twice")
    };
    assert!(matches!(error, StoreError::Locked { holder: Some(pid), .. } if pid == std::process::id()));
    let message = error.to_string();
    assert!(
        message.contains("hermes.db.lock") && message.contains("is in use by another process"),
        "{message}"
    );

    bench.store.close().await;
    Store::open(bench.options.clone()).await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_dropped_without_closing_lets_the_lock_go() {
    let Bench { store, options, dir } = Bench::sqlite(None).await;
    drop(store);
    // The writer's task ends by itself; nothing tells when.
    let reopened = async {
        while Store::open(options.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), reopened)
        .await
        .unwrap();
    drop(dir);
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    on_both(async |bench| {
        write(&bench.store, "kept").await.unwrap();
        bench.store.close().await;
        let again = Store::open(bench.options.clone()).await.unwrap();
        assert_eq!(names(&again).await, ["kept"]);
        again.close().await;
    })
    .await;
}

#[tokio::test]
async fn several_processes_may_start_together_on_postgres() {
    on_postgres(async |bench| {
        let mut raw = bench.raw_postgres().await;
        sqlx::raw_sql("drop schema public cascade; create schema public")
            .execute(&mut raw)
            .await
            .unwrap();
        let opened = join_all((0..4).map(|_| Store::open(bench.options.clone()))).await;
        for store in opened {
            store.unwrap().close().await;
        }
    })
    .await;
}

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    let bench = Bench::sqlite(None).await;
    let nested = bench.dir.path().join("data").join("deep").join("hermes.db");
    let options = StoreOptions {
        target: Target::Sqlite { path: nested.clone() },
        ..bench.options.clone()
    };
    let store = Store::open(options).await.unwrap();
    write(&store, "something").await.unwrap();
    let folder = nested.parent().unwrap();
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(
            entry.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "{:?}",
            entry.path()
        );
        files += 1;
    }
    // The database, its log, the log's index, the lock.
    assert_eq!(files, 4);
}

#[tokio::test]
async fn a_data_directory_keeps_its_identity_for_one_process_at_a_time() {
    let bench = Bench::sqlite(None).await;
    let clock = bench.store.clock();
    let node = Node::claim(bench.dir.path(), clock).unwrap();
    assert!(matches!(
        Node::claim(bench.dir.path(), clock),
        Err(StoreError::Locked { .. })
    ));
    let id = node.id();
    drop(node);
    assert_eq!(Node::claim(bench.dir.path(), clock).unwrap().id(), id);

    std::fs::write(bench.dir.path().join("node-id"), "ses_nonsense").unwrap();
    assert!(matches!(
        Node::claim(bench.dir.path(), clock),
        Err(StoreError::Corrupt { .. })
    ));
}
