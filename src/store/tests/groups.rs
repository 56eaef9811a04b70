//! Writes that share a transaction on Postgres: what each of them may do there, and
//! that none of them feels the others.

use futures::future::{BoxFuture, join_all};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::children::record;
use super::*;

use crate::store::{Rows, Scope, usage};

pub(super) type Work<T> = Box<dyn for<'c> FnOnce(Rows<'c>) -> BoxFuture<'c, Result<T, StoreError>> + Send>;

/// The sessions of these tests, by number: all of one lane.
pub(super) fn session(number: usize) -> SessionId {
    let mut all = (0..).map(SessionId::from_bits);
    let own = all.by_ref().filter(|session| usage::part(*session).is_multiple_of(2));
    own.take(number + 1).last().unwrap()
}

/// A write that holds the lane until it is let go.
pub(super) struct Held {
    go: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Held {
    pub(super) async fn new(scope: &Scope) -> Self {
        let (begun, running) = oneshot::channel();
        let (go, gate) = oneshot::channel();
        let channels = std::sync::Mutex::new(Some((begun, gate)));
        let scope = scope.clone();
        let task = tokio::spawn(async move {
            let make = || -> Work<()> {
                let (begun, gate) = channels.lock().unwrap().take().unwrap();
                Box::new(move |_| {
                    Box::pin(async move {
                        begun.send(()).unwrap();
                        gate.await.map_err(|_| StoreError::Lost)
                    })
                })
            };
            scope.write_grouped(session(99), "test", make).await.unwrap();
        });
        running.await.unwrap();
        Self { go, task }
    }

    pub(super) async fn let_go(self) {
        self.go.send(()).unwrap();
        self.task.await.unwrap();
    }
}

/// A tenant with these sessions.
pub(super) async fn sessions(store: &Store, tenant: &'static str, numbers: std::ops::RangeInclusive<usize>) -> Scope {
    write(store, tenant).await.unwrap();
    let scope = store.scope(tenant_id(tenant));
    let made = scope.write("test", move |mut rows| {
        Box::pin(async move {
            for number in numbers {
                let mut new = record(0, None);
                new.record.session_id = session(number);
                new.record.tenant_id = tenant_id(tenant);
                rows.add_session(&new).await?;
            }
            Ok(())
        })
    });
    made.await.unwrap();
    scope
}

pub(super) const COUNT_ON: &str = "update session set head_seq = $3 where tenant_id = $1 and session_id = $2";

/// Reads a session's number under its lock and writes the next one.
fn counting_on(number: usize) -> Work<i64> {
    Box::new(move |mut rows| {
        Box::pin(async move {
            let own = rows.lock_session(session(number)).await?.ok_or(StoreError::Lost)?;
            let next = own.head_seq + 1;
            let args = [own.tenant_id.into(), own.session_id.into(), next.into()];
            rows.conn.later(COUNT_ON, &args).await?;
            Ok(next)
        })
    })
}

async fn count_on(scope: &Scope, number: usize) -> Result<i64, StoreError> {
    scope
        .write_grouped(session(number), "test", || counting_on(number))
        .await
}

async fn heads(scope: &Scope, numbers: impl Iterator<Item = usize>) -> Vec<i64> {
    let heads = numbers.map(|number| scope.store().head_across_tenants(scope.tenant(), session(number)));
    let heads = futures::future::try_join_all(heads).await.unwrap();
    heads.into_iter().map(Option::unwrap).collect()
}

#[tokio::test]
async fn writes_of_sessions_that_wait_share_questions_and_a_commit() {
    on_postgres(async |bench| {
        let store = &bench.store;
        let scope = sessions(store, "ours", 1..=20).await;
        let held = Held::new(&scope).await;
        let mut waiting = Box::pin(join_all((1..=20).map(|number| count_on(&scope, number))));
        assert!(futures::poll!(&mut waiting).is_pending());
        let (commits, trips) = (store.commits(), store.round_trips());
        held.let_go().await;
        let counted: Result<Vec<i64>, StoreError> = waiting.await.into_iter().collect();
        assert_eq!(counted.unwrap(), [1; 20]);
        // Who held the lane asked nothing.
        assert_eq!(store.commits() - commits, 2);
        assert_eq!(store.round_trips() - trips, 2, "one to read, one to write and commit");
        assert_eq!(heads(&scope, 1..=20).await, [1; 20]);
    })
    .await;
}

#[tokio::test]
async fn writes_of_one_session_follow_one_another_however_many_share_their_commits() {
    on_both(async |bench| {
        let scope = sessions(&bench.store, "ours", 1..=4).await;
        let all = (0..40).map(|number| count_on(&scope, 1 + number % 4));
        let mut counted: Vec<i64> = join_all(all).await.into_iter().map(Result::unwrap).collect();
        counted.sort_unstable();
        let expected: Vec<i64> = (1..=10).flat_map(|number| [number; 4]).collect();
        assert_eq!(counted, expected, "no number was given twice in a session");
        assert_eq!(heads(&scope, 1..=4).await, [10; 4]);
    })
    .await;
}

/// What each member of a group may do wrong.
fn spoiling(number: usize) -> Work<i64> {
    const NAME: &str = "insert into api_key (tenant_id, key_id, user_id, name, hash, scopes, created_at)
        values ($1, $2, 'user', 'name', 'the same', '[]', 0)";
    Box::new(move |mut rows| {
        Box::pin(async move {
            let tenant = rows.tenant();
            match number {
                // Two of them: the second hash is taken.
                1 | 2 => {
                    let args = [tenant.into(), Arg::from(number.to_string())];
                    rows.conn.later(NAME, &args).await?;
                }
                3 => return Err(StoreError::Lost),
                4 => panic!("a bug"),
                // A statement that the database refuses.
                5 => rows.conn.rows("select * from nowhere", &[]).await.map(drop)?,
                // Another session's lock, and a write that is waited for.
                6 => rows.lock_session(session(7)).await.map(drop)?,
                8 => {
                    let args = [tenant.into(), session(8).into(), 40i64.into()];
                    rows.conn.execute(COUNT_ON, &args).await.map(drop)?;
                }
                _ => {}
            }
            counting_on(number)(rows).await
        })
    })
}

#[tokio::test]
async fn what_one_does_wrong_is_its_own_and_what_cannot_be_shared_is_done_alone() {
    on_postgres(async |bench| {
        let scope = sessions(&bench.store, "ours", 1..=12).await;
        // Each of them in a group of its own, beside others that do nothing wrong.
        for wrong in [1, 2, 3, 4, 5, 6, 8] {
            let held = Held::new(&scope).await;
            let others = 9..=12;
            let spoiled = scope.write_grouped(session(wrong), "test", || spoiling(wrong));
            let beside = join_all(others.map(|number| count_on(&scope, number)));
            let mut group = Box::pin(futures::future::join(spoiled, beside));
            assert!(futures::poll!(&mut group).is_pending());
            held.let_go().await;
            let (spoiled, beside) = group.await;
            assert!(beside.iter().all(Result::is_ok), "{wrong}: {beside:?}");
            match (wrong, &spoiled) {
                (1 | 6, Ok(1)) | (8, Ok(41)) => {}
                (2, Err(StoreError::Unique(_)))
                | (3, Err(StoreError::Lost))
                | (4 | 5, Err(StoreError::Database(_))) => {}
                _ => panic!("{wrong}: {spoiled:?}"),
            }
        }
        assert_eq!(heads(&scope, 9..=12).await, [7; 4]);
        assert_eq!(
            heads(&scope, [1, 2, 3, 4, 5, 6, 8].into_iter()).await,
            [1, 0, 0, 0, 0, 1, 41]
        );
    })
    .await;
}

/// Somebody else who holds a session's row.
async fn locked_beside(bench: &Bench, number: usize) -> sqlx::PgConnection {
    let mut beside = bench.raw_postgres().await;
    let lock = format!(
        "begin; select 1 from session where session_id = '{}' for update",
        session(number)
    );
    let lock = sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut beside);
    lock.await.unwrap();
    beside
}

