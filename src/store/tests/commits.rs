//! The commit path: groups, failures inside a group, the probe, callers that go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use futures::future::join_all;
use tokio::sync::oneshot;

use super::*;

/// A job that holds the writer until it is let go.
fn blocker(store: &Store) -> (oneshot::Receiver<()>, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
    let (begun, running) = oneshot::channel();
    let (go, gate) = oneshot::channel();
    let store = store.clone();
    let task = tokio::spawn(async move {
        let work = store.write(Wall::Across, "test", move |_| {
            Box::pin(async move {
                begun.send(()).unwrap();
                gate.await.map_err(|_| StoreError::Lost)
            })
        });
        work.await.unwrap();
    });
    (running, go, task)
}

#[tokio::test]
async fn waiting_writes_share_a_commit_on_sqlite() {
    let bench = Bench::sqlite(None).await;
    let store = &bench.store;
    let (running, go, blocked) = blocker(store);
    running.await.unwrap();

    let texts: Vec<String> = (0..40).map(|number| format!("t{number:02}")).collect();
    let writes = texts.iter().map(|text| write(store, text));
    let mut writes = Box::pin(join_all(writes));
    // One poll puts every write into the queue behind the blocker.
    assert!(futures::poll!(&mut writes).is_pending());
    let before = store.commits();
    go.send(()).unwrap();
    blocked.await.unwrap();
    assert!(writes.await.into_iter().all(|outcome| outcome.is_ok()));
    assert_eq!(
        store.commits() - before,
        2,
        "the blocker's commit and one for all others"
    );
    assert_eq!(names(store).await, texts);
}

/// What SQLite does by itself when a disk fails in the middle of a statement.
#[tokio::test]
async fn when_the_database_drops_a_group_everyone_in_it_is_told_and_the_next_goes_on() {
    let bench = Bench::sqlite(None).await;
    let store = &bench.store;
    let (running, go, blocked) = blocker(store);
    running.await.unwrap();
    let dropped = store.write(Wall::Across, "test", |conn| {
        Box::pin(async move { conn.execute("rollback", &[]).await.map(|_| ()) })
    });
    let mut group = Box::pin(async { tokio::join!(write(store, "before"), dropped, write(store, "after")) });
    assert!(futures::poll!(&mut group).is_pending());
    go.send(()).unwrap();
    blocked.await.unwrap();
    let (before, dropped, after) = group.await;
    assert!(matches!(before, Err(StoreError::Unavailable(_))), "{before:?}");
    assert!(matches!(dropped, Err(StoreError::Unavailable(_))), "{dropped:?}");
    after.unwrap();
    assert_eq!(names(store).await, ["after"]);
}

#[tokio::test]
async fn a_failing_job_spoils_no_other_of_its_group() {
    on_both(async |bench| {
        let store = &bench.store;
        write(store, "taken").await.unwrap();
        let given_up = store.write(Wall::Across, "test", |conn| {
            Box::pin(async move {
                insert(conn, "given up").await?;
                Err::<(), _>(StoreError::Lost)
            })
        });
        let panicking = store.write::<(), _>(Wall::Across, "test", |conn| {
            Box::pin(async move {
                insert(conn, "panicking").await?;
                panic!("a bug in the work")
            })
        });
        let (first, lost, panicked, twice, last) = tokio::join!(
            write(store, "first"),
            given_up,
            panicking,
            write(store, "taken"),
            write(store, "last")
        );
        first.unwrap();
        assert!(matches!(lost, Err(StoreError::Lost)), "{lost:?}");
        assert!(matches!(panicked, Err(StoreError::Database(_))), "{panicked:?}");
        assert!(matches!(twice, Err(StoreError::Unique(_))), "{twice:?}");
        last.unwrap();
        assert_eq!(names(store).await, ["first", "last", "taken"]);
    })
    .await;
}

#[tokio::test]
async fn after_a_failed_statement_the_transaction_is_lost_even_if_the_work_goes_on() {
    on_both(async |bench| {
        write(&bench.store, "taken").await.unwrap();
        let outcome = bench.store.write(Wall::Across, "test", |conn| {
            Box::pin(async move {
                insert(conn, "before").await?;
                assert!(insert(conn, "taken").await.is_err());
                assert!(insert(conn, "after").await.is_err());
                Ok(())
            })
        });
        assert!(matches!(outcome.await, Err(StoreError::Database(_))));
        assert_eq!(names(&bench.store).await, ["taken"]);
    })
    .await;
}

