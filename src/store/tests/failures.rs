//! What happens when the database says no: full, gone, or silent in COMMIT.

use sqlx::Row as _;

use super::*;

/// Writes until the file may not grow; answers how many rows went in.
async fn filled(store: &Store) -> usize {
    let mut rows = 0;
    loop {
        let name = format!("{rows:04}{}", "x".repeat(2000));
        match write(store, &name).await {
            Ok(()) => rows += 1,
            Err(StoreError::Unavailable(_)) => return rows,
            Err(other) => panic!("{other:?}"),
        }
        assert!(rows < 1000, "the limit does not hold");
    }
}

async fn may_grow_to(store: &Store, pragma: &'static str) {
    let work = store.write(Wall::Across, "test", move |conn| {
        Box::pin(async move { conn.rows(pragma, &[]).await.map(|_| ()) })
    });
    work.await.unwrap();
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_writing_goes_on_when_there_is_room() {
    let bench = Bench::sqlite(None).await;
    let store = &bench.store;
    let mut bell = store.bell().subscribe(session(1));
    may_grow_to(store, "pragma max_page_count = 120").await;
    let rows = filled(store).await;
    assert!(0 < rows);

    // A group that meets the full disk: everyone is told the truth.
    let big = "y".repeat(40_000);
    let outcomes = futures::future::join_all((0..20).map(|number| {
        let name = format!("{number:02}{big}");
        store.write(Wall::Across, "test", move |conn| {
            Box::pin(async move {
                conn.ring(session(1), News::Other);
                insert(conn, &name).await
            })
        })
    }))
    .await;
    let stored = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!(stored < 20);
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Ok(()) | Err(StoreError::Unavailable(_)))),
        "{outcomes:?}"
    );
    assert_eq!(names(store).await.len(), rows + stored);
    assert_eq!(futures::FutureExt::now_or_never(bell.changed()).is_some(), 0 < stored);

    may_grow_to(store, "pragma max_page_count = 100000").await;
    write(store, "room again").await.unwrap();
    assert_eq!(names(store).await.len(), rows + stored + 1);
}

async fn kill_all_others(raw: &mut sqlx::PgConnection) {
    let sql = "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    sqlx::query(sql).fetch_all(raw).await.unwrap();
}

#[tokio::test]
async fn connections_that_died_while_idle_are_not_noticed() {
    on_postgres(async |bench| {
        let several = (0..8).map(|number| write(&bench.store, ["a", "b", "c", "d", "e", "f", "g", "h"][number]));
        futures::future::join_all(several).await;
        kill_all_others(&mut bench.raw_postgres().await).await;
        write(&bench.store, "after").await.unwrap();
        assert_eq!(names(&bench.store).await.len(), 9);
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_dies_before_commit_undoes_the_write() {
    on_postgres(async |bench| {
        let mut raw = bench.raw_postgres().await;
        let outcome = bench.store.write(Wall::Across, "test", |conn| {
            Box::pin(async move {
                insert(conn, "lost").await?;
                kill_all_others(&mut raw).await;
                insert(conn, "never there").await
            })
        });
        assert!(matches!(outcome.await, Err(StoreError::Unavailable(_))));
        assert!(names(&bench.store).await.is_empty());
    })
    .await;
}

/// A deferred trigger runs inside COMMIT: there the backend ends itself.
async fn trigger_in_commit(bench: &Bench, action: &str) {
    let sql = format!(
        "create function in_commit() returns trigger language plpgsql security definer as $$ begin {action} return null; end $$; \
         create constraint trigger in_commit after insert on tenant deferrable initially deferred for each row execute function in_commit()"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(&mut bench.raw_postgres().await)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_connection_that_dies_in_commit_leaves_the_outcome_unclear() {
    on_postgres(async |bench| {
        trigger_in_commit(bench, "perform pg_terminate_backend(pg_backend_pid());").await;
        let mut bell = bench.store.bell().subscribe(session(1));
        let outcome = bench.store.write(Wall::Across, "test", |conn| {
            Box::pin(async move {
                conn.ring(session(1), News::Other);
                insert(conn, "who knows").await
            })
        });
        assert!(matches!(outcome.await, Err(StoreError::Unclear(_))));
        assert!(futures::FutureExt::now_or_never(bell.changed()).is_some());
    })
    .await;
}

#[tokio::test]
async fn a_commit_that_the_server_refuses_is_not_unclear() {
    on_postgres(async |bench| {
        trigger_in_commit(bench, "raise exception 'no';").await;
        let outcome = write(&bench.store, "refused").await;
        assert!(matches!(outcome, Err(StoreError::Database(_))), "{outcome:?}");
        assert!(names(&bench.store).await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let options = super::super::StoreOptions {
        // Port 1 of the loopback: refused at once.
        target: Target::Postgres {
            url: crate::base::Secret::new("postgres://u:hidden@127.0.0.1:1/none"),
            max_connections: 1,
        },
        clock: crate::base::Clock::system(),
        probe: None,
    };
    let Err(error) = Store::open(options).await else {
        panic!("opened")
    };
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("hidden"));
}

#[tokio::test]
async fn a_url_that_is_none_is_refused_without_being_shown() {
    for url in [
        "user:hidden@host",
        "mysql://u:hidden@127.0.0.1:1/db",
        "postgres://u:hidden@127.0.0.1:port/db",
    ] {
        let options = super::super::StoreOptions {
            target: Target::Postgres {
                url: crate::base::Secret::new(url),
                max_connections: 1,
            },
            clock: crate::base::Clock::system(),
            probe: None,
        };
        let Err(error) = Store::open(options).await else {
            panic!("opened")
        };
        assert!(matches!(error, StoreError::Url(_)), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hidden"));
    }
}

#[tokio::test]
async fn a_row_that_does_not_decode_is_called_corrupt() {
    on_both(async |bench| {
        let work = bench.store.write(Wall::Across, "test", |conn| {
            Box::pin(async move {
                let sql = "insert into tenant (tenant_id, name, created_at) values ('nonsense', '{', 0)";
                conn.execute(sql, &[]).await
            })
        });
        work.await.unwrap();
        let read = bench.store.read(Wall::Across, |conn| {
            Box::pin(async move {
                let row = conn.row("select * from tenant", &[]).await?.unwrap();
                let outcomes = [
                    row.id::<crate::model::id::kinds::Tenant>("tenant_id").map(|_| ()),
                    row.json::<Vec<String>>("name").map(|_| ()),
                    row.int("name").map(|_| ()),
                    row.text("created_at").map(|_| ()),
                    row.text("no such column").map(|_| ()),
                ];
                assert!(
                    outcomes
                        .iter()
                        .all(|outcome| matches!(outcome, Err(StoreError::Corrupt { .. }))),
                    "{outcomes:?}"
                );
                Ok(())
            })
        });
        read.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn work_that_hangs_in_a_statement_is_ended_by_the_server() {
    on_postgres(async |bench| {
        let read = bench.store.read(Wall::Across, |conn| {
            Box::pin(async move {
                let rows = conn.rows("select current_setting('statement_timeout') as limits", &[]).await?;
                rows.first().unwrap().text("limits")
            })
        });
        assert_eq!(read.await.unwrap(), "20s");
        let mut raw = bench.raw_postgres().await;
        let row = sqlx::query("select count(*) from pg_stat_activity where application_name = 'hermes-server' and datname = current_database()")
            .fetch_one(&mut raw)
            .await
            .unwrap();
        // How many the pool holds is its own affair; that they are named is ours.
        assert!(1 <= row.get::<i64, _>(0), "connections say whose they are");
    })
    .await;
}