#[tokio::test]
async fn whoever_needs_a_lock_that_somebody_holds_waits_for_it_alone() {
    on_postgres(async |bench| {
        let scope = sessions(&bench.store, "ours", 1..=6).await;
        let mut beside = locked_beside(bench, 1).await;
        let held = Held::new(&scope).await;
        let mut locked = Box::pin(count_on(&scope, 1));
        let mut others = Box::pin(join_all((2..=6).map(|number| count_on(&scope, number))));
        assert!(futures::poll!(&mut locked).is_pending());
        assert!(futures::poll!(&mut others).is_pending());
        held.let_go().await;
        let (others, locked) = match futures::future::select(others, locked).await {
            futures::future::Either::Left((others, locked)) => (others, locked),
            futures::future::Either::Right(_) => panic!("its lock is held"),
        };
        assert!(others.iter().all(|counted| matches!(counted, Ok(1))), "{others:?}");
        sqlx::raw_sql("rollback").execute(&mut beside).await.unwrap();
        assert_eq!(locked.await.unwrap(), 1);
    })
    .await;
}

#[tokio::test]
async fn whoever_waits_alone_does_not_keep_its_lane_from_others() {
    on_postgres(async |bench| {
        let scope = sessions(&bench.store, "ours", 1..=3).await;
        let mut beside = locked_beside(bench, 1).await;
        let mut locked = Box::pin(count_on(&scope, 1));
        assert!(futures::poll!(&mut locked).is_pending());
        for number in [2, 3] {
            tokio::select! {
                counted = count_on(&scope, number) => assert_eq!(counted.unwrap(), 1),
                _ = &mut locked => panic!("its lock is held"),
            }
        }
        sqlx::raw_sql("rollback").execute(&mut beside).await.unwrap();
        assert_eq!(locked.await.unwrap(), 1);
    })
    .await;
}