#[tokio::test]
async fn the_probe_decides_how_a_commit_ends() {
    const FATES: [Fate; 4] = [
        Fate::Go,
        Fate::FailBefore,
        Fate::UnclearRolledBack,
        Fate::UnclearCommitted,
    ];
    let next = Arc::new(AtomicU8::new(0));
    let probe: Probe = {
        let next = next.clone();
        Arc::new(move |label| {
            if label == "test" {
                FATES[usize::from(next.load(Ordering::SeqCst))]
            } else {
                Fate::Go
            }
        })
    };
    on_both_probed(Some(probe), async |bench| {
        let mut bell = bench.store.bell().subscribe(session(1));
        let mut seen = Vec::new();
        for (number, fate) in (0u8..).zip(FATES) {
            next.store(number, Ordering::SeqCst);
            let work = bench.store.write(Wall::Across, "test", move |conn| {
                Box::pin(async move {
                    conn.ring(session(1), News::Other);
                    insert(conn, &format!("{number}")).await
                })
            });
            let outcome = work.await;
            let rang = futures::FutureExt::now_or_never(bell.changed()).is_some();
            let told = match outcome {
                Ok(()) => "ok",
                Err(StoreError::Unavailable(_)) => "unavailable",
                Err(StoreError::Unclear(_)) => "unclear",
                Err(other) => panic!("{fate:?}: {other}"),
            };
            seen.push((told, rang));
        }
        assert_eq!(
            seen,
            [
                ("ok", true),
                ("unavailable", false),
                ("unclear", true),
                ("unclear", true)
            ]
        );
        assert_eq!(names(&bench.store).await, ["0", "3"]);
    })
    .await;
}

#[tokio::test]
async fn a_write_runs_to_its_end_when_the_caller_stops_waiting() {
    on_both(async |bench| {
        let mut bell = bench.store.bell().subscribe(session(7));
        let (begun, running) = oneshot::channel();
        let (go, gate) = oneshot::channel();
        let work = bench.store.write(Wall::Across, "test", move |conn| {
            Box::pin(async move {
                begun.send(()).unwrap();
                gate.await.map_err(|_| StoreError::Lost)?;
                conn.ring(session(7), News::Other);
                insert(conn, "kept").await
            })
        });
        {
            let mut work = Box::pin(work);
            tokio::select! {
                _ = &mut work => panic!("ended before it was let go"),
                begun = running => begun.unwrap(),
            }
        }
        go.send(()).unwrap();
        bell.changed().await;
        assert_eq!(names(&bench.store).await, ["kept"]);
    })
    .await;
}

#[tokio::test]
async fn all_statements_of_a_read_see_one_snapshot() {
    on_both(async |bench| {
        let store = bench.store.clone();
        let counts = bench.store.read(Wall::Across, |conn| {
            Box::pin(async move {
                let first = conn.rows("select name from tenant", &[]).await?.len();
                write(&store, "meanwhile").await?;
                Ok((first, conn.rows("select name from tenant", &[]).await?.len()))
            })
        });
        assert_eq!(counts.await.unwrap(), (0, 0));
        assert_eq!(names(&bench.store).await, ["meanwhile"]);
    })
    .await;
}

#[tokio::test]
async fn a_read_cannot_write() {
    on_both(async |bench| {
        let outcome = bench
            .store
            .read(Wall::Across, |conn| Box::pin(insert(conn, "sneaked")))
            .await;
        assert!(outcome.is_err());
        assert!(names(&bench.store).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_closed_store_is_unavailable() {
    on_both(async |bench| {
        bench.store.close().await;
        assert!(matches!(
            write(&bench.store, "late").await,
            Err(StoreError::Unavailable(_))
        ));
        let read = bench.store.read(Wall::Across, |conn| {
            Box::pin(async move { conn.rows("select 1", &[]).await })
        });
        assert!(matches!(read.await, Err(StoreError::Unavailable(_))));
    })
    .await;
}
