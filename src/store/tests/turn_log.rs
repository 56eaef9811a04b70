//! A turn's log in a long session: what is found, and that the session is not
//! gone through for it.

use sqlx::{Connection as _, Row as _};

use super::children::record;
use super::*;
use crate::model::id::TurnId;
use crate::store::turn_log::{LAST_WAITING, OF_TURN};

const TURNS: i64 = 400;
const EVENTS: i64 = 50;
const OVER: i64 = 200;
const RUNNING: i64 = TURNS;

fn turn(number: i64) -> TurnId {
    Id::from_bits(number.unsigned_abs().into())
}

/// The number of the last event of a turn.
const fn last(turn: i64) -> i64 {
    turn * EVENTS
}

/// Adds a turn that was queued at the event `first`, while the one before it ran;
/// its other events follow that one's.
async fn add(rows: &mut crate::store::Rows<'_>, number: i64, first: i64) -> Result<(), StoreError> {
    const TURN: &str = "
        insert into turn (tenant_id, session_id, turn_id, user_id, status, input, options, epoch, step, progress, usage,
            active_ms, created_at, first_seq, last_seq)
        values ($1, $2, $3, 'ada', $4, '[]', '{}', 0, 0, '{}', '{}', 0, 0, $5, $6)";
    const EVENT: &str = "
        insert into event (tenant_id, session_id, user_id, seq, turn_id, epoch, type, at, data)
        with recursive n(i) as (select $4 union all select i + 1 from n where i < $5)
        select $1, $2, 'ada', i, $3, 0, case when i = $5 - 10 then 'turn.waiting' else 'usage.updated' end, 0, '{}'
        from n";
    let own = [tenant_id("ours").into(), session(1).into(), turn(number).into()];
    let (status, over) = match number {
        RUNNING => ("running", None),
        _ => ("completed", Some(last(number))),
    };
    let mut args = own.to_vec();
    args.extend([status.into(), first.into(), over.into()]);
    rows.conn.execute(TURN, &args).await?;
    let mut args = own.to_vec();
    args.extend([(last(number - 1) + 1).into(), last(number).into()]);
    rows.conn.execute(EVENT, &args).await.map(|_| ())
}

/// A session of 20,000 events whose last turn is not over.
async fn long_session(store: &Store) {
    write(store, "ours").await.unwrap();
    let scope = store.scope(tenant_id("ours"));
    let done = scope.write("test", |mut rows| {
        Box::pin(async move {
            let mut new = record(1, None);
            new.record.head_seq = last(TURNS);
            rows.add_session(&new).await?;
            for number in 1..=TURNS {
                let first = last(number - 1) - EVENTS / 2;
                add(&mut rows, number, first.max(1)).await?;
            }
            Ok(())
        })
    });
    done.await.unwrap();
}

async fn log(store: &Store, number: i64, after: i64, limit: u32) -> Vec<i64> {
    let scope = store.scope(tenant_id("ours"));
    let read = scope.read(move |mut rows| {
        Box::pin(async move {
            let rows = rows.turn_log(session(1), turn(number), after, limit).await?;
            rows.iter().map(|row| row.int("seq")).collect::<Result<Vec<i64>, _>>()
        })
    });
    read.await.unwrap()
}

#[tokio::test]
async fn a_turn_shows_its_own_events_and_each_once() {
    on_both(async |bench| {
        let store = &bench.store;
        long_session(store).await;
        for number in [1, OVER, RUNNING] {
            let own: Vec<i64> = (last(number - 1) + 1..=last(number)).collect();
            assert_eq!(log(store, number, 0, 200).await, own);
            assert_eq!(log(store, number, last(number) - 5, 200).await, own[45..]);
            assert_eq!(log(store, number, own[3], 2).await, own[4..6]);
            assert!(log(store, number, last(number), 200).await.is_empty());
            assert!(log(store, number, i64::MAX, 200).await.is_empty());
        }
        assert!(log(store, TURNS + 1, 0, 200).await.is_empty(), "no such turn");
        let scope = store.scope(tenant_id("ours"));
        let waits = scope.read(|mut rows| {
            Box::pin(async move {
                let before = rows.waiting_row(session(1), turn(OVER), last(OVER) - 11).await?;
                let after = rows.waiting_row(session(1), turn(OVER), last(OVER)).await?;
                Ok((before.len(), after.first().map(|row| row.int("seq")).transpose()?))
            })
        });
        assert_eq!(waits.await.unwrap(), (0, Some(last(OVER) - 10)));
    })
    .await;
}

/// The plan of a statement about a turn, with what Postgres went through; the last
/// parameters are numbers.
async fn plan(bench: &Bench, sql: &'static str, number: i64, numbers: Vec<i64>) -> Vec<String> {
    if bench.store.kind() == Kind::Sqlite {
        let explain = Box::leak(format!("explain query plan {sql}").into_boxed_str());
        let read = bench.store.read(Wall::Across, move |conn| {
            Box::pin(async move {
                let mut args: Vec<Arg<'_>> = vec![tenant_id("ours").into(), session(1).into(), turn(number).into()];
                args.extend(numbers.into_iter().map(Arg::from));
                let rows = conn.rows(explain, &args).await?;
                rows.iter().map(|row| row.text("detail")).collect()
            })
        });
        return read.await.unwrap();
    }
    let mut raw = bench.raw_postgres().await;
    let (ours, theirs, of) = (tenant_id("ours"), session(1), turn(number));
    let (types, values): (String, String) = numbers.iter().map(|number| (", bigint", format!(", {number}"))).unzip();
    let prepared = format!(
        "set role hermes_app; set app.tenant = '{ours}'; set plan_cache_mode = force_generic_plan;
        prepare asked (text, text, text{types}) as {sql}"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(prepared))
        .execute(&mut raw)
        .await
        .unwrap();
    let explain =
        format!("explain (analyze, costs off, timing off) execute asked ('{ours}', '{theirs}', '{of}'{values})");
    let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(explain))
        .fetch_all(&mut raw)
        .await
        .unwrap();
    raw.close().await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn the_session_is_not_gone_through_for_a_turn() {
    on_both(async |bench| {
        long_session(&bench.store).await;
        for number in [OVER, RUNNING] {
            for (sql, numbers) in [(OF_TURN, vec![1, 200]), (LAST_WAITING, vec![last(number)])] {
                let plan = plan(bench, sql, number, numbers).await;
                match bench.store.kind() {
                    Kind::Sqlite => {
                        let by_number = "SEARCH event USING INDEX sqlite_autoindex_event_1 (tenant_id=? AND session_id=? AND seq>? AND seq<?)";
                        assert!(plan.iter().any(|line| line == by_number), "{plan:#?}");
                    }
                    Kind::Postgres => {
                        let passed_over = plan.iter().filter_map(|line| line.split_once("Rows Removed by Filter: "));
                        let passed_over: i64 = passed_over.map(|(_, rows)| rows.parse::<i64>().unwrap()).sum();
                        assert!(passed_over <= EVENTS, "{plan:#?}");
                        assert!(!plan.iter().any(|line| line.contains("Seq Scan on event")), "{plan:#?}");
                    }
                }
            }
        }
    })
    .await;
}