/// Reads what a query that forgot its tenant sees.
fn seeing(number: usize) -> Work<Vec<String>> {
    Box::new(move |mut rows| {
        Box::pin(async move {
            let own = rows.lock_session(session(number)).await?;
            let seen = rows
                .conn
                .rows("select session_id from session order by session_id", &[])
                .await?;
            assert!(own.is_some() || seen.is_empty());
            seen.iter().map(|row| row.text("session_id")).collect()
        })
    })
}

#[tokio::test]
async fn members_of_two_tenants_stand_each_behind_its_own_wall() {
    on_postgres(async |bench| {
        let store = &bench.store;
        let ours = sessions(store, "ours", 1..=2).await;
        let theirs = sessions(store, "theirs", 3..=4).await;
        let strangers = store.scope(tenant_id("strangers"));
        let held = Held::new(&ours).await;
        let scopes = [(&ours, 1), (&theirs, 3), (&ours, 2), (&strangers, 5), (&theirs, 4)];
        let seen = scopes.map(|(scope, number)| scope.write_grouped(session(number), "test", move || seeing(number)));
        let mut seen = Box::pin(join_all(seen));
        assert!(futures::poll!(&mut seen).is_pending());
        let trips = store.round_trips();
        held.let_go().await;
        let seen: Vec<Vec<String>> = seen.await.into_iter().map(Result::unwrap).collect();
        assert_eq!(store.round_trips() - trips, 3, "two questions and the commit");
        let named = |numbers: [usize; 2]| numbers.map(|number| session(number).to_string()).to_vec();
        assert_eq!(
            seen,
            [named([1, 2]), named([3, 4]), named([1, 2]), Vec::new(), named([3, 4])]
        );
    })
    .await;
}
