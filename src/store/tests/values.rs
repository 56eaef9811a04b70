//! A value that was bound is the value that the database sees, whatever it is
//! made of: on Postgres values are quoted by us.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::*;

/// What the database says the values are.
async fn echoed(store: &Store, text: String, number: i64) -> (String, Option<String>, i64, i64) {
    let read = store.read(Wall::Across, move |conn| {
        Box::pin(async move {
            let sql = "select $1 as said, $2 as absent, $3 as counted, length($1) + cast(0 as bigint) as long";
            let args = [Arg::from(&text), Arg::OptText(None), Arg::Int(number)];
            let row = conn.row(sql, &args).await?.ok_or_else(|| StoreError::bug("no row"))?;
            Ok((
                row.text("said")?,
                row.opt_text("absent")?,
                row.int("counted")?,
                row.int("long")?,
            ))
        })
    });
    read.await.unwrap()
}

#[tokio::test]
async fn values_reach_the_database_as_they_are() {
    on_both(async |bench| {
        let mut texts: Vec<String> = [
            "",
            "'",
            "''",
            "\\",
            "\\'",
            "\\\\''",
            "'; drop table tenant; --",
            "\\'; drop table tenant; --",
            "$1 $$ $tag$ /* -- */",
            "E'\\047'",
            "line\nbreak\r\ttab\u{1}\u{7f}",
            "\u{2018}\u{2019}\u{ff07}\u{2bc}",
            "한국어 中文 日本語 👩‍👩‍👧 e\u{301}",
            "{\"a\":\"\\u0000 \\\"quoted\\\"\"}",
        ]
        .map(str::to_owned)
        .into();
        let mut runner = TestRunner::deterministic();
        let hostile = proptest::collection::vec(
            proptest::sample::select(vec!['\'', '\\', '$', 'E', ';', 'ä', '\n']),
            0..12,
        );
        for _ in 0..100 {
            let chars = hostile.new_tree(&mut runner).unwrap().current();
            texts.push(chars.into_iter().collect());
            texts.push("[^\u{0}]{0,20}".new_tree(&mut runner).unwrap().current());
        }
        for text in texts {
            let long = i64::try_from(text.chars().count()).unwrap();
            assert_eq!(echoed(&bench.store, text.clone(), -5).await, (text, None, -5, long));
        }
        for number in [0, -1, i64::MAX, i64::MIN] {
            assert_eq!(echoed(&bench.store, "n".into(), number).await.2, number);
        }
    })
    .await;
}

#[tokio::test]
async fn quoting_does_not_depend_on_how_the_server_reads_backslashes() {
    on_postgres(async |bench| {
        let sql = "alter database current set standard_conforming_strings = off";
        let mut raw = bench.raw_postgres().await;
        let name: String = sqlx::query_scalar("select current_database()")
            .fetch_one(&mut raw)
            .await
            .unwrap();
        let sql = sql.replace("current", &format!("\"{name}\""));
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut raw).await.unwrap();
        let store = Store::open(bench.options.clone()).await.unwrap();
        let text = "a \\' b ' c \\\\ d".to_owned();
        assert_eq!(echoed(&store, text.clone(), 1).await.0, text);
        store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_text_that_postgres_cannot_hold_is_refused_before_it_is_sent() {
    on_postgres(async |bench| {
        let outcome = write(&bench.store, "a\0b").await;
        assert!(matches!(outcome, Err(StoreError::Database(_))), "{outcome:?}");
        write(&bench.store, "after").await.unwrap();
        assert_eq!(names(&bench.store).await, ["after"]);
    })
    .await;
}
