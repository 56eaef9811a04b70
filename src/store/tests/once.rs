//! Keys of requests: how long they count, and that their rows go.

use super::*;
use crate::store::{Earlier, Once, Scope};

fn scope(store: &Store, body: &str) -> Scope {
    store.scope(tenant_id("ours")).once(Some(Once {
        caller: "- ada".to_owned(),
        route: "POST /v1/sessions".to_owned(),
        key: "k".to_owned(),
        body_hash: body.to_owned(),
    }))
}

async fn earlier(store: &Store, body: &str) -> Earlier {
    let scope = scope(store, body);
    let seen = scope.write("test", |mut rows| Box::pin(async move { rows.earlier().await }));
    seen.await.unwrap()
}

async fn remember(store: &Store, body: &str, answer: &'static str) {
    let scope = scope(store, body);
    let kept = scope.write("test", move |mut rows| {
        Box::pin(async move { rows.remember(&answer).await })
    });
    kept.await.unwrap();
}

/// Makes every key older by that much.
async fn aged(store: &Store, by_ms: i64) {
    let work = store.write(Wall::Across, "test", move |conn| {
        Box::pin(async move {
            conn.execute("update idempotency set created_at = created_at - $1", &[by_ms.into()])
                .await
        })
    });
    assert_eq!(work.await.unwrap(), 1);
}

const DAY_MS: i64 = 86_400_000;
/// More than a test takes on the database's own clock.
const MINUTE_MS: i64 = 60_000;

#[tokio::test]
async fn a_key_counts_for_a_day_and_its_row_goes_after_it() {
    on_both(async |bench| {
        let store = &bench.store;
        assert_eq!(earlier(store, "a").await, Earlier::Nothing);
        remember(store, "a", "one").await;
        aged(store, DAY_MS - MINUTE_MS).await;
        assert_eq!(earlier(store, "a").await, Earlier::Answer("\"one\"".to_owned()));
        assert_eq!(earlier(store, "b").await, Earlier::OtherBody);
        assert_eq!(store.forget_old_keys_across_tenants().await.unwrap(), 0);

        aged(store, MINUTE_MS).await;
        assert_eq!(earlier(store, "b").await, Earlier::Nothing);
        // A row that is not yet gone is no obstacle.
        remember(store, "b", "two").await;
        assert_eq!(earlier(store, "b").await, Earlier::Answer("\"two\"".to_owned()));
        aged(store, DAY_MS).await;
        assert_eq!(store.forget_old_keys_across_tenants().await.unwrap(), 1);
        assert_eq!(store.forget_old_keys_across_tenants().await.unwrap(), 0);
    })
    .await;
}
